"""Elementwise special functions: the error function and its relatives, gamma and Bessel functions, orthogonal polynomials.

Most are written in the language of kernels (`codegen.llvm.elementary_gaussian`, `elementary_special`,
`elementary_bessel` and `elementary_polynomials`), and NumPy computes arrays with the same source. float64 is accurate
to a few units in the last place (near the zeros of `lgamma`, `digamma` and `log_ndtr`, relative to the terms that
cancel there). float32 is computed in float64 and rounded, except `erf`. Small arrays use the `math` module, which takes
less time than the many passes of a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.elementary import FUNCTIONS, PIECEWISE_OPERATIONS, decomposition, elementary, in_kernels
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import apply, xp
from ..runtime.costs import STEPS
from ..runtime.floating import Array

_SQRT_HALF = math.sqrt(0.5)
_GAUSSIAN = "elementary_gaussian"


def _in_kernels(
    name: str, refusal: str, kinds: str = "f", module: str = "elementary_special", *, arity: int = 1
) -> Any:
    """Declare a function in the language of kernels as an elementary function, and return the kernel that applies it."""
    in_kernels(module, name, arity)
    return of_operation(name, refusal, kinds, arity)


def _one_by_one(name: str, function: Callable[[float], float], smallest: float = -math.inf) -> None:
    """Compute a few elements, none less than `smallest`, with a function of numbers, because this is faster."""
    of_arrays = FUNCTIONS[name]

    def few(x: ndarray) -> ndarray:
        if x.size > STEPS or not (smallest == -math.inf or bool(numpy.all((x > smallest) & (x < 1e300)))):
            return asarray(of_arrays(x))
        result = numpy.empty_like(x)
        result[...] = numpy.fromiter(map(function, x.reshape(-1).tolist()), numpy.float64, x.size).reshape(x.shape)
        return result

    elementary(name)(few)
    PIECEWISE_OPERATIONS[name] = 2


# --- the error function ---------------------------------------------------------------------------------------

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

# --- the normal distribution ----------------------------------------------------------------------------------


ndtri = _in_kernels("ndtri", "ndtri_cpu", "fd")
erfinv = _in_kernels("erfinv", "erfinv_vml_cpu", "f")
ndtr = _in_kernels("ndtr", "ndtr_cpu", "f", _GAUSSIAN)
_one_by_one("ndtr", _probability_below)
log_ndtr = _in_kernels("log_ndtr", "log_ndtr_cpu", "fd", _GAUSSIAN)
_one_by_one(
    "log_ndtr", lambda x: math.log(_probability_below(x)) if x < -1 else math.log1p(-math.erfc(x * _SQRT_HALF) / 2), -35
)

# --- the gamma function ---------------------------------------------------------------------------------------

lgamma = _in_kernels("lgamma", "lgamma_vml_cpu")
_one_by_one("lgamma", math.lgamma, 0)
digamma = _in_kernels("digamma", "digamma")


def polygamma(n: int, x: ndarray) -> ndarray:
    """Return the `n`-th derivative of `digamma`."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    return _trigamma_kernel.general(x) if n == 1 else _polygamma_kernel.general(x, n)


_trigamma_kernel = _in_kernels("trigamma", "trigamma")


in_kernels("elementary_special", "polygamma_of_order", 2)


@pointwise("polygamma")
def _polygamma_kernel(self: Array, n: int) -> Any:
    """Return the `n`-th derivative of `digamma`, for `n` greater than 1."""
    return xp.polygamma_of_order(self, n)


zeta = _in_kernels("zeta", "zeta_cpu", "fd", arity=2)

# ---------------------------------------------------------------------------------------------------------------------
# Bessel functions and modified Bessel functions of both kinds and orders 0 and 1, and the Airy function


def _bessel(name: str, kinds: str = "fd") -> Any:
    return _in_kernels(name, f"{name}_cpu", kinds, "elementary_bessel")


i0, i0e, i1, i1e = [_bessel(name, "f") for name in ("i0", "i0e", "i1", "i1e")]
bessel_j0, bessel_j1 = _bessel("bessel_j0"), _bessel("bessel_j1")
bessel_y0, bessel_y1 = _bessel("bessel_y0"), _bessel("bessel_y1")
modified_bessel_k0, modified_bessel_k1 = _bessel("modified_bessel_k0"), _bessel("modified_bessel_k1")
scaled_modified_bessel_k0 = _bessel("scaled_modified_bessel_k0")
scaled_modified_bessel_k1 = _bessel("scaled_modified_bessel_k1")
airy_ai = _bessel("airy_ai")


@pointwise("modified_bessel_i0_cpu", "fd")
def modified_bessel_i0(self: Array) -> Any:
    """Return `i0`, but NaN at infinity."""
    return xp.where(xp.abs(self) == math.inf, math.nan, xp.i0(self))


@pointwise("modified_bessel_i1_cpu", "fd")
def modified_bessel_i1(self: Array) -> Any:
    """Return `i1`, but NaN at infinity."""
    return xp.where(xp.abs(self) == math.inf, math.nan, xp.i1(self))


@pointwise("spherical_bessel_j0_cpu", "fd")
def spherical_bessel_j0(x: Array) -> Any:
    """Return `sin(x) / x`, which is 1 at 0 and 0 at infinity."""
    return xp.where(x == 0, 1.0, xp.where(xp.abs(x) == math.inf, 0.0, xp.sin(x) / x))


# --- orthogonal polynomials with a separate degree for each element -------------------------------------------


def polynomials(name: str, shifted: bool = False) -> Any:
    """Return the kernel of a family. If `shifted`, the argument is `2 x - 1`, so that the interval is from 0 to 1."""
    if not shifted:
        in_kernels("elementary_polynomials", name, 2, wide=False)
        return of_operation(name, f"{name}_cpu", "fd", 2)

    def polynomial(x: Array, n: Array) -> Any:
        return apply(name, x + x - 1, n)

    polynomial.__name__ = f"shifted_{name}"
    return pointwise(f"{name}_cpu", "fd")(polynomial)


# --- the rest -------------------------------------------------------------------------------------------------


@pointwise("xlogy_cpu")
def xlogy(x: Array, y: Array) -> Any:
    """Return the product x * log(y), which is 0 where `x` is 0 unless `y` is NaN."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log(y))


@pointwise("xlog1py_cpu")
def xlog1py(x: Array, y: Array) -> Any:
    """Return the product x * log(1 + y), which is 0 where `x` is 0 unless `y` is NaN."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log1p(y))


@pointwise("entr_cpu")
def entr(self: Array) -> Any:
    """Return `-self * log(self)`, which is 0 at 0 and -inf for negative numbers."""
    return xp.where(self <= 0, xp.where(self == 0, 0, -math.inf), -self * xp.log(self))
