"""Special functions elementwise: the error function, the gamma function's logarithm, the normal distribution.

Most are written in the language of kernels (`codegen.llvm.elementary_gaussian` and `elementary_special`), and NumPy
computes arrays by the same source. float64 is accurate to a few units in the last place (near the zeros of `lgamma`,
`digamma` and `log_ndtr`, relative to the terms that cancel there). float32 is computed in float64 and rounded, except
`erf`. Small arrays go through the `math` module, which costs less than a formula's many passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.elementary import FUNCTIONS, decomposition, elementary, in_kernels
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import xp

Array = numpy.ndarray[Any, Any]

_FEW = 512  # elements up to which a Python call for each is the cheaper way
_SQRT_HALF = math.sqrt(0.5)
_GAUSSIAN = "elementary_gaussian"


def _pointwise(refusal: str, kinds: str = "f") -> Callable[[Callable[..., Any]], Any]:
    """Make a function `_name` of float64 arrays into the elementary function `name`, and return the kernel of that alone."""

    def declare(function: Callable[..., Any]) -> Any:
        name = function.__name__.removeprefix("_")
        elementary(name)(function)
        return of_operation(name, refusal, kinds, function.__code__.co_argcount, function.__doc__)

    return declare


def _in_kernels(name: str, refusal: str, kinds: str = "f", module: str = "elementary_special") -> Any:
    """Make a function in the language of kernels an elementary function, and return the kernel of that alone."""
    in_kernels(module, name)
    return of_operation(name, refusal, kinds)


def _one_by_one(name: str, function: Callable[[float], float], smallest: float = -math.inf) -> None:
    """Compute few elements, none of them below `smallest`, by a function of numbers, which is the cheaper way."""
    of_arrays = FUNCTIONS[name]

    def few(x: ndarray) -> ndarray:
        if x.size > _FEW or not (smallest == -math.inf or bool(numpy.all((x > smallest) & (x < 1e300)))):
            return asarray(of_arrays(x))
        result = numpy.empty_like(x)
        result[...] = numpy.fromiter(map(function, x.reshape(-1).tolist()), numpy.float64, x.size).reshape(x.shape)
        return result

    elementary(name)(few)


# ---------------------------------------------------------------------------------------------------------------------
# The error function

# erf(x) = tanh(x p(x ** 2)); p fits atanh(erf(x)) / x on [0, 4.1] with a relative error of erf below 3.2e-8.
_ERF_SINGLE = (
    -1.6407388343877219e-09, 5.391642685877616e-08, -5.15099497376279e-07, -1.860991090529486e-06,
    7.648922059040508e-05, -0.0006036801154681473, -0.00020215277085595495, 0.10277131534988769, 1.1283792022806272,
)  # fmt: skip
_ERF_SINGLE_LIMIT = 16.8

erf = _in_kernels("erf", "erf_vml_cpu", "f", _GAUSSIAN)
_one_by_one("erf", math.erf)


@decomposition("erf", numpy.float32)
def _erf_single(x: Any) -> Any:
    square = xp.minimum(x * x, _ERF_SINGLE_LIMIT)
    slope = square * _ERF_SINGLE[0] + _ERF_SINGLE[1]
    for coefficient in _ERF_SINGLE[2:]:
        slope = slope * square + coefficient
    return xp.tanh(slope * x)


erfc = _in_kernels("erfc", "erfc_vml_cpu", "f", _GAUSSIAN)
_one_by_one("erfc", math.erfc)
erfcx = _in_kernels("erfcx", "erfcx_cpu", "fd", _GAUSSIAN)

# ---------------------------------------------------------------------------------------------------------------------
# The normal distribution function, with an absolute error of one or two units in the last place of 1

# (1 + tanh(x p(x ** 2))) / 2. p fits atanh(2 Phi(x) - 1) / x on [0, 5.6] with an error of Phi below 3e-8, and keeps tanh at 1
# beyond.
_NORMAL_SINGLE = (
    1.75627884e-09, -1.32266326e-07, 3.96477369e-06, -5.53063195e-05, -3.25947388e-05, 3.63330844e-02, 7.97884941e-01,
)  # fmt: skip


@decomposition("normal_cdf", numpy.float32)
def _normal_cdf_single(x: Any) -> Any:
    square = x * x
    slope = square * _NORMAL_SINGLE[0] + _NORMAL_SINGLE[1]
    for coefficient in _NORMAL_SINGLE[2:]:
        slope = slope * square + coefficient
    return xp.tanh(slope * x) * 0.5 + 0.5


def _probability_below(x: float) -> float:
    return math.erfc(-x * _SQRT_HALF) / 2


in_kernels(_GAUSSIAN, "normal_cdf")
_one_by_one("normal_cdf", _probability_below)

# ---------------------------------------------------------------------------------------------------------------------
# The normal distribution


ndtri = _in_kernels("ndtri", "ndtri_cpu", "fd")
erfinv = _in_kernels("erfinv", "erfinv_vml_cpu", "f")
ndtr = _in_kernels("ndtr", "ndtr_cpu", "f", _GAUSSIAN)
_one_by_one("ndtr", _probability_below)
log_ndtr = _in_kernels("log_ndtr", "log_ndtr_cpu", "fd", _GAUSSIAN)
_one_by_one(
    "log_ndtr", lambda x: math.log(_probability_below(x)) if x < -1 else math.log1p(-math.erfc(x * _SQRT_HALF) / 2), -35
)

# ---------------------------------------------------------------------------------------------------------------------
# The gamma function

lgamma = _in_kernels("lgamma", "lgamma_vml_cpu")
_one_by_one("lgamma", math.lgamma, 0)
digamma = _in_kernels("digamma", "digamma")


def polygamma(n: int, x: ndarray) -> ndarray:
    """The `n`-th derivative of `digamma`.

    Raises:
        RuntimeError: if `n` is negative.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    return _trigamma_kernel.general(x) if n == 1 else _polygamma_kernel.general(x, n)


