"""Rows of a table looked up by index, and the gradient of the table."""

from __future__ import annotations

import numpy
from numpy import asarray, ndarray

from .moments import norm
from .precision import type_name, widen
from .scatter import add_rows

_INT64 = numpy.dtype(numpy.int64)
_INDEX_TYPES = (_INT64, numpy.dtype(numpy.int32))


def embedding(weight: ndarray, indices: ndarray) -> ndarray:
    """The rows of `weight` (rows, width) at `indices`: an array of the shape of `indices` and one dimension more.

    Raises:
        RuntimeError: if `weight` does not have two dimensions or `indices` is not of integers.
        IndexError: if an index is out of bounds.
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, len(weight))
    return asarray(weight.take(indices, 0))


def _check_indices(indices: ndarray, rows: int) -> None:
    if indices.dtype not in _INDEX_TYPES:
        kind = type_name(indices.dtype)
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got torch.{kind}Tensor instead (while checking arguments for embedding)"
        )
    if indices.size and not (indices.item(indices.argmin()) >= 0 and indices.item(indices.argmax()) < rows):
        raise IndexError("index out of range in self")


def embedding_dense_backward(
    grad: ndarray, indices: ndarray, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> ndarray:
    """The gradient of the table: zeros of `num_weights` rows to which those of `grad` are added at `indices`.

    The row `padding_idx` gets none, unless it is negative. With `scale_grad_by_freq` each row is divided by how often
    its index occurs.
    """
    width = grad.shape[-1]
    rows = widen(grad).reshape(indices.size, width)
    index = indices.reshape(-1).astype(_INT64, copy=False)
    result = numpy.zeros((num_weights, width), rows.dtype)
    if padding_idx >= 0:
        used = numpy.flatnonzero(index != padding_idx)
        if len(used) < len(index):
            index, rows = index[used], rows[used]
    if index.size and width:
        if scale_grad_by_freq:
            rows = rows / numpy.bincount(index, minlength=num_weights)[index, None].astype(rows.dtype)
        add_rows(result, index, rows)
    return result.astype(grad.dtype, copy=False)


def embedding_renorm_(weight: ndarray, indices: ndarray, max_norm: float, norm_type: float = 2) -> ndarray:
    """Scale the rows of `weight` at `indices` whose norm exceeds `max_norm` down to it, in place."""
    _check_indices(indices, len(weight))
    rows = numpy.unique(indices)
    lengths = norm(weight[rows], norm_type, 1)
    long = lengths > max_norm
    scale = max_norm / (widen(lengths[long]) + 1e-7)
    weight[rows[long]] = (widen(weight[rows[long]]) * scale[:, None]).astype(weight.dtype)
    return weight
