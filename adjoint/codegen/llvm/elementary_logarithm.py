"""Logarithms and functions derived from them in the kernel language: log, log2, log10, log1p, asinh, acosh, atanh.

A number is split into m * 2 ** e with m between sqrt(1/2) and sqrt(2). For float32, the logarithm of m is a polynomial
of m - 1. For float64, it is the series of the inverse hyperbolic tangent of s = (m - 1) / (m + 1), summed as in
"fdlibm" (Sun Microsystems, 1993), with coefficients from `scripts/fit_polynomials.py`. The code has no branches. Errors
in units of the last place over dense samples of float32 and float64: log 0.8 and 0.9, log2 1.0 and 1.1, log10 1.0 and
1.0, log1p 0.8 and 0.9, asinh 0.51 and 1.8, acosh 0.51 and 2.6, atanh 0.51 and 1.7.
"""

from __future__ import annotations

import math

from .elementary_exponential import LN2, LN2_WHOLE, MANTISSA_BITS, polynomial
from .language import *

# (log1p(f) - f + f ** 2 / 2) / f ** 3 where 1 + f is between sqrt(1/2) and sqrt(2); error 2.9e-8.
_LOG1P32 = (
    0.06972518633879542, -0.11481212058518439, 0.11685784721037067, -0.12425523359933803, 0.14249007240593695,
    -0.16667807132962642, 0.20000717213085337, -0.24999996925400272, 0.3333333117427613,
)  # fmt: skip

# (2 atanh(s) / s - 2) / s ** 2 by s ** 2 where |s| <= 0.1716; error 3.1e-16.
_ATANH64 = (
    0.1461703754879165, 0.1533167403016786, 0.18182890556695602, 0.2222221111514416, 0.2857142862609589,
    0.3999999999989924, 0.666666666666667,
)  # fmt: skip

# 1 / log(2), 1 / log(10) and log10(2), each in two parts: products with the first one are exact.
_LOG2_E = {f32: (1.44287109375, -0.00017605286103659264), f64: (1.4426950514316559, -1.0542692476429138e-08)}
_LOG10_E = {f32: (0.434326171875, -3.168997174817235e-05), f64: (0.4342944845557213, -2.6524694553078553e-09)}
_LOG10_2 = {f32: (0.301025390625, 4.605038981195214e-06), f64: (0.3010299955494702, 1.1451100898021838e-10)}

_LOW_BITS = {f32: 12, f64: 27}

_SMALLEST_NORMAL = {f32: 2.0**-126, f64: 2.0**-1022}
_SQRT_HALF_BITS = {f32: 0x3F3504F3, f64: 0x3FE6A09E667F3BCD}


@loops
def parted(x: T) -> tuple[T, T]:
    """Return `m` and `e` of a positive number m * 2 ** e, where m is between sqrt(1/2) and sqrt(2)."""
    subnormal = x < _SMALLEST_NORMAL[T.element]
    all_bits = bits(where(subnormal, x * 2.0 ** MANTISSA_BITS[T.element], x))
    e = (all_bits - _SQRT_HALF_BITS[T.element]) >> MANTISSA_BITS[T.element]
    m = from_bits(all_bits - (e << MANTISSA_BITS[T.element]), T)
    return m, T(e) - where(subnormal, T(MANTISSA_BITS[T.element]), T(0))


@loops(flags="contract")
def log1p_rest(f: T) -> T:
    """Return `log1p(f) - f` for 1 + f between sqrt(1/2) and sqrt(2)."""
    if T.element is f32:
        return f * f * (f * polynomial(f, _LOG1P32) - 0.5)
    s = f / (f + 2)
    z = s * s
    half = f * f * 0.5
    return s * (half + z * polynomial(z, _ATANH64)) - half


@loops
def _with_limits(x: T, value: T) -> T:
    """Return `value`, the logarithm of `x`, if `x` is positive and finite. Otherwise return the value that IEEE 754 specifies."""
    value = where(x > 0, value, where(x == 0, T(-math.inf), T(math.nan)))
    return where(x == math.inf, x, value)


@loops(flags="contract")
def log(x: T) -> T:
    """Return the natural logarithm."""
    m, e = parted(x)
    f = m - 1
    return _with_limits(x, e * LN2[T.element][0] + (f + (log1p_rest(f) + e * LN2[T.element][1])))


@loops(flags="contract")
def _in_base(f: T, FACTOR: Static) -> T:
    """Return `log1p(f)` times a constant in two parts. The leading product is exact."""
    head = from_bits((bits(f) >> _LOW_BITS[T.element]) << _LOW_BITS[T.element], T)
    return head * FACTOR[0] + ((f - head) * FACTOR[0] + (f * FACTOR[1] + log1p_rest(f) * (FACTOR[0] + FACTOR[1])))


@loops(flags="contract")
def log2(x: T) -> T:
    """Return the logarithm to the base 2. It is exact for powers of two."""
    m, e = parted(x)
    return _with_limits(x, e + _in_base(m - 1, _LOG2_E[T.element]))


@loops(flags="contract")
def log10(x: T) -> T:
    """Return the logarithm to the base 10."""
    m, e = parted(x)
    PARTS = _LOG10_2[T.element]
    return _with_limits(x, e * PARTS[0] + (_in_base(m - 1, _LOG10_E[T.element]) + e * PARTS[1]))


@loops(flags="contract")
def log1p(x: T) -> T:
    """Return `log(1 + x)`. The rounding error of the sum is added to the logarithm."""
    u = x + 1
    m, e = parted(u)
    whole = e == 0
    f = where(whole, x, m - 1)
    lost = where(x > 1, T(1) - (u - x), x - (u - 1))
    correction = where(whole, T(0), lost / u)
    value = e * LN2[T.element][0] + (f + (log1p_rest(f) + (e * LN2[T.element][1] + correction)))
    return where(x == 0, x, _with_limits(u, value))


@loops(in_float64=True)
def asinh(x: T) -> T:
    """Return the inverse hyperbolic sine. float32 is computed in float64."""
    a = fabs(x)
    large = a > 2.0**60
    square = a * a
    inner = a + square / (sqrt(square + 1) + 1)
    return copysign(log1p(where(large, a, inner)) + where(large, T(LN2_WHOLE), T(0)), x)


@loops(in_float64=True)
def acosh(x: T) -> T:
    """Return the inverse hyperbolic cosine. float32 is computed in float64."""
    large = x > 2.0**60
    t = x - 1
    inner = t + sqrt(t * (t + 2))
    value = log1p(where(large, x, inner)) + where(large, T(LN2_WHOLE), T(0))
    return where(x >= 1, value, T(math.nan))


@loops(in_float64=True)
def atanh(x: T) -> T:
    """Return the inverse hyperbolic tangent. float32 is computed in float64."""
    a = fabs(x)
    doubled = a + a
    value = log1p(doubled + doubled * a / (T(1) - a)) * 0.5
    return copysign(where(a <= 1, value, T(math.nan)), x)
