"""Orthogonal polynomials of a degree for each element, by their recurrences of three terms (NIST DLMF 18.9).

A `Family` says what its polynomials of degree 1 are, and how the next follows from two. Between -1 and 1, Chebyshev's are
functions of an angle too (DLMF 18.5), which are as exact for degree 1000 as for degree 10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from ..runtime.floating import refuse

Array = numpy.ndarray[Any, Any]

_FIRST_BY_ANGLE = 7
"""The lowest degree for which the angle is used."""


class Family(NamedTuple):
    """A family of polynomials.

    first: the polynomial of degree 1. next: that of degree k + 1, of x, k and the polynomials of degrees k and k - 1.
    at_angle: that of degree n at cos(angle). at_one, at_minus_one: those of degree n at 1 and -1. degrees: from which degree
    on values are nan, by the size of the dtype.
    """

    first: Callable[[Any], Any]
    next: Callable[[Any, int, Any, Any], Any]
    at_angle: Callable[[Any, Any], Any] | None = None
    at_one: Callable[[Any], Any] | None = None
    at_minus_one: Callable[[Any], Any] | None = None
    degrees: dict[int, int] | None = None


def _alternating(n: Any) -> Any:
    return numpy.where(n % 2 == 0, 1, -1)


def _doubled(x: Any, k: int, value: Any, before: Any) -> Any:
    return (x + x) * value - before


def _fused(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`. That of float32 is rounded once, as by the processors that PyTorch is compiled for."""
    if a.dtype != numpy.float32:
        return a * b + c
    return (a.astype(numpy.float64) * b + c).astype(numpy.float32)


CHEBYSHEV_T = Family(
    lambda x: x, _doubled, lambda n, angle: numpy.cos(n * angle), at_minus_one=_alternating, at_one=numpy.ones_like
)  # fmt: skip
CHEBYSHEV_U = Family(
    lambda x: x + x,
    _doubled,
    lambda n, angle: numpy.sin((n + 1) * angle) / numpy.sin(angle),
    lambda n: n + 1,
    lambda n: (n + 1) * _alternating(n),
)
CHEBYSHEV_V = Family(
    lambda x: x + x - 1,
    _doubled,
    lambda n, angle: numpy.cos((n + 0.5) * angle) / numpy.cos(angle / 2),
    at_minus_one=lambda n: (n + n + 1) * _alternating(n),
    at_one=numpy.ones_like,
)
CHEBYSHEV_W = Family(
    lambda x: x + x + 1,
    _doubled,
    lambda n, angle: numpy.sin((n + 0.5) * angle) / numpy.sin(angle / 2),
    at_one=lambda n: n + n + 1,
    at_minus_one=_alternating,
)
HERMITE_H = Family(
    lambda x: x + x,
    lambda x, k, value, before: (x + x) * value - (k + k) * before,
    degrees={4: 128, 8: 512},
)
HERMITE_HE = Family(lambda x: x, lambda x, k, value, before: x * value - k * before, degrees={4: 128, 8: 512})
LAGUERRE_L = Family(
    lambda x: 1 - x, lambda x, k, value, before: _fused(k + k + (1 - x), value, -(k * before)) / (k + 1)
)
LEGENDRE_P = Family(
    lambda x: x,
    lambda x, k, value, before: ((k + k + 1) * x * value - k * before) / (k + 1),
    at_minus_one=_alternating,
    at_one=numpy.ones_like,
)


def polynomials(family: Family, name: str, shifted: bool = False) -> Callable[[Array, Array], Array]:
    """The kernel of a family; a `shifted` one is of `2 x - 1`, so that its interval is from 0 to 1."""

    def kernel(x: Array, n: Array) -> Array:
        if x.dtype.kind != "f" or x.dtype.itemsize < 4:
            raise refuse(f"{name}_cpu", x)
        x, n = numpy.broadcast_arrays(x, n)
        with numpy.errstate(all="ignore"):
            result = _values(family, (x + x - 1 if shifted else x).reshape(-1), _degrees(n).reshape(-1))
        return result.reshape(x.shape)

    kernel.__name__ = name
    return kernel


def _degrees(n: ndarray) -> ndarray:
    """Degrees as integers; -1 for what is none."""
    return numpy.where(numpy.abs(n) < 2.0**63, n, -1).astype(numpy.int64)


def _values(family: Family, x: ndarray, n: ndarray) -> ndarray:
    """The polynomials of degrees `n`; 0 for negative ones."""
    result = numpy.zeros_like(x)
    free = n >= 0
    if family.degrees is not None:
        free = _fill(
            result, free, n > family.degrees[x.dtype.itemsize], lambda x, n: numpy.full_like(x, numpy.nan), x, n
        )
    for at, values in ((1, family.at_one), (-1, family.at_minus_one)):
        if values is not None:
            free = _fill(result, free, (x == at) & (n > 0), lambda x, n, values=values: values(n), x, n)
    if family.at_angle is not None:
        by_angle = (n >= _FIRST_BY_ANGLE) & (numpy.abs(x) < 1)
        at_angle = family.at_angle
        free = _fill(result, free, by_angle, lambda x, n: at_angle(n.astype(x.dtype), numpy.arccos(x)), x, n)
    _fill(result, free, free, lambda x, n: _by_recurrence(family, x, n), x, n)
    return result


def _fill(result: ndarray, free: ndarray, condition: ndarray, function: Callable[..., Any], *args: ndarray) -> ndarray:
    """Write what a function says of the free elements of which a condition holds; return which are free then."""
    here = free & condition
    if here.any():
        result[here] = function(*(arg[here] for arg in args))
    return free & ~here


def _by_recurrence(family: Family, x: ndarray, n: ndarray) -> ndarray:
    before, value = numpy.ones_like(x), family.first(x)
    result = numpy.where(n == 0, before, value)
    for k in range(1, int(n.max(initial=0))):
        before, value = value, family.next(x, k, value, before)
        reached = n == k + 1
        numpy.copyto(result, value, where=reached)
        lost = numpy.isnan(value)
        if (lost | (n <= k + 1)).all():
            numpy.copyto(result, numpy.nan, where=lost & (n > k + 1))
            break
    return result
