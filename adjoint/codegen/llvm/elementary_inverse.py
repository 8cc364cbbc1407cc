"""Inverse trigonometric functions and the cube root in the language of kernels: asin, acos, atan, atan2, cbrt, and hypot.

Up to 1/2, asin and acos use a polynomial. Beyond 1/2, they use asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). The argument of atan
is reduced below tan(pi/8) with atan(a) = pi/4 + atan((a - 1) / (a + 1)) and atan(a) = pi/2 + atan(-1 / a) (S. L. Moshier,
"Methods and Programs for Mathematical Functions", 1989). The polynomials are from `scripts/fit_polynomials.py`. The code has no
branches. Errors in units of the last place over dense samples of float32 and float64: asin 1.8 and 2.0, acos 1.1 and 1.2, atan
1.8 and 2.0, atan2 0.51 and 1.7, cbrt 0.51 and 1.0, hypot 0.51 and 1.2.
"""

from __future__ import annotations

import math

from .elementary_exponential import polynomial
from .elementary_logarithm import parted
from .language import *

# (asin(x) / x - 1) / x ** 2 by x ** 2 where |x| <= 1/2; errors 4.2e-9 and 1.5e-17.
_ASIN32 = (
    0.03369084720283012, 0.017149238357677253, 0.03110066273549457, 0.04459940152851218, 0.07500094543497424,
    0.16666666337430908,
)  # fmt: skip
_ASIN64 = (
    0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358, 0.01032281435018578,
    0.011479177415184906, 0.013971212973552933, 0.017352392720869973, 0.02237217294214989, 0.030381944138531247,
    0.04464285714635543, 0.07499999999998433, 0.16666666666666669,
)  # fmt: skip

# (atan(t) / t - 1) / t ** 2 by t ** 2 where |t| <= tan(pi/8); errors 5.4e-10 and 3.2e-17.
_ATAN32 = (
    0.05048055010223574, -0.08624643784438364, 0.11071360682318138, -0.14284150959481018, 0.19999977254347343,
    -0.33333333279242233,
)  # fmt: skip
_ATAN64 = (
    -0.01917627151752634, 0.0392311556198723, -0.050854323376990765, 0.05858145587628202, -0.06664511064599371,
    0.07692183163650894, -0.09090904576954117, 0.11111111015227572, -0.14285714284666184, 0.19999999999995519,
    -0.3333333333333333,
)  # fmt: skip

_TAN_EIGHTH = math.sqrt(2) - 1
_PI = {f32: (3.1415927410125732, -8.742277657347586e-08), f64: (3.141592653589793, 1.2246467991473532e-16)}
"""Pi in two parts."""


@loops(flags="contract")
def _asin_series(t: T, z: T) -> T:
    return t + t * z * polynomial(z, _ASIN32 if T.element is f32 else _ASIN64)


@loops
def asin(x: T) -> T:
    """Return the inverse sine."""
    PI = _PI[T.element]
    a = fabs(x)
    far = a > 0.5
    z = where(far, (T(1) - a) * 0.5, a * a)
    value = _asin_series(where(far, sqrt(z), a), z)
    return copysign(where(far, (T(PI[0] / 2) - value * 2) + PI[1] / 2, value), x)


@loops
def acos(x: T) -> T:
    """Return the inverse cosine."""
    PI = _PI[T.element]
    a = fabs(x)
    far = a > 0.5
    z = where(far, (T(1) - a) * 0.5, a * a)
    value = _asin_series(where(far, sqrt(z), x), z)
    near = T(PI[0] / 2) - (value - PI[1] / 2)
    return where(far, where(x > 0, value * 2, T(PI[0]) - (value * 2 - PI[1])), near)


@loops(flags="contract")
def _atan_series(t: T, low: T) -> T:
    z = t * t
    return t + (t * z * polynomial(z, _ATAN32 if T.element is f32 else _ATAN64) + low)


@loops
def atan(x: T) -> T:
    """Return the inverse tangent."""
    PI = _PI[T.element]
    a = fabs(x)
    middle = a > _TAN_EIGHTH
    far = a > 1 / _TAN_EIGHTH
    numerator = where(far, T(-1), where(middle, a - 1, a))
    denominator = where(far, a, where(middle, a + 1, T(1)))
    eighths = where(far, T(0.5), where(middle, T(0.25), T(0)))
    return copysign(eighths * PI[0] + _atan_series(numerator / denominator, eighths * PI[1]), x)


@loops(in_float64=True)
def atan2(y: T, x: T) -> T:
    """Return the angle of the point (x, y). float32 is computed in float64."""
    PI = _PI[T.element]
    across, up = fabs(x), fabs(y)
    unordered = (x != x) | (y != y)
    both = (across == math.inf) & (up == math.inf)
    across = where(both, T(1), across)
    up = where(both, T(1), up)
    large = (across > 1e300) | (up > 1e300)
    across = where(large, across * 0.125, across)
    up = where(large, up * 0.125, up)
    small = (across < 1e-290) & (up < 1e-290)
    across = where(small, across * 2.0**100, across)
    up = where(small, up * 2.0**100, up)
    steep = up > across
    short, long = where(steep, across, up), where(steep, up, across)
    middle = short > long * _TAN_EIGHTH
    numerator = where(middle, short - long, short)
    denominator = where(middle, short + long, where(long == 0, T(1), long))
    eighths = where(middle, T(0.25), T(0))
    angle = eighths * PI[0] + _atan_series(numerator / denominator, eighths * PI[1])
    angle = where(steep, T(PI[0] / 2) - (angle - PI[1] / 2), angle)
    angle = where(bits(x) < 0, T(PI[0]) - (angle - PI[1]), angle)
    return where(unordered, T(math.nan), copysign(angle, y))


@loops(in_float64=True)
def cbrt(x: T) -> T:
    """Return the cube root by Halley's method, each step of which cubes the error. float32 is computed in float64."""
    a = fabs(x)
    m, e = parted(a)
    thirds = rint(e * (1 / 3))
    rest = e - thirds * 3
    m = where(rest == 0, m, where(rest > 0, m * 2, m * 0.5))
    root = ((m * 0.065 - 0.32) * m + 0.86) * m + 0.40
    for _ in (1, 2, 3):
        cube = root * root * root
        root = root + root * (m - cube) / (cube * 2 + m)
    value = root * from_bits((i64(thirds) + 1023) << 52, T)
    return where((a > 0) & (a < math.inf), copysign(value, x), x)


@loops
def hypot(x: T, y: T) -> T:
    """Return `sqrt(x * x + y * y)` without overflow. float32 is computed in float64."""
    if T.element is f32:
        wide_x, wide_y = f64(x), f64(y)
        value = T(sqrt(wide_x * wide_x + wide_y * wide_y))
    else:
        value = _hypot(fabs(x), fabs(y))
    return where((fabs(x) == math.inf) | (fabs(y) == math.inf), T(math.inf), value)


@loops(flags="contract")
def _hypot(a: T, b: T) -> T:
    scale = where((a > 1e150) | (b > 1e150), T(2.0**-600), where((a < 1e-140) & (b < 1e-140), T(2.0**600), T(1)))
    c, d = a * scale, b * scale
    return sqrt(c * c + d * d) / scale
