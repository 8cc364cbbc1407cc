"""Gradients that are sparse because few elements were taken."""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime.sparse_array import SparseArray
from .layouts import Array, coo


def embedding_backward(grad: Array, indices: Array, num_weights: int, padding_idx: int) -> SparseArray:
    """The gradients of the rows of a table that `indices` took, in the order in which they were taken."""
    taken, rows = indices.reshape(-1), grad.reshape(-1, grad.shape[-1])
    if padding_idx >= 0:
        kept = taken != padding_idx
        taken, rows = taken[kept], rows[kept]
    return coo(taken.reshape(1, -1).astype(numpy.int64), rows, (num_weights, grad.shape[-1]))


def gather_backward(grad: Any, dim: int, index: Array, shape: tuple[int, ...]) -> SparseArray:
    """The gradients of the elements that `index` took along `dim`."""
    if not shape:
        return coo(numpy.zeros((0, 1), numpy.int64), grad.reshape(1), shape)
    places = numpy.indices(index.shape).reshape(len(shape), -1)
    places[dim] = index.reshape(-1)
    return coo(places.astype(numpy.int64), grad.reshape(-1), shape)
