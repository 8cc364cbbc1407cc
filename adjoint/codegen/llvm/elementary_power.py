"""`x ** y`, `x % y` as in C, log(exp(x) + exp(y)), and common divisors and multiples, in the kernel language.

float32 powers are computed in float64. float64 powers need the logarithm in two parts, because the exponent of the
result multiplies its error. The logarithm is the series of the inverse hyperbolic tangent, with the first two terms in
doubled precision (T. J. Dekker, "A floating-point technique for extending the available precision", 1971). Errors in
units of the last place over samples of float32 and float64: pow 0.51 and 1.2. The error of logaddexp is relative to the
larger operand.
"""

from __future__ import annotations

import math

from .elementary_exponential import clamped, exp, exp_times_power, polynomial
from .elementary_logarithm import log, log1p, parted
from .language import *

# (atanh(s) - s - s ** 3 / 3) / s ** 5 * 2 by s ** 2 where |s| <= 0.1716; error 2.8e-16.
_ATANH_TAIL64 = (
    0.1291402271694836, 0.13285924657242199, 0.15385575782820043, 0.18181808234003144, 0.22222222271185313,
    0.28571428571338325, 0.40000000000000024,
)  # fmt: skip

_LN2 = (0.6931471805598903, 5.497923018708371e-14)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_LIMITS = (-746.0, 710.0)
_WHOLE = {f32: 2.0**22, f64: 2.0**51}


@loops
def _product(a: T, b: T) -> tuple[T, T]:
    """Return `a * b` in two parts."""
    high = a * b
    return high, fma(a, b, -high)


@loops
def _logarithm(x: T) -> tuple[T, T]:
    """Return log(x) of a positive number in two parts."""
    m, e = parted(x)
    f = m - 1
    divisor = f + 2
    lost = f - (divisor - 2)
    s = f / divisor
    s_low = (fma(-s, divisor, f) - s * lost) / divisor
    z, z_low = _product(s, s)
    z_low = z_low + s * s_low * 2
    cube, cube_low = _product(s, z)
    cube_low = cube_low + (s * z_low + s_low * z)
    third, third_low = _product(cube, T(_TWO_THIRDS[0]))
    third_low = third_low + (cube_low * _TWO_THIRDS[0] + cube * _TWO_THIRDS[1])
    rest = third_low + (s_low * 2 + cube * z * polynomial(z, _ATANH_TAIL64))
    first, first_low = _sum(e * _LN2[0], s * 2)
    second, second_low = _sum(first, third)
    low = second_low + (first_low + (rest + e * _LN2[1]))
    high = second + low
    return high, (second - high) + low