_trigamma_kernel = _in_kernels("trigamma", "trigamma")


@elementary("polygamma_of_order")
def _polygamma(x: ndarray, n: ndarray) -> ndarray:
    """NIST DLMF 25.11.12."""
    order = float(n)
    factorial = math.gamma(order + 1) if order < 171 else math.inf
    return math.copysign(factorial, (-1) ** (order + 1)) * _zeta(numpy.full(x.shape, order + 1), x)  # type: ignore[arg-type]


@pointwise("polygamma")
def _polygamma_kernel(self: Array, n: int) -> Any:
    """The `n`-th derivative of `digamma`, for `n` greater than 1."""
    return xp.polygamma_of_order(self, n)


def _zeta(x: ndarray, q: ndarray) -> ndarray:
    """The Hurwitz zeta function, the sum of (k + q) ** -x over k from 0: inf for `x` = 1, nan for less."""
    pole = (q <= 0) & (q == numpy.floor(q))
    undefined = (x < 1) | ((q < 0) & ~pole & (x != numpy.floor(x)))
    with numpy.errstate(all="ignore"):
        result = _hurwitz(x, numpy.where(pole | undefined | numpy.isinf(q), 1.0, q))
    at_infinity = numpy.where(q > 1, 0.0, numpy.where(q == 1, 1.0, math.inf))
    result = numpy.where(x == math.inf, at_infinity, numpy.where(q == math.inf, math.nan, result))
    result = numpy.where(undefined, math.nan, numpy.where(pole, math.inf, result))
    result = numpy.where(x == 1, math.inf, result)
    return numpy.where(numpy.isnan(x) | numpy.isnan(q), math.nan, result)


zeta = _pointwise("zeta_cpu", "fd")(_zeta)


# B(2k) / (2k)! for k from 1 up.
_EULER_MACLAURIN = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
]  # fmt: skip


def _hurwitz(s: Any, q: ndarray) -> Any:
    """NIST DLMF 25.11.5, the Euler-Maclaurin formula, once the argument has been moved above 14."""
    total = numpy.zeros(q.shape)
    q = q + 0.0
    lowest = float(numpy.fmin.reduce(q, None, initial=14.0))  # ignores nan
    steps = int(15 - lowest)
    for _ in range(steps):
        low = q < 14
        total += numpy.where(low, q**-s, 0)
        q = numpy.where(low, q + 1, q)
    overflowed = numpy.where(numpy.isinf(total), total, 0)
    power = q**-s
    total += power * (q / (s - 1) + 0.5)
    factor = s * power / q
    square = q * q
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        total += coefficient * factor
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / square
    return numpy.where(overflowed, overflowed, total)


# ---------------------------------------------------------------------------------------------------------------------
# The rest


@pointwise("xlogy_cpu")
def xlogy(x: Array, y: Array) -> Any:
    """The product x * log(y), and 0 where `x` is 0, unless `y` is nan."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log(y))


@pointwise("xlog1py_cpu")
def xlog1py(x: Array, y: Array) -> Any:
    """The product x * log(1 + y), and 0 where `x` is 0, unless `y` is nan."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log1p(y))


@pointwise("entr_cpu")
def entr(self: Array) -> Any:
    """`-self * log(self)`: 0 at 0, -inf below."""
    return xp.where(self <= 0, xp.where(self == 0, 0, -math.inf), -self * xp.log(self))
