"""Distances between the rows of a matrix, and products of three arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from .precision import is_floating, type_name, widen

Array = numpy.ndarray[Any, Any]


def pdist(self: Array, p: float) -> Array:
    """The `p`-norm of the difference of each pair of rows `i < j`, shape `(N (N - 1) / 2,)`."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if not is_floating(self.dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if self.dtype.itemsize == 2:
        raise NotImplementedError(f"\"pdist\" not implemented for '{type_name(self.dtype)}'")
    size = numpy.abs(_differences(self))
    if p == 0:
        return numpy.add.reduce(size != 0, 1, dtype=self.dtype)
    if p == 1:
        return numpy.add.reduce(size, 1)
    if p == 2:
        return numpy.sqrt(numpy.einsum("ij,ij->i", size, size))
    if p == math.inf:
        return numpy.maximum.reduce(size, 1, initial=0)
    return numpy.add.reduce(size**p, 1) ** (1 / p)


def _differences(self: Array) -> Array:
    first, second = numpy.triu_indices(len(self), 1)
    return self[first] - self[second]


def pdist_backward(grad: Array, self: Array, p: float, distance: Array) -> Array:
    """The gradient of the matrix whose rows' distances `pdist` returned."""
    parts = norm_slopes(_differences(self), p, distance.reshape(-1, 1)) * grad.reshape(-1, 1)
    count, width = self.shape
    square = numpy.zeros((count, count, width), parts.dtype)
    square[numpy.triu_indices(count, 1)] = parts
    return numpy.add.reduce(square, 1) - numpy.add.reduce(square, 0)


def norm_slopes(difference: Array, p: float, norm: Array) -> Array:
    """The derivatives of the norms of the rows of `difference`; 0 where a norm is 0, where it has a corner."""
    if p == 0:
        return numpy.zeros_like(difference)
    if p == 1:
        return numpy.sign(difference)
    if p == math.inf:
        return numpy.sign(difference) * (numpy.abs(difference) == norm)
    with numpy.errstate(all="ignore"):
        if p == 2:
            slopes = difference / norm
        else:
            slopes = numpy.sign(difference) * (numpy.abs(difference) / norm) ** (p - 1)
    return numpy.where((norm == 0) | (difference == 0), 0, slopes).astype(difference.dtype, copy=False)


def trilinear(
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
) -> Array:
    """`(i1 * i2 * i3).sum(sumdim)`, each given new dimensions of one element at its `expand` beforehand."""
    total = i1.ndim + len(expand1)
    operands: list[Any] = []
    for array, expand in ((i1, expand1), (i2, expand2), (i3, expand3)):
        operands += [widen(array), [dim for dim in range(total) if dim not in expand]]
    result = numpy.einsum(*operands, [dim for dim in range(total) if dim not in sumdim], optimize=i1.dtype.kind != "c")
    return result.astype(i1.dtype, copy=False)
