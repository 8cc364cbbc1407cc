"""The gamma function's logarithm and its derivatives, incomplete gamma functions, normal quantiles, derivatives of samples.

All functions compute in float64, and float32 results are rounded. The same source also computes NumPy arrays
(`codegen.elementary.on_arrays`). All branches are computed for each element, except the reflection of negative numbers.
The reflection is computed for a vector if at least one of its elements is negative. Errors in units of the last place
over dense samples of float64, relative to the terms that cancel near zeros: lgamma 2 above 0, digamma 9 (99 % of
arguments), ndtri and erfinv 5.
"""

from __future__ import annotations

import math
from typing import Any

from .. import special_coefficients as coefficients
from .elementary_exponential import exp, expm1, polynomial
from .elementary_gaussian import ndtr
from .elementary_logarithm import log, log1p
from .elementary_polynomials import is_float32
from .elementary_power import pow
from .elementary_trigonometric import sin, sine_and_cosine_of_turns
from .language import *

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)


@loops(in_float64=True)
def lgamma(x: T) -> T:
    """Return the logarithm of the magnitude of the gamma function, infinite at 0 and at negative integers."""
    negative = x < 0
    value = _lgamma_positive(where(negative, T(1) - x, x))
    if reduce_or(negative):
        # Gamma(x) Gamma(1 - x) = pi / sin(pi x): NIST DLMF 5.5.3.
        sine, _cosine = sine_and_cosine_of_turns(x - rint(x))
        tiny = fabs(x) < coefficients.NEAR_POLE  # pi x is not exact if it is subnormal
        reflected = where(tiny, T(0), T(math.log(math.pi))) - log(where(tiny, fabs(x), fabs(sine))) - value
        value = where(negative, where(x == floor(x), T(math.inf), reflected), value)
    return where(fabs(x) == math.inf, T(math.inf), value)


@loops(flags="contract")
def _lgamma_positive(x: T) -> T:
    """Shift the argument by steps of 1 into [1.5, 2.5), or use Stirling's series from 6.5 on."""
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
    """Return the derivative of `lgamma`: -inf at 0, inf at -0, and NaN at negative integers."""
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
    """Return the derivative of `digamma`."""
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
    """Compute `trigamma` for `x` >= 0.5: shift `x` by steps of 1 to above 10, and use NIST DLMF 5.15.8 there."""
    shifted = T(0)
    for K in unrolled(5):  # two fractions joined to one
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
    """Return the number that a standard normal variable does not exceed with probability `x`."""
    return _quantile(x - 0.5, where(x < 0.5, x, T(1) - x))


@loops(in_float64=True)
def erfinv(x: T) -> T:
    """Return the inverse of `erf`, which is infinite at -1 and 1 and NaN outside this interval."""
    return _quantile(x * 0.5, (T(1) - fabs(x)) * 0.5) * _SQRT_HALF


@loops(flags="contract")
def _quantile(distance: T, tail: T) -> T:
    """Return the normal quantile at 0.5 + distance. `tail` is 0.5 - abs(distance), which has lost no precision."""
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


# --- incomplete gamma integrals -------------------------------------------------------------------------------------------

_LARGE = 1e15
"""Above this value of `a`, the integrals agree with the normal distribution to all digits."""

_SMALL = 0.5
"""Below this number, the power series is short for every `a`."""

_MOST_TERMS, _LONG = 200, 10000.0
"""The maximum number of terms of a sum, and the value of `a` above which the integral is used."""

_STEP = 0.08
_PLACES = [_STEP * k - 3.6 for k in range(131)]
_POSITIONS = [math.exp(w - math.exp(-w)) for w in _PLACES]
_WEIGHTS = [_STEP * (1.0 + math.exp(-w)) for w in _PLACES]


