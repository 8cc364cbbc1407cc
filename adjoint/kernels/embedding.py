"""Looking up rows of a table by index, and adding up their gradients."""

from __future__ import annotations

from typing import Any

import numpy

from ..dtypes import from_numpy
from .precision import widen
from .scatter import add_rows

Array = numpy.ndarray[Any, Any]


def embedding(weight: Array, indices: Array) -> Array:
    """The rows of `weight` at `indices`.

    Raises:
        RuntimeError: if the table is not a matrix or the indices are not of int64 or int32.
        IndexError: if an index is outside the table.
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in (numpy.int64, numpy.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{from_numpy(indices.dtype).scalar_type}Tensor instead (while checking arguments for embedding)"
        )
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        raise IndexError("index out of range in self")
    return weight.take(indices, axis=0)


def embedding_dense_backward(
    grad: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """The gradient of the table: each row's gradients added up (and divided by their number, if asked for).

    The row `padding_idx` gets none.
    """
    width = grad.shape[-1]
    flat, rows = indices.reshape(-1), widen(grad).reshape(-1, width)
    if padding_idx >= 0:
        used = flat != padding_idx
        flat, rows = flat[used], rows[used]
    if scale_grad_by_freq:
        counts = numpy.bincount(flat, minlength=num_weights)
        rows = rows / counts[flat][:, None].astype(rows.dtype)
    result = numpy.zeros((num_weights, width), rows.dtype)
    add_rows(result, flat.astype(numpy.int64, copy=False), numpy.ascontiguousarray(rows))
    return result.astype(grad.dtype, copy=False)
