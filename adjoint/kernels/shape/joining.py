"""Joining, repeating, reordering and masking arrays."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from ..._runtime.tracebacks import warn
from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import replayed
from ...codegen.pointwise import pointwise
from ...codegen.recording import recordable
from ...codegen.selection import choose, chosen
from ...codegen.tracing import xp
from ...dtypes import from_numpy
from ..memory.bounds import check_addressable
from ..memory.copying import copy_elements, distinct, empty_like, ordered_empty, widen
from ..runtime.costs import JOINED, LARGE, MOVED, THREADED
from ..runtime.floating import Array, c_name, refuse
from ..runtime.layout import fits, has_channels_last, row_major
from ..runtime.scalar import scalar_array
from ..runtime.shapes import broadcast_shapes, normalize_dim, normalize_dims

_concatenate: Any = getattr(numpy.concatenate, "__wrapped__", numpy.concatenate)  # skips other array types


def cat(arrays: list[Array], dim: int, out: Array | None = None) -> Array:
    """Return the concatenation of the arrays along `dim`. One-dimensional empty arrays are skipped."""
    try:
        if arrays[0].size >= THREADED and arrays[0].size * len(arrays) >= JOINED and LOOPS.enabled:
            result = _joined_by_loops(arrays, dim, out)
        elif out is not None and out.flags.c_contiguous and out.dtype is arrays[0].dtype:
            return _concatenate(arrays, dim, out)
        else:
            result = _concatenate(arrays, dim) if dim else _concatenate(arrays)
        return result if result.flags.c_contiguous else _joined(result, arrays)
    except (TypeError, ValueError, IndexError):
        pass  # skip some, or raise PyTorch's error below
    if not arrays:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    kept = [array for array in arrays if array.shape != (0,)] or arrays[:1]
    first = kept[0]
    for index, array in enumerate(arrays):
        if array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {index}) cannot be concatenated")
    axis = normalize_dim(dim, first.ndim)
    for index, array in enumerate(arrays):
        if array.shape == (0,):
            continue
        if array.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for other, (size, expected) in enumerate(zip(array.shape, first.shape, strict=True)):
            if size != expected and other != axis:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size {size} for "
                    f"tensor number {index} in the list."
                )
    return _joined(numpy.concatenate(kept, axis=axis), kept)


def _joined_by_loops(arrays: list[Array], dim: int, out: Array | None = None) -> Array:
    """Compute `numpy.concatenate` with compiled loops. An error is raised if shapes do not match."""
    first = arrays[0]
    axis = dim + first.ndim if dim < 0 else dim
    alike = all(array.dtype == first.dtype and array.ndim == first.ndim for array in arrays)
    outer = [array.shape[:axis] + array.shape[axis + 1 :] for array in arrays]
    if (
        not alike
        or not 0 <= axis < first.ndim
        or outer.count(outer[0]) < len(outer)
        or any(map(has_channels_last, arrays))
    ):
        return numpy.concatenate(arrays, dim)
    sizes = [array.shape[axis] for array in arrays]
    shape = (*first.shape[:axis], sum(sizes), *first.shape[axis + 1 :])
    result: Any = out if fits(out, shape, first.dtype) else numpy.empty(shape, first.dtype)
    stop = 0
    for array, size in zip(arrays, sizes, strict=True):
        start, stop = stop, stop + size
        copy_elements(result[(slice(None),) * axis + (slice(start, stop),)], array)
    return result


def _joined(result: Array, arrays: list[Array]) -> Array:
    """Return `result` in row-major order, unless all joined arrays have their channels last."""
    if result.ndim < 2 or result.flags.c_contiguous or all(has_channels_last(array) for array in arrays):
        return result
    return numpy.ascontiguousarray(result)


def cat_backward(grad: Any, shapes: list[tuple[int, ...]], dim: int) -> list[Any]:
    """Return the part of `grad` (an array or tensor) that belongs to each of the joined inputs."""
    axis = normalize_dim(dim, len(grad.shape))
    parts: list[Any] = []
    start = 0
    for shape in shapes:
        if tuple(shape) == (0,):
            parts.append(None)
            continue
        stop = start + shape[axis]
        parts.append(grad[(slice(None),) * axis + (slice(start, stop),)])
        start = stop
    return parts


def stack(arrays: list[Array], dim: int) -> Array:
    """Return the arrays along a new dimension."""
    if dim == 0:
        try:
            if LOOPS.takes(arrays[0].size, MOVED) and (found := _stacked_by_loops(arrays)) is not None:
                return found
            result = numpy.array(arrays)
        except (ValueError, IndexError):  # PyTorch's error is raised below
            pass
        else:
            if result.size:  # for empty arrays, NumPy may not detect different shapes
                return result
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    for index, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(arrays[0].shape)} at entry 0 and "
                f"{list(array.shape)} at entry {index}"
            )
    shape = arrays[0].shape
    dim = normalize_dim(dim, len(shape) + 1)
    if dim == len(shape):
        return row_major(cat([array[..., None] for array in arrays], dim))
    return cat(arrays, dim).reshape((*shape[:dim], len(arrays), *shape[dim:]))


def _stacked_by_loops(arrays: list[Array]) -> Array | None:
    """Return the stacked arrays, joined by compiled loops, or None if their shapes differ, or if NumPy is as fast."""
    first = arrays[0]
    scattered = not all(array.flags.c_contiguous for array in arrays)
    if not scattered and first.size * len(arrays) < JOINED:
        return None
    if any(array.shape != first.shape or array.dtype != first.dtype for array in arrays):
        return None
    result = numpy.empty((len(arrays), *first.shape), first.dtype)
    for target, array in zip(result, arrays, strict=True):
        copy_elements(target, array)
    return result


def stack_in_order(arrays: list[Array], dim: int, strides: tuple[int, ...]) -> Array:
    """Do the same as `stack`, except that a large result has the memory order of `strides`.

    If these are the strides of a permuted array, undoing the permutation gives contiguous rows.
    """
    first = arrays[0]
    if not first.ndim or not LOOPS.takes(first.size, MOVED):
        return stack(arrays, dim)
    dim = normalize_dim(dim, len(strides))
    shape = (*first.shape[:dim], len(arrays), *first.shape[dim:])
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    result = ordered_empty(shape, first.dtype, tuple(order))
    for target, array in zip(unstack(result, dim), arrays, strict=True):
        copy_elements(target, array)
    return result


def unstack(array: Array, dim: int) -> list[Array]:
    """Return the slices of dimension `dim`."""
    return list(array if dim == 0 else numpy.moveaxis(array, dim, 0))


def block_diag(arrays: list[Array]) -> Array:
    """Return a matrix with the given matrices along its diagonal, and zeros elsewhere. Vectors are rows."""
    for index, array in enumerate(arrays):
        if array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {index} has {array.ndim} dimensions"
            )
    matrices = [numpy.atleast_2d(array) for array in arrays]
    shape = sum(len(matrix) for matrix in matrices), sum(matrix.shape[1] for matrix in matrices)
    result = numpy.zeros(shape, matrices[0].dtype)
    for matrix, block in zip(matrices, _blocks([matrix.shape for matrix in matrices]), strict=True):
        result[block] = matrix
    return result


def _blocks(shapes: list[tuple[int, ...]]) -> Iterator[tuple[slice, slice]]:
    """Return the positions of matrices of these shapes on the diagonal."""
    row = column = 0
    for height, width in shapes:
        yield slice(row, row + height), slice(column, column + width)
        row, column = row + height, column + width


def block_diag_backward(grad: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Return the part of `grad` (an array or tensor) that belongs to each of the inputs."""
    matrices = [(1,) * (2 - len(shape)) + tuple(shape) for shape in shapes]
    return [grad[block].reshape(shape) for block, shape in zip(_blocks(matrices), shapes, strict=True)]


