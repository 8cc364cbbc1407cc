"""Exponential functions in the language of kernels: exp, exp2, expm1, tanh, sinh, and cosh, for one number or a vector.

The argument is reduced by a multiple of ln 2 (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions",
1980), a polynomial approximates the remainder (`scripts/fit_polynomials.py`), and a power of two scales the result in
two steps, so that subnormal results are rounded only once. The code has no branches. Errors in units of the last place
over dense samples of float32 and float64: exp 1.0 and 1.0, exp2 1.0 and 1.1, expm1 1.4 and 1.8, tanh 1.3 and 1.4, sinh
0.51 and 1.7, cosh 0.51 and 1.5.
"""

from __future__ import annotations

import math
from typing import Any

from .language import *

# (exp(r) - 1 - r) / r ** 2 where |r| <= ln(2) / 2; errors 6.5e-8, for exp itself, 1.4e-9 and 1.4e-18.
_EXP32 = (0.0013926213466332444, 0.008363202971575855, 0.04166655443768594, 0.16666576845993977, 0.5)
_EXPM132 = (
    0.00019891030654370327, 0.0013933685862617174, 0.008333310889582076, 0.04166646460202654, 0.16666666681659179,
    0.5000000013498178,
)  # fmt: skip
_EXPM164 = (
    2.0914717341716378e-09, 2.5105259538448494e-08, 2.755727357010214e-07, 2.7557255297969643e-06,
    2.4801587325605324e-05, 0.0001984126987490126, 0.001388888888888373, 0.008333333333326112, 0.04166666666666667,
    0.1666666666666667, 0.5,
)  # fmt: skip

# (tanh(x) / x - 1) / x ** 2 by x ** 2 where |x| <= 0.625; errors 1.6e-9 and 3.9e-18.
_TANH32 = (
    0.002292744816178142, -0.008343945515839153, 0.02176891865102821, -0.053959259577204544, 0.1333330355691574,
    -0.3333333317214036,
)  # fmt: skip
_TANH64 = (
    6.485163482793113e-06, -3.12011014257974e-05, 9.257116129556769e-05, -0.0002375906496055562,
    0.0005896606577757043, -0.0014557754120478055, 0.0035921217511549622, -0.008863235103240878, 0.021869488519008305,
    -0.05396825396789699, 0.13333333333333042, -0.3333333333333333,
)  # fmt: skip

# (sinh(x) / x - 1) / x ** 2 by x ** 2 where |x| <= 1; error 2.5e-22.
_SINH64 = (
    2.8445264169895285e-15, 7.646625361656657e-13, 1.6059048396350562e-10, 2.505210836405804e-08,
    2.755731922404034e-06, 0.00019841269841269773, 0.008333333333333333, 0.16666666666666666,
)  # fmt: skip

LN2 = {f32: (0.693359375, -0.00021219444005469057), f64: (0.6931471806019545, -4.2009150726810846e-11)}
"""The logarithm of 2 in two parts. The first part has few bits, so its integer multiples are exact."""

_LOG2_E = 1.4426950408889634

ROUNDER = {f32: 1.5 * 2**23, f64: 1.5 * 2**52}
"""Adding this number rounds to an integer in the low bits of the sum. Subtracting it gives the rounded number."""

ROUNDER_BITS = {f32: 0x4B400000, f64: 0x4338000000000000}
MANTISSA_BITS = {f32: 23, f64: 52}
EXPONENT_BIAS = {f32: 127, f64: 1023}
_EXP_LIMITS = {f32: (-104.0, 89.0), f64: (-746.0, 710.0)}
_EXP2_LIMITS = {f32: (-151.0, 129.0), f64: (-1076.0, 1025.0)}
_EXPM1_LIMITS = {f32: (-18.0, 89.0), f64: (-38.0, 710.0)}


@loops(flags="contract")
def polynomial(x: T, COEFFICIENTS: Static) -> T:
    """Return the polynomial with these coefficients, which start with the highest power."""
    value = T(COEFFICIENTS[0])
    for K in range_of(COEFFICIENTS):
        value = value * x + COEFFICIENTS[K]
    return value


def range_of(coefficients: Any) -> range:
    """Iterate over the positions after the first."""
    return range(1, len(coefficients))


@loops
def clamped(x: T, LIMITS: Static) -> T:
    """Limit `x` to an interval. NaN is returned unchanged."""
    x = where(x < LIMITS[0], T(LIMITS[0]), x)
    return where(x > LIMITS[1], T(LIMITS[1]), x)