@loops(flags="contract")
def _relative_density(a: T, x: T) -> T:
    """Return x**a * exp(-x) / Gamma(a + 1), expanded about its peak for large `a`, so that logarithms do not cancel."""
    large = a > 20.0
    distance = (x - a) / a
    inverse = T(1) / (a * a)
    stirling = (T(1 / 12) - (T(1 / 360) - (T(1 / 1260) - inverse * (1 / 1680)) * inverse) * inverse) / a
    ratio = where(x < a * 0.5, log(x / a), log1p(distance))
    exponent = where(
        large, a * (ratio - distance) - stirling, a * log(x) - x - _lgamma_positive(where(large, T(1), a + 1))
    )
    return exp(exponent) * where(large, sqrt(T(0.5 / math.pi) / a), T(1))


@loops(flags="contract")
def _below(a: T, x: T, needed: Any, EPSILON: Static) -> tuple[T, Any]:
    """Return the sum of x**n / ((a + 1) ... (a + n)) (NIST DLMF 8.7.1), and whether it needs more terms."""
    term, total = x * 0 + 1, x * 0 + 1
    active = needed
    n = i64(1)
    while reduce_or(active) and n < _MOST_TERMS:
        term = term * (x / (a + T(n)))
        total = total + term
        active = needed & (term > total * EPSILON)
        n = n + 1
    return total, active


@loops(flags="contract")
def _above(a: T, x: T, needed: Any, EPSILON: Static) -> tuple[T, Any]:
    """Return the continued fraction of DLMF 8.9.2 by Steed's algorithm, and whether it needs more terms."""
    denominator = x + 1 - a
    inverse = T(1) / denominator
    change, total = inverse, inverse
    active = needed
    n = i64(1)
    while reduce_or(active) and n < _MOST_TERMS:
        denominator = denominator + 2
        inverse = T(1) / (inverse * (T(n) * (a - T(n))) + denominator)
        change = change * (denominator * inverse - 1)
        total = total + change
        active = needed & (fabs(change) > fabs(total) * EPSILON)
        n = n + 1
    return total, active


@loops(flags="contract")
def _integral(a: T, x: T, sign: T) -> T:
    """Return the integral over t of (t / x)**a * exp(x - t) / t, below `x` if `sign` is -1, and above `x` if `sign` is 1.

    The trapezoidal rule is applied after the substitution v = scale * exp(w - exp(-w)) (Takahasi and Mori, "Double
    exponential formulas for numerical integration", 1974).
    """
    positions, weights = table(f64, _POSITIONS), table(f64, _WEIGHTS)
    scale = T(1) / (fabs(a - x) + sqrt(x))
    total = x * 0
    for i in rolled(131):
        v = scale * positions[i]
        total = total + exp(sign * a * v - x * expm1(sign * v)) * (v * weights[i])
    return total


@loops(flags="contract")
def _normal(a: T, x: T) -> T:
    """Return the lower function for very large `a`, as the normal distribution and the first term of its Edgeworth series."""
    root = sqrt(a)
    y = fmax(fmin((x - a) / root, T(50)), T(-50))  # beyond this limit the result is 0 or 1, and squares overflow
    return ndtr(y) - exp(y * y * -0.5) * (1 / math.sqrt(2 * math.pi)) * (y * y - 1) / (root * 3)


@loops
def _incomplete(a: T, x: T, UPPER: Static, EPSILON: Static) -> T:
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    p, t = where(inside, a, T(1)), where(inside, x, T(1))
    low = (t <= p) | (t < _SMALL)
    high = (t > p) & (t >= _SMALL)
    medium = p <= _LARGE
    short = p < _LONG
    density = _relative_density(p, t)
    below, active = _below(p, t, low & short, EPSILON)
    value = density * below
    unfinished = active | (medium & ~short)
    if reduce_or(high & short):
        above, active = _above(p, t, high & short, EPSILON)
        value = where(high, density * p * above, value)
        unfinished = unfinished | active
    if reduce_or(unfinished):
        value = where(unfinished, density * p * _integral(p, t, where(low, T(-1), T(1))), value)
    if reduce_or(p > _LARGE):
        value = where(medium, value, _normal(p, t))
        low = low | (p > _LARGE)
    value = fmin(value, T(1))
    complement = low if UPPER else ~low
    value = where(complement, T(1) - value, value)
    value = where(inside, value, T(math.nan))
    at_zero = ((x == 0) & (a > 0)) | ((a == math.inf) & (x >= 0) & (x < math.inf))
    at_infinity = ((a == 0) & (x > 0)) | ((x == math.inf) & (a >= 0) & (a < math.inf))
    return where(at_infinity, T(0 if UPPER else 1), where(at_zero, T(1 if UPPER else 0), value))