@recordable
def repeat(self: Array, repeats: tuple[int, ...]) -> Array:
    """Return the array repeated along each dimension. New dimensions come first."""
    check_addressable(self.nbytes * math.prod(repeats))
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    if not LOOPS.takes(self.size, MOVED) or len(repeats) < self.ndim or 0 in repeats:
        return row_major(numpy.tile(self, repeats))
    result = numpy.empty([count * size for count, size in zip(repeats, shape, strict=True)], self.dtype)
    apart = [number for pair in zip(repeats, shape, strict=True) for number in pair]
    copy_elements(result.reshape(apart), self.reshape([number for size in shape for number in (1, size)]))
    return result


@replayed
def roll(self: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """Return the elements shifted along `dims`, or through the flattened array."""
    if not dims:
        return _rolled(row_major(self).reshape(-1), [shifts[0]]).reshape(self.shape)
    if not self.ndim:
        return self.copy()
    kept = self if has_channels_last(self) else row_major(self)
    along = [0] * self.ndim
    for shift, dim in zip(shifts, dims, strict=True):
        along[normalize_dim(dim, self.ndim)] += shift
    return _rolled(kept, along)


def _rolled(self: Array, shifts: list[int]) -> Array:
    """Return the elements shifted along each dimension. A shift exchanges two parts of the dimension."""
    if self.size and _is_small_row_major(self) and SHAPES.recorder is None:
        result = self
        for dim, shift in enumerate(shifts):
            if at := -shift % self.shape[dim]:
                before = (slice(None),) * dim
                result = _concatenate((result[(*before, slice(at, None))], result[(*before, slice(at))]), dim)
        return result.copy() if result is self else result
    result = empty_like(self)
    parts = []
    for n, shift in zip(self.shape, shifts, strict=True):
        at = shift % n if n else 0
        parts.append([(slice(at, n), slice(0, n - at)), *([(slice(0, at), slice(n - at, n))] if at else [])])
    for pairs in itertools.product(*parts):
        copy_elements(result[tuple(pair[0] for pair in pairs)], self[tuple(pair[1] for pair in pairs)])
    return result


@replayed
def flip(self: Array, dims: tuple[int, ...]) -> Array:
    """Return a copy with the order along `dims` reversed."""
    wrapped = normalize_dims(dims, self.ndim) if dims else ()
    if not self.ndim:
        return self.copy()
    return _copied(_reversed(self, wrapped), self)


def _reversed(self: Array, dims: Sequence[int]) -> Array:
    return self[tuple([slice(None, None, -1 if dim in dims else 1) for dim in range(self.ndim)])]


def _is_small_row_major(array: Array) -> bool:
    """Return whether the array is small and row-major, and no size is 1. NumPy then gives a new array the same strides."""
    return bool(array.size < MOVED and array.flags.c_contiguous and 1 not in array.shape)


def _copied(array: Array, order: Array) -> Array:
    """Return a copy of `array` whose dimensions have the order in memory of the dimensions of `order`."""
    if _is_small_row_major(order):
        return array.copy()
    result = empty_like(order)
    copy_elements(result, array)
    return result


def rot90(self: Array, k: int, dims: tuple[int, ...]) -> Array:
    """Return the array with the plane of two dimensions rotated by `k` quarter turns."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if k % 4 == 0:
        return self.copy()
    first, second = normalize_dim(dims[0], self.ndim), normalize_dim(dims[1], self.ndim)
    turned = _reversed(self, ((second,), (first, second), (first,))[k % 4 - 1])
    if k % 2:
        turned = turned.swapaxes(first, second)
    result = numpy.empty_like(turned, order="K")
    copy_elements(result, turned)
    return result


def broadcast_except(first: tuple[int, ...], second: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Return the common shape of two shapes of equal length, ignoring dimension `dim`."""
    left = (*first[:dim], 1, *first[dim + 1 :])
    right = (*second[:dim], 1, *second[dim + 1 :])
    return broadcast_shapes(left, right)


def masked_fill(self: Array, mask: Array, value: Any) -> Array:
    """Return a copy of `self`, broadcast with `mask`, with `value` where `mask` is true."""
    filled = _fill_value(self, mask, value)
    shape = self.shape if mask.shape == self.shape else broadcast_shapes(mask.shape, self.shape)
    if filled.dtype == self.dtype and (self.size >= LARGE or LOOPS.every_size):
        found = chosen(mask, filled, self, numpy.empty(shape, self.dtype))
        if found is not NotImplemented:
            return numpy.asarray(found)
    if mask.shape == self.shape and filled.dtype == self.dtype:
        return choose(mask, filled, row_major(self))
    result = numpy.broadcast_to(self, shape).copy() if shape != self.shape else numpy.array(self, order="C")
    numpy.copyto(result, filled, where=mask)
    return result


def masked_fill_(self: Array, mask: Array, value: Any) -> None:
    """Write `value` to `self` where `mask`, broadcast to its shape, is true.

    Elements that share memory are written if the mask is true for one of them.
    """
    filled = _fill_value(self, mask, value)
    shape = self.shape if mask.shape == self.shape else broadcast_shapes(mask.shape, self.shape)
    if shape != self.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}")
    shared = 0 in self.strides and tuple(dim for dim, step in enumerate(self.strides) if step == 0 and shape[dim] > 1)
    if shared and self.size:
        warn(
            "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            "This also applies to advanced indexing e.g. tensor[mask] = scalar"
        )
        self, mask = distinct(self), numpy.broadcast_to(mask, shape).any(axis=shared, keepdims=True)  # type: ignore[assignment]
    fits = (self.size >= LARGE or LOOPS.every_size) and filled.dtype == self.dtype and self.flags.c_contiguous
    if fits and chosen(mask, filled, self, self) is not NotImplemented:
        return
    if mask.shape == self.shape:
        numpy.putmask(self, mask, filled)
    else:
        numpy.copyto(self, filled, where=mask)


