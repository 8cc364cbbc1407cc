"""The gamma function's logarithm and its derivative, and quantiles of the normal distribution, in the language of kernels.

All compute in float64; float32 is rounded from it. The formulas are those of NumPy's form (`kernels/math/special.py`), without
its selection of elements: each element takes all ways, but the reflection of negative numbers, which a vector takes if one of its
elements does. Errors in units of the last place over dense samples of float64, relative to the terms that cancel near zeros:
lgamma 2 above 0, digamma 9 (99 % of arguments), ndtri and erfinv 5.
"""

from __future__ import annotations

import math

from .. import special_coefficients as coefficients
from .elementary_exponential import polynomial
from .elementary_logarithm import log
from .elementary_trigonometric import sin, sine_and_cosine_of_turns
from .language import T, copysign, fabs, floor, loops, reduce_or, rint, sqrt, unrolled, where

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)


@loops(in_float64=True)
def lgamma(x: T) -> T:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers."""
    negative = x < 0
    value = _lgamma_positive(where(negative, T(1) - x, x))
    if reduce_or(negative):
        # Gamma(x) Gamma(1 - x) = pi / sin(pi x): NIST DLMF 5.5.3.
        sine, _cosine = sine_and_cosine_of_turns(x - rint(x))
        tiny = fabs(x) < coefficients.NEAR_POLE  # pi x is not exact where it is subnormal
        reflected = where(tiny, T(0), T(math.log(math.pi))) - log(where(tiny, fabs(x), fabs(sine))) - value
        value = where(negative, where(x == floor(x), T(math.inf), reflected), value)
    return where(fabs(x) == math.inf, T(math.inf), value)


@loops(flags="contract")
def _lgamma_positive(x: T) -> T:
    """By steps of 1 into [1.5, 2.5), or by Stirling's series from 6.5 on."""
    small = x < 0.5
    y = where(small, x + 2, x)
    stepped, product = y, T(1)
    for _ in unrolled(4):
        beyond = stepped >= 2.5
        stepped = where(beyond, stepped - 1, stepped)
        product = where(beyond, product * stepped, product)
    up = y < 1.5
    large = y >= 6.5
    product = where(small, x * (x + 1), where(up, y, product))
    logarithm = log(where(large, y, product))
    z = where(up, y - 1, where(large, T(0), stepped - 2))
    near = z * polynomial(z, coefficients.LOG_GAMMA_NEAR_2) + where(small | up, -logarithm, logarithm)
    inverse = T(1) / y
    far = (y - 0.5) * (logarithm - 1) - 0.5 + _HALF_LOG_TWO_PI
    far = far + inverse * polynomial(inverse * inverse, coefficients.STIRLING)
    return where(large, far, near)


@loops(in_float64=True)
def digamma(x: T) -> T:
    """The derivative of `lgamma`; -inf at 0, inf at -0, nan at negative integers."""
    negative = x < 0
    value = _digamma_positive(where(negative, T(1) - x, x))
    if reduce_or(negative):
        # NIST DLMF 5.5.4
        sine, cosine = sine_and_cosine_of_turns(x - rint(x))
        reflected = value - cosine / sine * math.pi
        value = where(negative, where(x == floor(x), T(math.nan), reflected), value)
    return where(x == 0, copysign(T(math.inf), -x), value)


@loops(flags="contract")
def _digamma_positive(x: T) -> T:
    small = x < 8
    y = where(small, x + 8, x)
    shifted = T(0)
    for K in unrolled(8):
        shifted = shifted + T(1) / (x + (7 - K))
    inverse = T(1) / y
    square = inverse * inverse
    value = log(y) - inverse * 0.5 - square * polynomial(square, coefficients.DIGAMMA_SERIES)
    return value - where(small, shifted, T(0))


@loops(in_float64=True)
def trigamma(x: T) -> T:
    """The derivative of `digamma`."""
    left = x < 0.5
    value = _trigamma_right(where(left, T(1) - x, x))
    if reduce_or(left):
        # NIST DLMF 5.15.6; the sine is rounded as pi * x is: not exactly zero at integers other than zero.
        slope = T(math.pi) / sin(x * math.pi)
        value = where(left, slope * slope - value, value)
    return where(x == math.inf, T(0), where(x == -math.inf, T(math.nan), value))


_TRIGAMMA_SERIES = (
    -3617 / 510, 7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6,
)  # fmt: skip
"""Bernoulli numbers, from the 16th down to the second."""


@loops(flags="contract")
def _trigamma_right(x: T) -> T:
    """Where `x` is not less than 0.5: by steps of 1 above 10, and NIST DLMF 5.15.8 there."""
    shifted = T(0)
    for K in unrolled(5):  # two fractions as one
        a, b = x + 2 * K, x + (2 * K + 1)
        product = a * b
        shifted = shifted + (a * a + b * b) / (product * product)
    small = x < 10
    y = where(small, x + 10, x)
    inverse = T(1) / y
    square = inverse * inverse
    value = inverse + square * 0.5 + inverse * square * polynomial(square, _TRIGAMMA_SERIES)
    return where(small, value + shifted, value)


@loops(in_float64=True)
def ndtri(x: T) -> T:
    """The number that a standard normal variable is below with probability `x`."""
    return _quantile(x - 0.5, where(x < 0.5, x, T(1) - x))


@loops(in_float64=True)
def erfinv(x: T) -> T:
    """The inverse of `erf`: infinite at -1 and 1, nan beyond."""
    return _quantile(x * 0.5, (T(1) - fabs(x)) * 0.5) * _SQRT_HALF


@loops(flags="contract")
def _quantile(distance: T, tail: T) -> T:
    """The normal quantile at 0.5 + distance, where 0.5 - abs(distance) is `tail`, given apart to keep its precision."""
    center = fabs(distance) <= 0.425
    square = T(0.180625) - distance * distance
    value = distance * (
        polynomial(square, coefficients.QUANTILE_CENTER_NUMERATOR)
        / polynomial(square, coefficients.QUANTILE_CENTER_DENOMINATOR)
    )
    outside = fabs(distance) > 0.425
    if reduce_or(outside):
        root = sqrt(-log(where(tail > 0, tail, T(1))))
        near = root - 1.6
        size = polynomial(near, coefficients.QUANTILE_TAIL_NUMERATOR) / polynomial(
            near, coefficients.QUANTILE_TAIL_DENOMINATOR
        )
        far = root - 5
        farther = polynomial(far, coefficients.QUANTILE_FAR_NUMERATOR) / polynomial(
            far, coefficients.QUANTILE_FAR_DENOMINATOR
        )
        size = where(root <= 5, size, farther)
        size = where(tail == 0, T(math.inf), where(tail > 0, size, T(math.nan)))
        value = where(center, value, copysign(size, distance))
    return where(distance == distance, value, distance)
