"""Special functions elementwise: the error function, the gamma function's logarithm, the normal distribution.

float64 is accurate to a few units in the last place (near the zeros of `lgamma`, `digamma` and `log_ndtr`, relative to
the terms that cancel there). float32 is computed in float64 and rounded, except `erf`. The formulas are polynomials and
rational functions, each on the part of the array that lies in its range; small arrays go through the `math` module,
which costs less than a formula's many passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen import special_coefficients as coefficients
from ...codegen.elementary import FUNCTIONS, decomposition, elementary, in_kernels, polynomial
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import xp

Array = numpy.ndarray[Any, Any]

_FEW = 512  # elements up to which a Python call for each is the cheaper way
_SQRT_HALF = math.sqrt(0.5)
_INVERSE_SQRT_PI = 1 / math.sqrt(math.pi)


def _pointwise(refusal: str, kinds: str = "f") -> Callable[[Callable[..., Any]], Any]:
    """Make a function `_name` of float64 arrays into the elementary function `name`, and return the kernel of that alone."""

    def declare(function: Callable[..., Any]) -> Any:
        name = function.__name__.removeprefix("_")
        elementary(name)(function)
        return of_operation(name, refusal, kinds, function.__code__.co_argcount, function.__doc__)

    return declare


def _in_kernels(name: str, refusal: str, kinds: str = "f") -> Any:
    """Make a function in the language of kernels an elementary function, and return the kernel of that alone."""
    in_kernels("elementary_special", name)
    return of_operation(name, refusal, kinds)


def _one_by_one(function: Callable[[float], float], x: ndarray) -> ndarray:
    result = numpy.empty_like(x)
    result[...] = numpy.fromiter(map(function, x.reshape(-1).tolist()), numpy.float64, x.size).reshape(x.shape)
    return result


def _piecewise(x: ndarray, *pieces: tuple[ndarray, Callable[[ndarray], Any]]) -> ndarray:
    """Each function's values where its condition is the first to hold; nan where none does."""
    result = numpy.full_like(x, math.nan)
    free = numpy.ones_like(x, bool)
    for condition, function in pieces:
        here = condition & free
        if here.all():
            return asarray(function(x))
        if here.any():
            result[here] = function(x[here])
            free &= ~condition
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The error function

# erf(x) = tanh(x p(x ** 2)); p fits atanh(erf(x)) / x on [0, 4.1] with a relative error of erf below 3.2e-8.
_ERF_SINGLE = (
    -1.6407388343877219e-09, 5.391642685877616e-08, -5.15099497376279e-07, -1.860991090529486e-06,
    7.648922059040508e-05, -0.0006036801154681473, -0.00020215277085595495, 0.10277131534988769, 1.1283792022806272,
)  # fmt: skip
_ERF_SINGLE_LIMIT = 16.8

# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969).
_CODY_A = (
    1.85777706184603153e-1,
    3.16112374387056560,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_CODY_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_CODY_C = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
    8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_CODY_D = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
_CODY_P = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
_CODY_Q = (
    1.0,
    2.56852019228982242,
    1.87295284992346725,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_CODY_SPLIT = 0.46875


def _erf(x: ndarray) -> ndarray:
    """The error function, twice the integral of exp(-t ** 2) / sqrt(pi) from 0 to `x`."""
    if x.size <= _FEW:
        return _one_by_one(math.erf, x)
    magnitude = numpy.abs(x)
    return _piecewise(
        x,
        (asarray(magnitude <= _CODY_SPLIT), _erf_center),
        (asarray(magnitude >= 0), _erf_outside),
    )


erf = _pointwise("erf_vml_cpu")(_erf)


@decomposition("erf", numpy.float32)
def _erf_single(x: Any) -> Any:
    square = xp.minimum(x * x, _ERF_SINGLE_LIMIT)
    slope = square * _ERF_SINGLE[0] + _ERF_SINGLE[1]
    for coefficient in _ERF_SINGLE[2:]:
        slope = slope * square + coefficient
    return xp.tanh(slope * x)


def _erf_outside(x: ndarray) -> Any:
    """Beyond 4 the complement is below 2e-8, so what the formula for [0.46875, 4] loses there does not show."""
    magnitude = numpy.minimum(numpy.abs(x), 6)
    complement = polynomial(magnitude, _CODY_C)
    complement /= polynomial(magnitude, _CODY_D)
    magnitude *= -magnitude
    complement *= numpy.exp(magnitude, out=magnitude)
    return numpy.copysign(1 - complement, x)


def _erf_center(x: ndarray) -> Any:
    square = x * x
    return x * (polynomial(square, _CODY_A) / polynomial(square, _CODY_B))


def _erfc(x: ndarray) -> ndarray:
    """1 - erf(x), without cancellation for large `x`."""
    if x.size <= _FEW:
        return _one_by_one(math.erfc, x)
    return _piecewise(
        x,
        (asarray(numpy.abs(x) <= _CODY_SPLIT), lambda part: 1 - _erf_center(part)),
        (asarray(x > 0), _erfc_positive),
        (asarray(x < 0), lambda part: 2 - _erfc_positive(-part)),
    )


erfc = _pointwise("erfc_vml_cpu")(_erfc)


def _erfc_positive(x: Any) -> Any:
    """Where `x` is not less than 0.46875. The square is split so that its rounding is not magnified by exp."""
    x = numpy.minimum(x, 30)  # beyond, the result is 0
    high = numpy.trunc(x * 16) / 16
    return numpy.exp(-high * high) * numpy.exp(-(x - high) * (x + high)) * _erfcx_positive(x)


def _erfcx_positive(x: ndarray) -> ndarray:
    return _piecewise(
        x,
        (asarray(x <= 4), lambda part: polynomial(part, _CODY_C) / polynomial(part, _CODY_D)),
        (asarray(x > 4), _erfcx_tail),
    )


def _erfcx_tail(x: ndarray) -> Any:
    inverse = 1 / (x * x)
    return (_INVERSE_SQRT_PI - inverse * (polynomial(inverse, _CODY_P) / polynomial(inverse, _CODY_Q))) / x


def _erfcx(x: ndarray) -> ndarray:
    """exp(x ** 2) * erfc(x)."""
    return _piecewise(
        x,
        (asarray(numpy.abs(x) <= _CODY_SPLIT), lambda part: numpy.exp(part * part) * (1 - _erf_center(part))),
        (asarray(x > 0), _erfcx_positive),
        (asarray(x < 0), lambda part: 2 * numpy.exp(part * part) - _erfcx_positive(-part)),
    )


erfcx = _pointwise("erfcx_cpu", "fd")(_erfcx)


# ---------------------------------------------------------------------------------------------------------------------
# The normal distribution function, with an absolute error of one or two units in the last place of 1

# (1 + tanh(x p(x ** 2))) / 2. p fits atanh(2 Phi(x) - 1) / x on [0, 5.6] with an error of Phi below 3e-8, and keeps tanh at 1
# beyond.
_NORMAL_SINGLE = (
    1.75627884e-09, -1.32266326e-07, 3.96477369e-06, -5.53063195e-05, -3.25947388e-05, 3.63330844e-02, 7.97884941e-01,
)  # fmt: skip

# Phi(-x) exp(x ** 2 / 2) for x in [0, 8.5]: the error times exp(-x ** 2 / 2) is below 2.2e-17.
_NORMAL_NUMERATOR = (
    8.000845887642912e-05, 0.0015893912836489705, 0.014466492098525173, 0.0769781690130873, 0.2544327409208014,
    0.5022262315899158, 0.5,
)  # fmt: skip
_NORMAL_DENOMINATOR = (
    0.0002005477700989391, 0.003984165972216006, 0.03645956176621568, 0.19698101698740855, 0.6732263633313894,
    1.446922366640385, 1.802337023982707, 1.0,
)  # fmt: skip
_NORMAL_FAR = 38  # the density is 0 beyond


@decomposition("normal_cdf", numpy.float32)
def _normal_cdf_single(x: Any) -> Any:
    square = x * x
    slope = square * _NORMAL_SINGLE[0] + _NORMAL_SINGLE[1]
    for coefficient in _NORMAL_SINGLE[2:]:
        slope = slope * square + coefficient
    return xp.tanh(slope * x) * 0.5 + 0.5


@elementary("normal_cdf")
def _normal_cdf(x: ndarray) -> ndarray:
    if x.size <= _FEW:
        return _one_by_one(lambda number: math.erfc(-number * _SQRT_HALF) / 2, x)
    distance = numpy.minimum(numpy.abs(x), _NORMAL_FAR)
    tail = polynomial(distance, _NORMAL_NUMERATOR)
    tail /= polynomial(distance, _NORMAL_DENOMINATOR)
    distance *= distance
    distance *= -0.5
    tail *= numpy.exp(distance, out=distance)
    numpy.subtract(0.5, tail, out=tail)
    numpy.copysign(tail, x, out=tail)
    tail += 0.5
    return tail


# ---------------------------------------------------------------------------------------------------------------------
# The normal distribution


_CENTER = coefficients.QUANTILE_CENTER_NUMERATOR, coefficients.QUANTILE_CENTER_DENOMINATOR
_TAIL = coefficients.QUANTILE_TAIL_NUMERATOR, coefficients.QUANTILE_TAIL_DENOMINATOR
_FAR = coefficients.QUANTILE_FAR_NUMERATOR, coefficients.QUANTILE_FAR_DENOMINATOR


def _ratio(x: ndarray, polynomials: tuple[Any, Any]) -> Any:
    numerator, denominator = polynomials
    return polynomial(x, numerator) / polynomial(x, denominator)


def _quantile(distance: ndarray, tail: ndarray) -> ndarray:
    """The normal quantile at 0.5 + distance, where 0.5 - abs(distance) is `tail`, given apart to keep its precision."""
    result = numpy.full_like(distance, math.nan)
    center = asarray(numpy.abs(distance) <= 0.425)
    q = distance[center]
    square = 0.180625 - q * q
    result[center] = q * _ratio(square, _CENTER)
    outside = asarray((tail > 0) & ~center)
    root = numpy.sqrt(-numpy.log(tail[outside]))
    size = _piecewise(
        root,
        (root <= 5, lambda r: _ratio(r - 1.6, _TAIL)),
        (root > 5, lambda r: _ratio(r - 5, _FAR)),
    )
    result[outside] = numpy.copysign(size, distance[outside])
    edge = asarray(tail == 0)
    result[edge] = numpy.copysign(math.inf, distance[edge])
    return result


def _ndtri(x: ndarray) -> ndarray:
    """The number that a standard normal variable is below with probability `x`; the inverse of `ndtr`."""
    return _quantile(asarray(x - 0.5), asarray(numpy.minimum(x, 1 - x)))


ndtri = _pointwise("ndtri_cpu", "fd")(_ndtri)


def _erfinv(x: ndarray) -> ndarray:
    """The inverse of `erf`: infinite at -1 and 1, nan beyond."""
    result = _quantile(asarray(x * 0.5), asarray((1 - numpy.abs(x)) * 0.5))
    result *= _SQRT_HALF
    return result


erfinv = _pointwise("erfinv_vml_cpu")(_erfinv)


def _ndtr(x: ndarray) -> ndarray:
    """The probability that a standard normal variable is below `x`."""
    return 0.5 * _erfc(asarray(x * -_SQRT_HALF))


ndtr = _pointwise("ndtr_cpu")(_ndtr)


def _log_ndtr(x: ndarray) -> ndarray:
    """The logarithm of `ndtr`, without underflow."""
    return _piecewise(
        x,
        (asarray(x < -1), lambda part: numpy.log(0.5 * _erfcx(part * -_SQRT_HALF)) - 0.5 * part * part),
        (asarray(x >= -1), lambda part: numpy.log1p(-0.5 * _erfc(part * _SQRT_HALF))),
    )


log_ndtr = _pointwise("log_ndtr_cpu", "fd")(_log_ndtr)


# ---------------------------------------------------------------------------------------------------------------------
# The gamma function

lgamma = _in_kernels("lgamma", "lgamma_vml_cpu")
_LGAMMA_OF_ARRAYS = FUNCTIONS["lgamma"]


def _lgamma(x: ndarray) -> ndarray:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers."""
    if x.size <= _FEW and x.size and bool(numpy.all((x > 0) & (x < 1e300))):
        return _one_by_one(math.lgamma, x)
    return asarray(_LGAMMA_OF_ARRAYS(x))


elementary("lgamma")(_lgamma)
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
