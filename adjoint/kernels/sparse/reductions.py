"""Sums of sparse arrays, and softmax over the elements that they store."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from ..reduce import moments
from ..runtime.floating import Array
from ..runtime.shapes import normalize_dim, normalize_dims
from ..runtime.sparse_array import Coordinates, SparseArray
from .layouts import coalesce, coo, coordinates, elements_at, keys, layout_name, like, sparse_mask, summed


def total(array: SparseArray, *, dtype: Any = None) -> Any:
    """Return the sum of all elements."""
    return numpy.asarray(array.parts.values.sum(dtype=_sum_dtype(array, dtype)))


def _sum_dtype(array: Any, dtype: Any) -> Any:
    kind = array.dtype if dtype is None else numpy.dtype(dtype)
    return numpy.dtype(numpy.int64) if dtype is None and kind.kind in "iub" else kind


def sum_dims(array: SparseArray, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sums over some dimensions. The result is sparse if a sparse dimension remains."""
    layout = array.parts.layout
    if layout not in ("sparse_coo", "sparse_csr"):
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout "
            f"{layout_name(layout)}"
        )
    if layout == "sparse_csr" and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dims = normalize_dims(dim, array.ndim)
    parts = coalesce(coordinates(array)).parts
    count = len(parts.indices)
    inner = tuple(d - count + 1 for d in dims if d >= count)
    values = parts.values.astype(_sum_dtype(array, dtype), copy=False)
    if inner:
        values = values.sum(axis=inner, keepdims=keepdim, dtype=values.dtype)
    shape = tuple([1 if d in dims else n for d, n in enumerate(array.shape) if keepdim or d not in dims])
    left = [d for d in range(count) if d not in dims]
    if not left and not keepdim:
        return numpy.asarray(values.sum(0, dtype=values.dtype))
    if keepdim:
        indices = parts.indices.copy()
        indices[[d for d in dims if d < count]] = 0
    else:
        indices = parts.indices[left]
    if len(left) == count:
        return like(coo(indices, values, shape, parts.coalesced), array)
    result = coo(*summed(indices, values, shape[: len(indices)]), shape, True)
    return like(result, array) if len(shape) > 1 else result


def sum_backward(grad: Any, self: SparseArray, dim: Any) -> SparseArray:
    """Return the gradient of `sum_dims` at the coordinates that the summed array stores."""
    self = coalesce(self)
    parts = self.parts
    count = len(parts.indices)
    dims = normalize_dims(dim, self.ndim)
    left = [d for d in range(count) if d not in dims]
    inner = tuple(d - count + 1 for d in dims if d >= count)
    kept = tuple(n for d, n in enumerate(self.shape) if d >= count and d not in dims)
    if left:
        if not isinstance(grad, SparseArray):
            raise RuntimeError("_sparse_sum_backward_cpu: expected grad_ Tensor to be sparse, but got dense")
        found = elements_at(grad, parts.indices[left], kept)
    else:
        found = numpy.broadcast_to(grad, (parts.indices.shape[1], *kept))
    for axis in inner:
        found = numpy.expand_dims(found, axis)
    values = numpy.broadcast_to(found, parts.values.shape).astype(self.dtype)
    return coo(parts.indices, values, self.shape, parts.coalesced)


def _groups(array: SparseArray, dim: int) -> tuple[Any, Array, Array, Array]:
    """Return the parts of a coalesced array, and the order, starts and lengths of its rows along a sparse dimension."""
    parts = array.parts
    others = [d for d in range(len(parts.indices)) if d != dim]
    numbers = keys(parts.indices[others], tuple(array.shape[d] for d in others))
    order = numpy.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = numpy.flatnonzero(numpy.concatenate(([True], numbers[1:] != numbers[:-1]))) if len(numbers) else order
    return parts, order, starts, numpy.diff(numpy.append(starts, len(numbers)))


def _softmax(logarithm: bool, array: SparseArray, dim: int, half_to_float: bool = False) -> SparseArray:
    """Return `softmax`, or its logarithm, over the stored elements. The other elements are treated as minus infinity."""
    array = coalesce(array)
    dim = normalize_dim(dim, array.ndim)
    parts, count = array.parts, len(array.parts.indices)
    values = parts.values
    if dim >= count:
        axis = dim - count + 1
        shifted = values - values.max(axis, keepdims=True)
        weights = numpy.exp(shifted)
        sums = weights.sum(axis, keepdims=True)
        return coo(
            parts.indices, shifted - numpy.log(sums) if logarithm else weights / sums, array.shape, parts.coalesced
        )
    _, order, starts, lengths = _groups(array, dim)
    result = numpy.empty_like(values)
    if len(order):
        rows = values[order]
        shifted = rows - numpy.repeat(numpy.maximum.reduceat(rows, starts, axis=0), lengths, axis=0)
        weights = numpy.exp(shifted)
        sums = numpy.repeat(numpy.add.reduceat(weights, starts, axis=0), lengths, axis=0)
        result[order] = shifted - numpy.log(sums) if logarithm else weights / sums
    return coo(parts.indices, result, array.shape, True)


softmax, log_softmax = partial(_softmax, False), partial(_softmax, True)


def _softmax_backward(
    logarithm: bool, grad: Any, output: SparseArray, dim: int, transposed: bool = False
) -> SparseArray:
    """Return the gradient of `softmax`, which is symmetric, or of `log_softmax`, or its transpose."""
    output = coalesce(output)
    dim = normalize_dim(dim, output.ndim)
    parts, count = output.parts, len(output.parts.indices)
    given = sparse_mask(grad, output).parts.values
    weights = numpy.exp(parts.values) if logarithm else parts.values
    terms = given if logarithm and not transposed else given * weights
    if dim >= count:
        sums = terms.sum(dim - count + 1, keepdims=True)
    else:
        _, order, starts, lengths = _groups(output, dim)
        sums = numpy.zeros_like(terms)
        if len(order):
            sums[order] = numpy.repeat(numpy.add.reduceat(terms[order], starts, axis=0), lengths, axis=0)
    if transposed and logarithm:
        result = given - sums
    else:
        result = given - weights * sums if logarithm else weights * (given - sums)
    return coo(parts.indices, result, output.shape, True)


softmax_backward, log_softmax_backward = partial(_softmax_backward, False), partial(_softmax_backward, True)


def any_element(array: SparseArray, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether any element is not zero."""
    if not isinstance(array.parts, Coordinates) or dim is not None:
        return NotImplemented
    return numpy.asarray((array.parts.values != 0).any())


def norm(array: SparseArray, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the norm of all elements as a vector."""
    if dim not in (None, ()) or ord < 0 or keepdim:
        return NotImplemented
    values = coalesce(coordinates(array)).parts.values
    return moments.norm(values, ord, None, False, dtype=dtype)
