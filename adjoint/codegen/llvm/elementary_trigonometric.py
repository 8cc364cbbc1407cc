"""The functions sin, cos and tan in the language of kernels, for arguments of any size.

Up to 2 ** 20, a multiple of pi/2 is subtracted, in parts whose products with integers are exact (W. J. Cody and W.
Waite, "Software Manual for the Elementary Functions", 1980). If a vector contains a larger number, its elements are
reduced one by one with as many bits of 2/pi as they need (M. Payne and R. Hanek, "Radian reduction for trigonometric
functions", SIGNUM Newsletter 18, 1983). Polynomials compute the functions of the remainder between -pi/4 and pi/4
(`scripts/fit_polynomials.py`). float32 is reduced in float64. Errors in units of the last place over dense samples of
float32 and float64: sin and cos 1.5 and 0.9, tan 0.52 and 2.3.
"""

from __future__ import annotations

import math

from .elementary_exponential import polynomial
from .language import *

# (sin(r) / r - 1) / r ** 2 and (cos(r) - 1 + r ** 2 / 2) / r ** 4 by r ** 2 where |r| <= pi / 4; errors 2.8e-11 and 2.0e-17,
# 2.0e-9 and 1.3e-18.
_SIN32 = (
    2.724990115829391e-06, -0.0001984008654531293, 0.008333331874358352, -0.16666666663854385,
)  # fmt: skip
_SIN64 = (
    1.5918117983848815e-10, -2.5051131688000297e-08, 2.755731610179909e-06, -0.0001984126983675712,
    0.008333333333330948, -0.16666666666666666,
)  # fmt: skip
_COS32 = (
    2.4547921745795434e-05, -0.0013888302941757222, 0.0416666646590179,
)  # fmt: skip
_COS64 = (
    -1.1382625349447592e-11, 2.0876146170183976e-09, -2.7557317271258515e-07, 2.4801587298764778e-05,
    -0.0013888888888887398, 0.041666666666666664,
)  # fmt: skip

_TWO_OVER_PI = 2 / math.pi
_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
_LOW_HALF_PI = 6.077100506506192e-11
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_LOW_PI = 2 * _HALF_PI[1]
_ROUNDER = 1.5 * 2**52
_LIMIT = 2.0**20

# The bits of 2/pi, 32 in each number, after 64 zeros.
_BITS = (
    0, 0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0,
    0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4,
    0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D,
    0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB,
)  # fmt: skip
_WORD = 0xFFFFFFFF


@loops
def _reduced_large(x: f64) -> tuple[i64, f64, f64]:
    """Return the quarter turns (modulo 4) of a number that is at least 2 ** 20, and the remainder in two parts.

    The result is not valid for other numbers.

    The number is an integer of 53 bits times 2 ** e. A window of 192 bits of 2 ** e * 2/pi is multiplied by the number.
    Bits above the window would contribute only multiples of 4.
    """
    raw = bits(x)
    exponent = ((raw >> 52) & 0x7FF) - 1075
    mantissa = (raw & 0xFFFFFFFFFFFFF) | 0x10000000000000
    position = where(exponent < -32, i64(-32), exponent) + 62
    first, offset = position >> 5, u64(position & 31)
    words = table(u64, _BITS)
    window = [(((words[first + K] << 32) | words[first + (K + 1)]) << offset) >> 32 for K in unrolled(6)]
    product = _product(window, u64(mantissa & _WORD), u64(mantissa >> 32))
    quarters = i64(product[0] >> 30)
    top = i64(((product[0] & 0x3FFFFFFF) << 32) | product[1])
    above_half = top >= 0x2000000000000000
    quarters = quarters + where(above_half, 1, 0)
    top = top - where(above_half, 0x4000000000000000, 0)
    parts = (f64(top >> 32) * 2.0**-30, f64(top & _WORD) * 2.0**-62)
    head = parts[0] + parts[1]
    tail = parts[1] - (head - parts[0]) + f64(i64(product[2])) * 2.0**-94 + f64(i64(product[3])) * 2.0**-126
    turns = head + tail
    rest = (head - turns) + tail
    high = turns * _HALF_PI[0]
    low = fma(turns, _HALF_PI[0], -high) + (turns * _HALF_PI[1] + rest * _HALF_PI[0])
    negative = x < 0
    return where(negative, -quarters, quarters), where(negative, -high, high), where(negative, -low, low)


@loops
def _product(words: Static, low: u64, high: u64) -> Static:
    """Return the first five words of the product of a number of six words and a number of two words, modulo 2 ** 192."""
    partial, carry = [], u64(0)  # type: ignore[var-annotated]
    for K in unrolled(6):
        total = words[5 - K] * low + carry
        partial = [total & _WORD, *partial]
        carry = total >> 32
    result, carry = [], u64(0)  # type: ignore[var-annotated]
    for K in unrolled(5):
        total = words[5 - K] * high + partial[4 - K] + carry
        result = [total & _WORD, *result]
        carry = total >> 32
    return result