@loops
def _sum(a: T, b: T) -> tuple[T, T]:
    """Return `a + b` in two parts."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@loops
def _positive_power(a: T, y: T) -> T:
    """Return powers of magnitudes, except powers of 1 and powers with the exponent 0."""
    if T.element is f32:
        product = f64(y) * log(f64(a))
        return T(exp(product))
    high, low = _logarithm(a)
    unbounded = (a == 0) | (a == math.inf) | (a != a)
    high = where(unbounded, log(a), high)
    low = where(unbounded, T(0), low)
    product = y * high
    product_low = fma(y, high, -product) + y * low
    bounded = clamped(product, _LIMITS)
    return exp_times_power(bounded, where(fabs(product) < 800, product_low, T(0)), 0)


@loops
def pow(x: T, y: T) -> T:
    """Return `x` to the power `y`, with the results that IEEE 754 specifies for zeros, infinities and negative `x`."""
    a = fabs(x)
    value = _positive_power(a, y)
    value = where(a == 1, T(1), value)
    whole = rint(y) == y
    half = y * 0.5
    odd = whole & (rint(half) != half)
    negative = copysign(T(1), x) < 0
    value = where(negative & odd, -value, value)
    value = where((x < 0) & (a < math.inf) & (fabs(y) < math.inf) & ~whole, T(math.nan), value)
    value = where((x != x) | (y != y), T(math.nan), value)
    return where((y == 0) | (x == 1), T(1), value)


@loops
def _one_by_one(x: T, y: T, WIDTH: Static) -> T:
    """Compute the remainder of each element with the C function."""
    rests, divisors = local(T.element, WIDTH), local(T.element, WIDTH)
    store(rests, x)
    store(divisors, y)
    for i in rolled(WIDTH):
        rests[i] = rests[i] % divisors[i]
    return load(rests, WIDTH)


@loops
def fmod(x: T, y: T) -> T:
    """Return the exact remainder of `x` divided by `y`, with the sign of `x`."""
    a, b = fabs(x), fabs(y)
    quotient = trunc(a / b)
    rest = fma(-quotient, b, a)
    rest = where(rest < 0, rest + b, rest)
    rest = where((b == math.inf) & (a < math.inf), a, rest)
    beyond = (quotient >= _WHOLE[T.element]) | (quotient != quotient)
    if reduce_or(beyond):
        rest = where(beyond, _one_by_one(a, b, x.type.width), rest)
    return copysign(rest, x)


@loops
def logaddexp(x: T, y: T) -> T:
    """Return log(exp(x) + exp(y)) without overflow."""
    larger = where(x > y, x, y)
    value = larger + log1p(exp(-fabs(x - y)))
    value = where(x == y, x + math.log(2), value)
    return where((x != x) | (y != y), T(math.nan), value)


@loops
def gcd(x: T, y: T) -> T:
    """Return the greatest common divisor of integers without division, for which vectors have no instruction.

    J. Stein, "Computational problems associated with Racah algebra" (1967). The smallest integer counts as a power of
    two.
    """
    a, b = _magnitude(x), _magnitude(y)
    a = where(a == 0, b, a)
    shift = _factors_of_two(a | b)
    a = _magnitude(a >> _factors_of_two(a))
    while reduce_or(b != 0):
        b = _magnitude(b >> _factors_of_two(b))
        more = b != 0
        difference = maximum(a, b) - minimum(a, b)
        a = where(more, minimum(a, b), a)
        b = where(more, difference, b)
    return a << shift


@loops
def _magnitude(x: T) -> T:
    return where(x < 0, 0 - x, x)


@loops
def _factors_of_two(x: T) -> T:
    return trailing_zeros(where(x == 0, 1, x))


@loops
def lcm(x: T, y: T) -> T:
    """Return the least common multiple of signed integers. If either number is 0, the result is 0."""
    divisor = gcd(x, y)
    return _magnitude(floor_divide(x, where(divisor == 0, 1, divisor)) * y)


@loops
def floor_divide(x: T, y: T) -> T:
    """Return the quotient of integers, rounded down. A divisor of 0 counts as 1."""
    return _quotient(x, y, True)


@loops
def remainder_of_integers(x: T, y: T) -> T:
    """Return the remainder of the division of integers that rounds towards zero. A divisor of 0 counts as 1."""
    return x - _quotient(x, y, False) * where(y == 0, 1, y)


@loops
def _quotient(x: T, y: T, DOWN: Static) -> T:
    """Return the quotient of integers, rounded down or towards zero. A divisor of 0 counts as 1.

    Processors divide integers one at a time. Integers of 32 bits are divided in float64: the rounded quotient has the
    same integer part, because other quotients differ from integers by at least the reciprocal of the divisor.
    """
    divisor = where(y == 0, 1, y)
    if T.element.bits < 64:
        return T(_rounded(f64(x) / f64(divisor), DOWN))
    if x.type.kind == "u":
        return _divided_one_by_one(x, divisor, x.type.width, DOWN)
    divisor = where(y == -1, 1, divisor)  # the quotient of the least integer would overflow
    whole = T(i32(_rounded(f64(i32(x)) / f64(i32(divisor)), DOWN)))
    if reduce_or((T(i32(x)) != x) | (T(i32(divisor)) != divisor)):
        whole = _divided_one_by_one(x, divisor, x.type.width, DOWN)
    return where(y == -1, 0 - x, whole)


@loops
def _rounded(x: T, DOWN: Static) -> T:
    return floor(x) if DOWN else trunc(x)


@loops
def _divided_one_by_one(x: T, divisor: T, WIDTH: Static, DOWN: Static) -> T:
    quotients, divisors = local(T.element, WIDTH), local(T.element, WIDTH)
    store(quotients, x)
    store(divisors, divisor)
    for i in rolled(WIDTH):
        quotients[i] = quotients[i] // divisors[i]
    whole = load(quotients, WIDTH)
    upward = (whole * divisor != x) & ((x < 0) != (divisor < 0))
    return whole if DOWN else where(upward, whole + 1, whole)