def _fill_value(self: Array, mask: Array, value: Any) -> Array:
    """Return the value that `masked_fill` writes, as an array of the dtype of `self`."""
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype " + c_name(mask.dtype))
    if isinstance(value, numpy.ndarray):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype == self.dtype:
            return value
        value = widen(value).item()
    return scalar_array(value, from_numpy(self.dtype))


def front_of_zeros(self: Array, shape: tuple[int, ...]) -> Array:
    """Return zeros of `shape` that begin, flattened, with the elements of `self`."""
    result = numpy.zeros(shape, self.dtype)
    result.reshape(-1)[: self.size] = self
    return result


def tril(self: Array, diagonal: int) -> Array:
    """Return the lower triangle of the last two dimensions."""
    return _triangle(self, diagonal, False)


def tril_(self: Array, diagonal: int) -> None:
    """Compute `tril` in place."""
    _triangle(self, diagonal, False, inplace=True)


def triu(self: Array, diagonal: int) -> Array:
    """Return the upper triangle of the last two dimensions."""
    return _triangle(self, diagonal, True)


def triu_(self: Array, diagonal: int) -> None:
    """Compute `triu` in place."""
    _triangle(self, diagonal, True, inplace=True)


def _triangle(x: Array, diagonal: int, upper: bool, inplace: bool = False) -> Array:
    if x.ndim < 2:
        raise RuntimeError(f"{'triu' if upper else 'tril'}: input tensor must have at least 2 dimensions")
    diagonal = operator.index(diagonal)
    rows, columns = x.shape[-2:]
    if LOOPS.takes(x.size, LARGE) and x.itemsize <= 8:
        word = numpy.dtype(f"i{x.itemsize}")
        if rows + columns <= numpy.iinfo(word).max:
            places = numpy.arange(rows, dtype=word)[:, None], numpy.arange(columns, dtype=word)
            edge = min(max(diagonal, -rows), columns)
            found = row_major(_zero_apart(row_major(x).view(word), *places, edge, upper).view(x.dtype))
            if inplace:
                x[...] = found
            return found
    bits = (_remembered_bits if rows * columns < MOVED else _bits)(rows, columns, diagonal, upper, x.itemsize)
    if x.itemsize > 8:
        result = x if inplace else x.copy()
        numpy.copyto(result, 0, where=bits == 0)
        return result
    words = x.view(bits.dtype)
    if inplace:
        return numpy.bitwise_and(words, bits, words)
    return numpy.bitwise_and(words, bits, order="C").view(x.dtype)