@loops
def lower_incomplete_gamma(a: T, x: T) -> T:
    """Return the regularized lower incomplete gamma function."""
    return T(_incomplete(f64(a), f64(x), False, 1e-10)) if is_float32(a) else _incomplete(a, x, False, 1e-17)


@loops
def upper_incomplete_gamma(a: T, x: T) -> T:
    """Return the regularized upper incomplete gamma function."""
    return T(_incomplete(f64(a), f64(x), True, 1e-10)) if is_float32(a) else _incomplete(a, x, True, 1e-17)


# --- derivatives of samples -----------------------------------------------------------------------------------------------

# At a constant distribution function F, the derivative of a sample x is -(dF/da) / f with the density f (Figurnov, Mohamed,
# Mnih, "Implicit reparameterization gradients", 2018). dF/da is an integral from x on, in the direction in which the
# integrand is positive, so that no terms cancel. It is divided by the density at x, so that it does not overflow. Near 0,
# power series have few terms.


@loops(flags="contract")
def _gamma_moved(a: T, x: T, excess: T, sign: T) -> T:
    """Return the integral over t of (t / x)**a * exp(x - t) * (abs(log(t / x)) + sign * excess) / t from `x` on (`_integral`)."""
    positions, weights = table(f64, _POSITIONS), table(f64, _WEIGHTS)
    scale = T(1) / (fabs(a - x) + sqrt(x))
    total = x * 0
    for i in rolled(131):
        v = scale * positions[i]
        total = total + exp(sign * a * v - x * expm1(sign * v)) * (v + sign * excess) * (v * weights[i])
    return total


@loops(in_float64=True)
def gamma_sample_slope(a: T, x: T) -> T:
    """Return the derivative of a sample `x` from a gamma distribution with respect to its concentration `a`."""
    near = x < _SMALL
    logarithm = log(x)
    value = x
    if reduce_or(near):  # NIST DLMF 8.7.1, term by term
        term = T(1) / a
        mean = digamma(a + 1)
        total = (mean - logarithm) * term
        shifted = a
        for _ in rolled(19):
            shifted = shifted + 1
            term = term * (x / shifted)
            mean = mean + T(1) / shifted
            total = total + (mean - logarithm) * term
        value = x * total
    if reduce_or(~near):
        excess = logarithm - digamma(a)
        far = x * _gamma_moved(a, x, excess, where(excess < 0, T(-1), T(1)))
        value = where(near, value, where(a > _LARGE, (x / a + 1) * 0.5, far))
    return value


@loops(flags="contract")
def _beta_moved(x: T, a: T, b: T, log_x: T, log_rest: T, mean: T, sign: T) -> T:
    """Return the integral of `_gamma_moved` for a beta distribution. `v` is the difference between the log odds of t and x."""
    positions, weights = table(f64, _POSITIONS), table(f64, _WEIGHTS)
    scale = T(1) / (fabs((a + b) * x - a) + sqrt((a + b) * x * (T(1) - x)))
    odds = log_rest - log_x
    total = x * 0
    for i in rolled(131):
        v = scale * positions[i]
        z = odds - sign * v
        log_t = -(fmax(z, T(0)) + log1p(exp(-fabs(z))))
        weight = exp(a * (log_t - log_x) + b * (log_t + z - log_rest))
        total = total + weight * (sign * (log_t - mean)) * (v * weights[i])
    return total


