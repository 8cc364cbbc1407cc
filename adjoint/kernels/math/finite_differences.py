"""Derivatives by central differences (Abramowitz and Stegun, Handbook of Mathematical Functions, 25.3.21).

The functions here change elements of an array in place, call `evaluate`, and restore the elements. The argument of `evaluate` is
the index of the changed element, or None if all elements have changed. `evaluate` may return the array itself, so each result is
copied immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy

from ..runtime.floating import Array, unwarned

Evaluate = Callable[[tuple[int, ...] | None], Sequence[Array]]


def along(evaluate: Evaluate, array: Array, direction: Array, eps: float) -> list[Array]:
    """Return the derivative of each result along `direction`, which has the shape of `array` and the norm 1."""
    original = array.copy()
    step = direction * original.dtype.type(eps)
    try:
        array[...] = original - step
        below = [result.copy() for result in evaluate(None)]
        array[...] = original + step
        above = [result.copy() for result in evaluate(None)]
    finally:
        array[...] = original
    return _quotients(below, above, eps)


def jacobians(evaluate: Evaluate, array: Array, eps: float) -> list[Array]:
    """Return a matrix for each result.

    Each row contains the derivatives of the result's elements with respect to one element of `array`.
    Derivatives with respect to complex numbers are `d/dx + 1j * d/dy`.
    """
    rows = []
    for index in numpy.ndindex(array.shape):
        if array.dtype.kind == "c":
            pairs = zip(_by(evaluate, array, index, eps, 1), _by(evaluate, array, index, eps, 1j), strict=True)
            rows.append([x + _turned(y) for x, y in pairs])
        else:
            rows.append(_by(evaluate, array, index, eps, 1))
    if not rows:
        return [numpy.zeros((0, result.size), result.dtype) for result in evaluate(None)]
    return [numpy.stack(column) for column in zip(*rows, strict=True)]


def _by(evaluate: Evaluate, array: Array, index: tuple[int, ...], eps: float, unit: complex) -> list[Array]:
    """Return each result's derivatives with respect to an element of `array`, which moves by `eps` in direction `unit`."""
    step = eps * unit
    original = complex(array[index]) if array.dtype.kind == "c" else float(array[index])
    try:
        array[index] = original - step
        below = [result.copy() for result in evaluate(index)]
        array[index] = original + step
        above = [result.copy() for result in evaluate(index)]
    finally:
        array[index] = original
    return [quotient.reshape(-1) for quotient in _quotients(below, above, eps)]


def _turned(array: Array) -> Array:
    """Return `1j * array` in the precision of `array`."""
    if array.dtype.kind == "c":
        return array * array.dtype.type(1j)
    result = numpy.zeros(array.shape, numpy.result_type(array.dtype, numpy.complex64))
    result.imag = array
    return result


def _quotients(below: list[Array], above: list[Array], eps: float) -> list[Array]:
    with unwarned():
        return [
            numpy.asarray((high - low) / high.real.dtype.type(2 * eps)) for low, high in zip(below, above, strict=True)
        ]