@loops(flags="contract")
def exp_remainder(r: T) -> T:
    """Return `exp(r)` for |r| <= ln(2) / 2."""
    return T(1) + (r + r * r * polynomial(r, _EXP32 if T.element is f32 else _EXPM164))


@loops
def scaled(value: T, shifted: T, EXTRA: Static) -> T:
    """Return `value` times 2 to the power n + EXTRA, where `shifted` contains the integer n."""
    if HOST.vector_bytes == 64:
        return scale(value, shifted - (ROUNDER[T.element] - EXTRA))
    n = bits(shifted) - (ROUNDER_BITS[T.element] - EXTRA)
    half = n >> 1
    first = from_bits((half + EXPONENT_BIAS[T.element]) << MANTISSA_BITS[T.element], T)
    second = from_bits((n - half + EXPONENT_BIAS[T.element]) << MANTISSA_BITS[T.element], T)
    return value * first * second


@loops(flags="contract")
def reduced(x: T) -> Any:
    """Return `x` minus a multiple of ln 2, and the number that contains this multiple (see `scaled`)."""
    shifted = x * _LOG2_E + ROUNDER[T.element]
    k = shifted - ROUNDER[T.element]
    return x - k * LN2[T.element][0] - k * LN2[T.element][1], shifted


@loops
def exp_times_power(x: T, low: Any, EXTRA: Static) -> T:
    """Return `exp(x + low)` times 2 ** EXTRA for `x` within the limits, where `low` is the rounding error of `x`."""
    r, shifted = reduced(x)
    if low is not None:
        r = r + low
    return scaled(exp_remainder(r), shifted, EXTRA)


@loops
def exp_to_normal(x: T) -> T:
    """Return `exp(x)` for results that are normal numbers below 2 ** 127, which are scaled in one step."""
    r, shifted = reduced(x)
    if HOST.vector_bytes == 64:
        return scaled(exp_remainder(r), shifted, 0)
    power = (bits(shifted) << MANTISSA_BITS[T.element]) + (EXPONENT_BIAS[T.element] << MANTISSA_BITS[T.element])
    return exp_remainder(r) * from_bits(power, T)


@loops
def exp(x: T) -> T:
    """Return `e` to the power `x`."""
    return exp_times_power(clamped(x, _EXP_LIMITS[T.element]), None, 0)


@loops(flags="contract")
def exp2(x: T) -> T:
    """Return 2 to the power `x`."""
    x = clamped(x, _EXP2_LIMITS[T.element])
    shifted = x + ROUNDER[T.element]
    r = (x - (shifted - ROUNDER[T.element])) * LN2_WHOLE
    return scaled(exp_remainder(r), shifted, 0)


LN2_WHOLE = math.log(2)


@loops(flags="contract")
def expm1(x: T) -> T:
    """Return `e` to the power `x`, minus 1, accurate near 0, and at half its size until the end."""
    r, shifted = reduced(clamped(x, _EXPM1_LIMITS[T.element]))
    p = r + r * r * polynomial(r, _EXPM132 if T.element is f32 else _EXPM164)
    n = bits(shifted) - (ROUNDER_BITS[T.element] + 1)
    half_power = from_bits((n + EXPONENT_BIAS[T.element]) << MANTISSA_BITS[T.element], T)
    result = (p * half_power + (half_power - 0.5)) * 2
    return where(fabs(x) < 1e-30, x, result)


@loops(flags="contract")
def tanh(x: T) -> T:
    """Return the hyperbolic tangent: a polynomial up to 0.625, and `1 - 2 / (exp(2 x) + 1)` for larger arguments."""
    a = fabs(x)
    z = a * a
    near = a + a * z * polynomial(z, _TANH32 if T.element is f32 else _TANH64)
    doubled = where(a > 20, T(40), a + a)
    far = T(1) - T(2) / (exp_to_normal(doubled) + 1)
    return copysign(where(a < 0.625, near, far), x)


@loops(flags="contract", in_float64=True)
def sinh(x: T) -> T:
    """Return the hyperbolic sine. float32 is computed in float64."""
    a = fabs(x)
    z = a * a
    near = a + a * z * polynomial(z, _SINH64)
    half = exp_times_power(clamped(a, (0.0, 711.0)), None, -1)
    return copysign(where(a < 1, near, half - T(0.25) / half), x)


@loops(in_float64=True)
def cosh(x: T) -> T:
    """Return the hyperbolic cosine. float32 is computed in float64."""
    half = exp_times_power(clamped(fabs(x), (0.0, 711.0)), None, -1)
    return half + T(0.25) / half
