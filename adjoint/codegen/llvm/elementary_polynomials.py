"""Orthogonal polynomials of a degree for each element, by their recurrences of three terms (NIST DLMF 18.9).

A `Family` says what its polynomials of degree 1 are, and how the next follows from two. Between -1 and 1, Chebyshev's are
functions of an angle too (DLMF 18.5), which are as exact for degree 1000 as for degree 10. NumPy computes arrays by the same
source (`codegen.elementary.on_arrays`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .elementary_inverse import acos
from .elementary_trigonometric import cos, sin
from .language import Static, T, f32, fabs, floor, fma, i64, loops, reduce_or, trunc, where

_FIRST_BY_ANGLE = 7
"""The lowest degree for which the angle is used."""


class Family(NamedTuple):
    """A family of polynomials.

    first: the polynomial of degree 1. following: that of degree k + 1, of x, k and the polynomials of degrees k and k - 1.
    at_angle: that of degree n at cos(angle). at_one, at_minus_one: those of degree n at 1 and -1; None where nothing is special.
    degrees: from which degree on values are nan, in float32 and in float64.
    """

    first: Any
    following: Any
    at_angle: Any = None
    at_one: Any = None
    at_minus_one: Any = None
    degrees: tuple[int, int] | None = None


@loops
def _same(x: T) -> T:
    return x


@loops
def _one(n: T) -> T:
    return n * 0 + 1


@loops
def _next_number(n: T) -> T:
    return n + 1


@loops
def _odd_number(n: T) -> T:
    return n + n + 1


@loops
def _alternating(n: T) -> T:
    return (floor(n * 0.5) * 2 - n) * 2 + 1


@loops
def _alternating_next(n: T) -> T:
    return (n + 1) * _alternating(n)


@loops
def _alternating_odd(n: T) -> T:
    return (n + n + 1) * _alternating(n)


@loops
def _twice(x: T) -> T:
    return x + x


@loops
def _twice_less_1(x: T) -> T:
    return x + x - 1


@loops
def _twice_and_1(x: T) -> T:
    return x + x + 1


@loops
def _doubled(x: T, k: T, value: T, before: T) -> T:
    return (x + x) * value - before


@loops
def _cosine(n: T, angle: T) -> T:
    return cos(n * angle)


@loops
def _sine_quotient(n: T, angle: T) -> T:
    return sin((n + 1) * angle) / sin(angle)


@loops
def _half_cosine_quotient(n: T, angle: T) -> T:
    return cos((n + 0.5) * angle) / cos(angle / 2)


@loops
def _half_sine_quotient(n: T, angle: T) -> T:
    return sin((n + 0.5) * angle) / sin(angle / 2)


@loops
def _hermite_h(x: T, k: T, value: T, before: T) -> T:
    return (x + x) * value - (k + k) * before


@loops
def _hermite_he(x: T, k: T, value: T, before: T) -> T:
    return x * value - k * before


@loops
def _laguerre_first(x: T) -> T:
    return T(1) - x


@loops
def _laguerre(x: T, k: T, value: T, before: T) -> T:
    """That of float32 is rounded once, as by the processors that PyTorch is compiled for."""
    factor, rest = k + k + (T(1) - x), -(k * before)
    return (fma(factor, value, rest) if is_float32(x) else factor * value + rest) / (k + 1)


@loops
def _legendre(x: T, k: T, value: T, before: T) -> T:
    return ((k + k + 1) * x * value - k * before) / (k + 1)


@loops
def is_float32(x: T) -> Static:
    """Whether numbers are of float32."""
    return T.element is f32


@loops
def _values(x: T, n: T, FAMILY: Static) -> T:
    """The polynomials of degrees `n`, rounded towards 0; 0 for negative degrees and for what is none."""
    degree = where(fabs(n) < 2.0**63, trunc(n), T(-1))
    steps, special = degree, x  # `steps`: how far the recurrence goes, where it is needed
    if FAMILY.degrees is not None:
        beyond = degree > FAMILY.degrees[0 if is_float32(x) else 1]
        special = where(beyond, T(math.nan), x)
        steps = where(beyond, T(-1), steps)
    if FAMILY.at_angle is not None:
        inside = (degree >= _FIRST_BY_ANGLE) & (fabs(x) < 1)
        if reduce_or(inside):
            special = FAMILY.at_angle(degree, acos(x))
            steps = where(inside, T(-1), steps)
    if FAMILY.at_one is not None:
        edge = (x == 1) & (degree > 0)
        special = where(edge, FAMILY.at_one(degree), special)
        steps = where(edge, T(-1), steps)
    if FAMILY.at_minus_one is not None:
        edge = (x == -1) & (degree > 0)
        special = where(edge, FAMILY.at_minus_one(degree), special)
        steps = where(edge, T(-1), steps)
    before = T(1)
    value = FAMILY.first(x)
    result = where(steps == 0, T(1), value)
    k = i64(1)
    while reduce_or((steps > T(k)) & (value == value)):
        following = FAMILY.following(x, T(k), value, before)
        before = value
        value = following
        k = k + 1
        result = where(steps == T(k), value, result)
    result = where(steps > T(k), value, result)  # these were lost: nan
    return where(degree < 0, T(0), where(steps < 0, special, result))


_FAMILIES = {
    "chebyshev_polynomial_t": Family(_same, _doubled, _cosine, _one, _alternating),
    "chebyshev_polynomial_u": Family(_twice, _doubled, _sine_quotient, _next_number, _alternating_next),
    "chebyshev_polynomial_v": Family(_twice_less_1, _doubled, _half_cosine_quotient, _one, _alternating_odd),
    "chebyshev_polynomial_w": Family(_twice_and_1, _doubled, _half_sine_quotient, _odd_number, _alternating),
    "hermite_polynomial_h": Family(_twice, _hermite_h, degrees=(128, 512)),
    "hermite_polynomial_he": Family(_same, _hermite_he, degrees=(128, 512)),
    "laguerre_polynomial_l": Family(_laguerre_first, _laguerre),
    "legendre_polynomial_p": Family(_same, _legendre, None, _one, _alternating),
}


def _of_family(family: Family) -> Any:
    @loops
    def polynomial(x: T, n: T) -> T:
        return _values(x, n, family)

    return polynomial


FUNCTIONS = {name: _of_family(family) for name, family in _FAMILIES.items()}
"""By operation."""