@pointwise("triangle", "i")
def _zero_apart(x: Array, row: Array, column: Array, diagonal: int, upper: bool) -> Any:
    """Return the elements of the triangle above the diagonal (or below it), and 0 elsewhere."""
    distance = column - row
    return xp.where(distance < diagonal if upper else distance > diagonal, 0, x)


def _bits(rows: int, columns: int, diagonal: int, upper: bool, itemsize: int) -> Array:
    """Return integers of `itemsize` bytes, at most 8. All bits are set in the upper, or lower, triangle, and none elsewhere."""
    inside = ~numpy.tri(rows, columns, diagonal - 1, bool) if upper else numpy.tri(rows, columns, diagonal, bool)
    return -inside.astype(f"i{min(itemsize, 8)}")


_remembered_bits = functools.lru_cache(32)(_bits)


def diag_embed(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return matrices, in dimensions `dim1` and `dim2`, with the last dimension of `self` on a diagonal."""
    first, second = normalize_dim(dim1, self.ndim + 1), normalize_dim(dim2, self.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = self.shape[-1] + abs(offset)
    result = numpy.zeros((*self.shape[:-1], size, size), self.dtype)
    start = max(-offset, 0) * size + max(offset, 0)
    flat = result.reshape(*self.shape[:-1], size * size)
    flat[..., start : start + self.shape[-1] * (size + 1) : size + 1] = self
    if first == self.ndim - 1 and second == self.ndim:
        return result
    return numpy.ascontiguousarray(numpy.moveaxis(result, (-2, -1), (first, second)))


def trace(self: Array) -> Array:
    """Return the sum of the diagonal of a matrix."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    if self.dtype.kind == "b":
        raise refuse("trace", self)
    kind = self.dtype if self.dtype.kind not in "iu" else numpy.dtype(numpy.int64)
    return numpy.asarray(numpy.add.reduce(self.diagonal(), dtype=kind))
