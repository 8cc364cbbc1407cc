"""exp, tanh and sigmoid of vectors."""

from __future__ import annotations

import math

from ....codegen.llvm.language import (
    T,
    bits,
    copysign,
    f32,
    fabs,
    fma,
    fmax,
    fmin,
    from_bits,
    i32,
    i64,
    loops,
    rint,
    unrolled,
    where,
)

_EXP_32 = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1]
_EXP_64 = [1 / math.factorial(k) for k in range(13, -1, -1)]
_LN2_HIGH = {32: 0.693359375, 64: 6.93145751953125e-1}
_LN2_LOW = {32: -2.12194440e-4, 64: 1.42860682030941723212e-6}
_SMALLEST = {32: -87.3, 64: -708.3}
_LARGEST = {32: 88.7, 64: 709.7}


@loops
def exp(x: T) -> T:
    """The exponential function; results that are not normal are 0."""
    BITS = x.type.element.bits
    inside = fmin(fmax(x, _SMALLEST[BITS]), _LARGEST[BITS])
    power = rint(inside * (1 / math.log(2)))
    rest = fma(power, -_LN2_LOW[BITS], fma(power, -_LN2_HIGH[BITS], inside))
    COEFFICIENTS = _EXP_32 if BITS == 32 else _EXP_64
    found = fma(rest, COEFFICIENTS[0], COEFFICIENTS[1])
    for NEXT in unrolled(2, len(COEFFICIENTS)):
        found = fma(found, rest, COEFFICIENTS[NEXT])
    if BITS == 32:
        found = from_bits(bits(found) + (i32(power) << 23), f32)
    else:
        found = from_bits(bits(found) + (i64(power) << 52), T)
    return where(x < _SMALLEST[BITS], 0.0, where(x > _LARGEST[BITS], math.inf, where(x == x, found, x)))


@loops
def sigmoid(x: T) -> T:
    """1 / (1 + exp(-x))."""
    tail = exp(-fabs(x))
    return where(x < 0, tail, 1.0) / (tail + 1.0)


_EXP_OF_TWO_IS_ONE = {32: 9.1, 64: 20.0}
"""From here on tanh is 1."""


@loops
def tanh(x: T) -> T:
    """The hyperbolic tangent, by exp(2 |x|) - 1, in which nothing cancels."""
    BITS = x.type.element.bits
    double = fmin(fabs(x), _EXP_OF_TWO_IS_ONE[BITS]) * 2.0
    power = rint(double * (1 / math.log(2)))
    rest = fma(power, -_LN2_LOW[BITS], fma(power, -_LN2_HIGH[BITS], double))
    COEFFICIENTS = _EXP_32 if BITS == 32 else _EXP_64
    tail = fma(rest, COEFFICIENTS[0], COEFFICIENTS[1])
    for NEXT in unrolled(2, len(COEFFICIENTS) - 2):
        tail = fma(tail, rest, COEFFICIENTS[NEXT])
    less_one = fma(tail * rest, rest, rest)
    if BITS == 32:
        two_to = from_bits((i32(power) + 127) << 23, f32)
    else:
        two_to = from_bits((i64(power) + 1023) << 52, T)
    grown = fma(two_to, less_one, two_to - 1.0)
    return where(x == x, copysign(grown / (grown + 2.0), x), x)
