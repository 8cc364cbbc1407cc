"""The error function and its complement in the language of kernels.

Up to 1, erf(x) is x times a polynomial of x ** 2. Beyond 1, it is 1 - erfc(x). For float32, erfc(x) is exp of a
polynomial. For float64, it is exp(-x ** 2) times a slowly decreasing function, which is a polynomial of (x - 4) / (x +
4) (M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x ** 2) erfc x", Mathematics of
Computation 36, 1981), with coefficients from `scripts/fit_polynomials.py`. The code has no branches. Errors in
units of the last place over dense samples of float32 and float64: erf 1.7 and 1.5, erfc 0.51 and 3.
"""

from __future__ import annotations

import math

from .elementary_exponential import exp_times_power, exp_to_normal, polynomial
from .elementary_logarithm import log, log1p
from .language import T, copysign, f32, f64, fabs, fma, loops, where

# (erf(x) / x * sqrt(pi) / 2 - 1) / x ** 2 by x ** 2 where |x| <= 1; errors 4.6e-9 and 4.8e-19.
_ERF32 = (
    7.42636502527604e-05, -0.0007233372236960693, 0.004612437849378836, -0.0238055617635075, 0.09999966315113018,
    -0.3333333286622636,
)  # fmt: skip
_ERF64 = (
    5.471651197883772e-11, -1.0191926167325135e-09, 1.302087568397087e-08, -1.4494346481933332e-07,
    1.458857725927438e-06, -1.3227488542622525e-05, 0.00010683760003959593, -0.0007575757563866604,
    0.004629629629506736, -0.02380952380951724, 0.09999999999999987, -0.3333333333333333,
)  # fmt: skip

# log(erfc(x)) by x from 0.98 to 4; error 1.7e-8.
_LOG_ERFC32 = (
    1.639938016480626e-06, -4.611291390623815e-05, 0.0005972644331422529, -0.004761717235814106, 0.02642704377214418,
    -0.11009019746356287, -0.6318156995820089, -1.1302392014174953, 0.0003214710263795883,
)  # fmt: skip

# The logarithm of the normal distribution function of -x, by x up to 5.5: least squares, with weights that even out the error of
# its exponential (C. L. Lawson, 1961), which is 7.5e-9.
_LOG_TAIL32 = (
    -1.921534249049728e-06, 2.6770840122480877e-05, -0.0001265362516278401, -0.00010110165749210864, 0.004904334899038076,
    -0.03639370948076248, -0.3182965815067291, -0.7978857159614563, -0.6931471824645996,
)  # fmt: skip

# (1 + 2 x) exp(x ** 2) erfc(x) by (x - 4) / (x + 4) where x is 0.5 at least; error 4.1e-18.
_ERFCX64 = (
    -8.770667946492303e-11, 3.535794891932104e-09, -9.349697635755943e-09, -2.363746618301336e-08,
    1.0286150357443791e-07, 8.299584729051957e-08, -8.19271415173003e-07, 2.8687303788663177e-07,
    5.706447981000652e-06, -1.1218446142820172e-05, -2.439807746549098e-05, 0.00015062048324315496,
    -0.000199256951131126, -0.0007577730327143636, 0.005031970014925508, -0.01619773409222192, 0.03716751553424418,
    -0.0663303658094969, 0.09373283499850824, -0.10103906603641541, 0.06809705425468901, 0.015379652102621521,
    -0.1396211168405625, 1.2329951186255526,
)  # fmt: skip

_SQRT_HALF = math.sqrt(0.5)

# 2 / sqrt(pi) in two parts.
_SLOPE = {f32: (1.128379225730896, -5.863538342219759e-08), f64: (1.1283791670955126, 1.533545961316588e-17)}


@loops(flags="contract")
def _near_zero(x: T) -> T:
    """Return erf(x) for |x| <= 1."""
    z = x * x
    rest = z * polynomial(z, _ERF32 if T.element is f32 else _ERF64)
    SLOPE = _SLOPE[T.element]
    return x * SLOPE[0] + x * (rest * SLOPE[0] + SLOPE[1])


@loops
def erf(x: T) -> T:
    """Return the error function."""
    a = fabs(x)
    if T.element is f32:
        far = T(1) - exp_to_normal(polynomial(where(a < 4, a, T(4)), _LOG_ERFC32))
    else:
        far = T(1) - _complement(where(a < 6, a, T(6)))
    far = where(a == a, far, a)
    return copysign(where(a < 1, _near_zero(a), far), x)


@loops
def normal_cdf(x: T) -> T:
    """Return the normal distribution function, with an absolute error that is small compared with 1."""
    if T.element is f64:
        return erf(x * _SQRT_HALF) * 0.5 + 0.5
    a = fabs(x)
    tail = exp_to_normal(polynomial(where(a > 5.5, T(5.5), a), _LOG_TAIL32))
    tail = where(a > 5.5, T(0), tail)
    return where(x < 0, tail, T(1) - tail)


@loops
def _complement(a: T) -> T:
    """Return erfc(a) in float64 for a from 0.5 to 30. The rounding error of the square is included."""
    square = a * a
    low = fma(a, a, -square)
    return exp_times_power(-square, -low, 0) * _scaled_complement(a)


@loops(in_float64=True)
def erfc(x: T) -> T:
    """Return 1 - erf(x), without cancellation. float32 is computed in float64."""
    a = fabs(x)
    far = _complement(where(a < 27.25, a, T(27.25)))
    value = where(a < 0.5, T(1) - _near_zero(x), where(x < 0, T(2) - far, far))
    return where(x == x, value, x)


@loops(in_float64=True)
def ndtr(x: T) -> T:
    """Return the normal distribution function, without cancellation in its lower tail. float32 is computed in float64."""
    return erfc(x * -_SQRT_HALF) * 0.5


@loops
def _scaled_complement(a: T) -> T:
    """Return exp(a ** 2) * erfc(a) for `a` from 0.5 up."""
    return polynomial((a - 4) / (a + 4), _ERFCX64) / (a * 2 + 1)


_FAR = 1e150
"""Above this number, `(a - 4) / (a + 4)` is replaced by 1."""


@loops(in_float64=True)
def erfcx(x: T) -> T:
    """Return exp(x ** 2) * erfc(x). float32 is computed in float64."""
    a = fabs(x)
    grown = _exp_of_square(x)
    far = _scaled_complement(where(a < _FAR, a, T(_FAR))) * where(a < _FAR, T(1), T(_FAR) / a)
    value = where(a < 0.5, grown * (T(1) - _near_zero(x)), where(x < 0, grown * 2 - far, far))
    return where(x == x, value, x)


@loops
def _exp_of_square(x: T) -> T:
    """Return exp(x ** 2), including the rounding error of the square."""
    a = fabs(x)
    square = a * a
    low = fma(a, a, -square)
    finite = a < 26.75
    value = exp_times_power(where(finite, square, T(0)), where(finite, low, T(0)), 0)
    return where(finite, value, T(math.inf))


@loops(in_float64=True)
def log_ndtr(x: T) -> T:
    """Return the logarithm of `ndtr`, without underflow. float32 is computed in float64."""
    tail = fabs(x) * _SQRT_HALF
    capped = where(tail < _FAR, tail, T(_FAR))
    low = log(_scaled_complement(where(capped > 0.5, capped, T(0.5))) * 0.5) - x * x * 0.5
    high = log1p(erfc(x * _SQRT_HALF) * -0.5)
    value = where(x < -1, low, high)
    return where(x == x, value, x)


FUNCTIONS = {item.name: item for item in (erf, erfc, erfcx, ndtr, log_ndtr, normal_cdf)}
"""By operation."""