@loops
def _difference(a: T, b: T) -> tuple[T, T]:
    """Return `a - b` and its rounding error."""
    difference = a - b
    part = difference - a
    return difference, (a - (difference - part)) - (b + part)


@loops
def _reduced_one_by_one(x: T, WIDTH: Static) -> tuple[T, T, T]:
    """Apply `_reduced_large` to each element of a vector."""
    values, turns, heads, tails = local(f64, WIDTH), local(i64, WIDTH), local(f64, WIDTH), local(f64, WIDTH)
    store(values, x)
    for i in rolled(WIDTH):
        turns[i], heads[i], tails[i] = _reduced_large(values[i])
    return load(turns, WIDTH), load(heads, WIDTH), load(tails, WIDTH)


@loops
def _reduced(x: T, DOUBLED: Static) -> tuple[T, T, T]:
    """Return quarter turns in the low bits of an integer, and the float64 remainder, in two parts if `DOUBLED`."""
    shifted = x * _TWO_OVER_PI + _ROUNDER
    k = shifted - _ROUNDER
    quarters = bits(shifted)
    high = x - k * _PARTS[0]
    low = T(0)
    if DOUBLED:
        first, lost = _difference(high, k * _PARTS[1])
        second, more = _difference(first, k * _PARTS[2])
        rest = lost + more - k * _PARTS[3]
        high = second + rest
        low = (second - high) + rest
    else:
        high = high - k * _LOW_HALF_PI
    large = fabs(x) > _LIMIT
    if reduce_or(large):
        turns, head, tail = _reduced_one_by_one(x, x.type.width)
        quarters = where(large, turns, quarters)
        high = where(large, head, high)
        low = where(large, tail, low)
    return quarters, where(fabs(x) == math.inf, T(math.nan), high), low


@loops(flags="contract")
def _sine_and_cosine(high: T, low: T, SINE: Static, COSINE: Static) -> tuple[T, T]:
    """Return the sine and the cosine of `high + low` between -pi/4 and pi/4."""
    z = high * high
    half = z * 0.5
    sine = high + (z * high * polynomial(z, SINE) + low * (T(1) - half))
    leading = T(1) - half
    cosine = leading + (((T(1) - leading) - half) + (z * z * polynomial(z, COSINE) - high * low))
    return sine, cosine


@loops
def _parts(x: T) -> tuple[T, T, T]:
    """Return quarter turns, and the sine and cosine of the remainder. float32 is computed in float32."""
    if T.element is f32:
        quarters, high, _low = _reduced(f64(x), False)
        sine, cosine = _sine_and_cosine(T(high), T(0), _SIN32, _COS32)
        return i32(quarters), sine, cosine
    quarters, high, low = _reduced(x, True)
    sine, cosine = _sine_and_cosine(high, low, _SIN64, _COS64)
    return quarters, sine, cosine


@loops
def sin(x: T) -> T:
    """The sine."""
    sine, _cosine = sine_and_cosine(x)
    return where(x == 0, x, sine)


@loops
def cos(x: T) -> T:
    """The cosine."""
    _sine, cosine = sine_and_cosine(x)
    return cosine


@loops
def sine_and_cosine(x: T) -> tuple[T, T]:
    """Return the sine and the cosine."""
    quarters, sine, cosine = _parts(x)
    even = (quarters & 1) == 0
    first, second = where(even, sine, cosine), where(even, cosine, sine)
    return where((quarters & 2) == 0, first, -first), where(((quarters + 1) & 2) == 0, second, -second)


@loops
def tan(x: T) -> T:
    """Return the tangent. float32 is computed in float64."""
    SINGLE = T.element is f32
    quarters, high, low = _reduced(f64(x), not SINGLE)
    sine, cosine = _sine_and_cosine(high, low, _SIN32 if SINGLE else _SIN64, _COS32 if SINGLE else _COS64)
    even = (quarters & 1) == 0
    return where(x == 0, x, T(where(even, sine, -cosine) / where(even, cosine, sine)))


@loops
def sine_and_cosine_of_turns(x: T) -> tuple[T, T]:
    """Return the sine and the cosine of pi * x, for float64 between -1/2 and 1/2."""
    a = fabs(x)
    beyond = a > 0.25
    part = where(beyond, T(0.5) - a, a)
    high = part * math.pi
    sine, cosine = _sine_and_cosine(high, fma(part, T(math.pi), -high) + part * _LOW_PI, _SIN64, _COS64)
    return copysign(where(beyond, cosine, sine), x), where(beyond, sine, cosine)