@loops(in_float64=True)
def beta_sample_slope(x: T, a: T, b: T) -> T:
    """Return the derivative of a sample `x` from a beta distribution with respect to `a`, divided by `1 - x`."""
    near = x * fmax(b, T(1)) < 0.25
    log_x, log_rest = log(x), log1p(-x)
    value = x
    if reduce_or(near):  # NIST DLMF 8.17.7, term by term
        ratio = log_x - digamma(a + 1) + digamma(a + b)
        total, term, n = ratio / a, x * 0 + 1, x * 0
        for _ in rolled(19):
            n = n + 1
            below = T(1) / (a + n)
            term = term * (x * (n - b) / n)
            total = total + term * ((ratio + T(1) / a) * below - below * below)
        value = -x * exp(-b * log_rest) * total
    if reduce_or(~near):
        mean = digamma(a) - digamma(a + b)
        far = x * _beta_moved(x, a, b, log_x, log_rest, mean, where(log_x < mean, T(-1), T(1)))
        value = where(near, value, far)
    return value


# --- the Hurwitz zeta function --------------------------------------------------------------------------------------------

_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip
"""B(2k) / (2k)! for k from 1 up."""

_LAST_FACTORIAL = 170
"""The largest number with a finite factorial."""


@loops(flags="contract")
def _hurwitz(s: T, q: T) -> T:
    """Compute NIST DLMF 25.11.5 (the Euler-Maclaurin formula) after `q` has been increased in steps of 1 until it is large."""
    total, y = q * 0, q
    enough = fmin(s * 0.8 + 12, T(60))
    low = y < enough
    while reduce_or(low):
        total = where(low, total + pow(y, -s), total)
        y = where(low, y + 1, y)
        low = y < enough
    power = pow(y, -s)
    rest = power * (y / (s - 1) + 0.5)
    factor = s * power / y
    square = y * y
    for K in unrolled(10):
        rest = rest + factor * _EULER_MACLAURIN[K]
        factor = factor * (s + (2 * K + 1)) * (s + (2 * K + 2)) / square
    return where(fabs(total) == math.inf, total, total + rest)


@loops(in_float64=True)
def zeta(x: T, q: T) -> T:
    """Return the sum of (k + q) ** -x over k from 0. The result is infinite for `x` = 1 and NaN for smaller `x`."""
    pole = (q <= 0) & (q == floor(q))
    undefined = (x < 1) | ((q < 0) & ~pole & (x != floor(x)))
    finite = ~pole & ~undefined & (fabs(q) < math.inf) & (x < math.inf) & (x > 1)
    value = _hurwitz(where(finite, x, T(2)), where(finite, q, T(60)))  # replaced by numbers that need no step
    at_infinity = where(q > 1, T(0), where(q == 1, T(1), T(math.inf)))
    value = where(x == math.inf, at_infinity, where(q == math.inf, T(math.nan), value))
    value = where(undefined, T(math.nan), where(pole | (x == 1), T(math.inf), value))
    return where((x != x) | (q != q), T(math.nan), value)


@loops(in_float64=True)
def polygamma_of_order(x: T, n: T) -> T:
    """Return the derivative of `digamma` of order `n`, for `n` >= 1 (NIST DLMF 25.11.12)."""
    factorial, k = where(n > 1, T(2), T(1)), i64(3)
    while k <= _LAST_FACTORIAL + 1 and reduce_or(n >= T(k)):
        factorial = where(n >= T(k), factorial * T(k), factorial)
        k = k + 1
    value = factorial * zeta(n + 1, x)
    return where(floor(n * 0.5) * 2 == n, -value, value)


FUNCTIONS = {
    item.name: item
    for item in (
        lgamma, digamma, trigamma, ndtri, erfinv, lower_incomplete_gamma, upper_incomplete_gamma, zeta, polygamma_of_order,
        gamma_sample_slope, beta_sample_slope,
    )
}  # fmt: skip
"""By operation."""
