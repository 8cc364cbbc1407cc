"""Orthogonal polynomials, computed by three-term recurrences (NIST DLMF 18.9), with a separate degree for each element.

A `Family` defines its polynomial of degree 1 and the recurrence that computes the next polynomial from the two before
it. Between -1 and 1, Chebyshev polynomials are also functions of an angle (DLMF 18.5), which are as accurate for degree
1000 as for degree 10. The same source also computes NumPy arrays (`codegen.elementary.on_arrays`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .elementary_inverse import acos
from .elementary_trigonometric import cos, sin
from .language import *


class Family(NamedTuple):
    """A family of polynomials.

    first: `a` and `b` of the polynomial of degree 1, `a x + b`. following: the function that computes the polynomial of degree k
    + 1 from x, k, and the polynomials of degrees k and k - 1. angle, shift, part: f, s and t, if the polynomial of degree n at
    cos(angle) is f((n + s) angle) / f(t angle). at_one: `a`, if the value at 1 is `a n + 1`. at_minus_one: the same for -1, with
    an alternating sign. degrees: the degrees from which values are NaN, in float32 and in float64.
    """

    first: tuple[float, float]
    following: Any
    angle: Any = None
    shift: float = 0.0
    part: float = 0.0
    at_one: float | None = None
    at_minus_one: float | None = None
    degrees: tuple[int, int] | None = None


@loops
def _doubled(x: T, k: T, value: T, before: T) -> T:
    return (x + x) * value - before


@loops
def _hermite_h(x: T, k: T, value: T, before: T) -> T:
    return (x + x) * value - (k + k) * before


@loops
def _hermite_he(x: T, k: T, value: T, before: T) -> T:
    return x * value - k * before


@loops
def _laguerre(x: T, k: T, value: T, before: T) -> T:
    """Round the float32 polynomial once, as PyTorch does on processors with fused multiplication and addition."""
    factor, rest = k + k + (T(1) - x), -(k * before)
    return (fma(factor, value, rest) if is_float32(x) else factor * value + rest) / (k + 1)


@loops
def _legendre(x: T, k: T, value: T, before: T) -> T:
    return ((k + k + 1) * x * value - k * before) / (k + 1)


@loops
def is_float32(x: T) -> Static:
    """Return whether numbers are float32."""
    return T.element is f32


@loops
def _values(x: T, n: T, FAMILY: Static) -> T:
    """Return the polynomials of degree `n`, rounded towards 0. Negative and infinite degrees give 0."""
    degree = where(fabs(n) < 2.0**63, trunc(n), T(-1))
    steps, special = degree, x  # `steps`: the number of steps of the recurrence for each element
    if FAMILY.degrees is not None:
        beyond = degree > FAMILY.degrees[0 if is_float32(x) else 1]
        special = where(beyond, T(math.nan), x)
        steps = where(beyond, T(-1), steps)
    if FAMILY.angle is not None:
        inside = (degree >= 7) & (fabs(x) < 1)  # lower degrees are faster by the recurrence
        if reduce_or(inside):
            angle = acos(x)
            special = FAMILY.angle((degree + FAMILY.shift) * angle)
            if FAMILY.part:
                special = special / FAMILY.angle(angle * FAMILY.part)
            steps = where(inside, T(-1), steps)
    if FAMILY.at_one is not None:
        edge = (x == 1) & (degree > 0)
        special = where(edge, degree * FAMILY.at_one + 1, special)
        steps = where(edge, T(-1), steps)
    if FAMILY.at_minus_one is not None:
        edge = (x == -1) & (degree > 0)
        sign = (floor(degree * 0.5) * 2 - degree) * 2 + 1
        special = where(edge, (degree * FAMILY.at_minus_one + 1) * sign, special)
        steps = where(edge, T(-1), steps)
    before = T(1)
    value = x * FAMILY.first[0] + FAMILY.first[1]
    result = where(steps == 0, T(1), value)
    k = i64(1)
    while reduce_or((steps > T(k)) & (value == value)):
        following = FAMILY.following(x, T(k), value, before)
        before = value
        value = following
        k = k + 1
        result = where(steps == T(k), value, result)
    result = where(steps > T(k), value, result)  # for these elements the result is NaN
    result = where(degree < 0, T(0), where(steps < 0, special, result))
    return where(n == n, result, n)


_X, _TWICE = (1.0, -0.0), (2.0, -0.0)

_FAMILIES = {
    "chebyshev_polynomial_t": Family(_X, _doubled, cos, 0.0, 0.0, 0.0, 0.0),
    "chebyshev_polynomial_u": Family(_TWICE, _doubled, sin, 1.0, 1.0, 1.0, 1.0),
    "chebyshev_polynomial_v": Family((2.0, -1.0), _doubled, cos, 0.5, 0.5, 0.0, 2.0),
    "chebyshev_polynomial_w": Family((2.0, 1.0), _doubled, sin, 0.5, 0.5, 2.0, 0.0),
    "hermite_polynomial_h": Family(_TWICE, _hermite_h, degrees=(128, 512)),
    "hermite_polynomial_he": Family(_X, _hermite_he, degrees=(128, 512)),
    "laguerre_polynomial_l": Family((-1.0, 1.0), _laguerre),
    "legendre_polynomial_p": Family(_X, _legendre, at_one=0.0, at_minus_one=0.0),
}


def _of_family(family: Family) -> Any:
    @loops
    def of_degree(x: T, n: T) -> T:
        return _values(x, n, family)

    return of_degree


FUNCTIONS = {name: _of_family(family) for name, family in _FAMILIES.items()}
"""By operation."""
