"""Changes of the shape of sparse arrays: permuted dimensions, parts of arrays, and joined arrays."""

from __future__ import annotations

from typing import Any

import numpy

from ...device import preserve_format
from ..memory.copying import convert
from ..runtime.floating import type_name
from ..runtime.shapes import normalize_dim, require_dims
from ..runtime.sparse_array import Compressed, Coordinates, SparseArray, sparse
from ..shape import view
from .layouts import coo, coordinates, layout_name, like, to_dense

_OTHER_ORDER = {
    "sparse_csr": "sparse_csc", "sparse_csc": "sparse_csr", "sparse_bsr": "sparse_bsc", "sparse_bsc": "sparse_bsr",
}  # fmt: skip


def permute(array: SparseArray, dims: Any) -> Any:
    """Return the array with its dimensions in another order. Sparse dimensions must stay before dense dimensions."""
    parts = array.parts
    view.permute(array, tuple(dims))  # raises an error if there are no such dimensions
    dims = [normalize_dim(dim, array.ndim) for dim in dims]
    if dims == sorted(dims):
        return array
    shape = tuple([array.shape[dim] for dim in dims])
    if isinstance(parts, Compressed):
        moved = [place for place, dim in enumerate(dims) if dim != place]
        return _exchanged(array, *moved) if len(moved) == 2 else NotImplemented
    count = len(parts.indices)
    if any((dim < count) != (place < count) for place, dim in enumerate(dims)):
        raise RuntimeError(
            "permute(sparse): a transpose of sparse and dense dimensions with each other is not supported"
        )
    values = parts.values.transpose(0, *(dim - count + 1 for dim in dims[count:]))
    return coo(parts.indices[dims[:count]], values, shape)


def transpose(array: SparseArray, dim0: int, dim1: int) -> Any:
    """Return the array with two dimensions exchanged."""
    dim0, dim1 = normalize_dim(dim0, array.ndim), normalize_dim(dim1, array.ndim)
    if isinstance(array.parts, Compressed):
        return _exchanged(array, dim0, dim1)
    exchanged = {dim0: dim1, dim1: dim0}
    return permute(array, [exchanged.get(dim, dim) for dim in range(array.ndim)])


def _exchanged(array: SparseArray, dim0: int, dim1: int) -> SparseArray:
    """Return a compressed array with two batch dimensions or its two sparse dimensions exchanged."""
    parts, count = array.parts, len(array.parts.batch)
    if array.ndim > count + 2:
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    kinds = ["Batch" if dim < count else "Sparse" for dim in (dim0, dim1)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{dim0}({kinds[0]}) and {dim1}({kinds[1]})"
        )
    shape = list(array.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    if dim1 < count:
        fields = [field.swapaxes(dim0, dim1) for field in (parts.starts, parts.places, parts.values)]
        return sparse(Compressed(parts.layout, *fields), tuple(shape))
    if dim0 == dim1:
        return array
    values = parts.values.swapaxes(count + 1, count + 2) if parts.in_blocks else parts.values
    return sparse(Compressed(_OTHER_ORDER[parts.layout], parts.starts, parts.places, values), tuple(shape))


def t(array: SparseArray) -> Any:
    """Return a matrix transposed."""
    if isinstance(array.parts, Coordinates):
        sparse = len(array.parts.indices)
        if sparse > 2 or sparse < array.ndim:
            got = f"{sparse} sparse and {array.ndim - sparse} dense dimensions"
            raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {got}")
    elif array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {array.ndim}D")
    return permute(array, range(array.ndim)[::-1])


def _dim_of(function: str, array: SparseArray, dim: int) -> int:
    """Return `dim` counted from the front."""
    if not array.ndim:
        raise IndexError(f"{function}() cannot be applied to a 0-dim tensor.")
    return normalize_dim(dim, array.ndim)


def select(array: SparseArray, dim: int, index: int) -> Any:
    """Return the slice at one index of a dimension."""
    dim = _dim_of("select", array, dim)
    length = array.shape[dim]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    index %= length
    shape = array.shape[:dim] + array.shape[dim + 1 :]
    parts = array.parts
    if isinstance(parts, Compressed):
        count = len(parts.batch)
        if dim < count:
            fields = [numpy.take(field, index, dim) for field in (parts.starts, parts.places, parts.values)]
            return sparse(Compressed(parts.layout, *fields), shape)
        if dim >= count + 2:
            return sparse(parts.with_values(numpy.take(parts.values, index, dim - array.ndim)), shape)
        if count:
            raise RuntimeError(
                "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
            )
    parts = coordinates(array).parts
    count = len(parts.indices)
    if dim >= count:
        return coo(parts.indices, numpy.take(parts.values, index, dim - count + 1), shape, parts.coalesced)
    found = parts.indices[dim] == index
    indices, values = numpy.delete(parts.indices, dim, 0)[:, found], parts.values[found]
    if count == 1:
        return values.sum(0, dtype=values.dtype)
    return coo(indices, values, shape, parts.coalesced)


def index_select(array: SparseArray, dim: int, index: Any) -> Any:
    """Return the slices at several indices of a dimension."""
    dim = _dim_of("index_select", array, dim)
    length = array.shape[dim]
    if index.size and (index.min() < -length or index.max() >= length):
        raise IndexError(f"index_select(): index out of range for dimension {dim} of size {length}")
    index = index.reshape(-1) % max(length, 1)
    parts = coordinates(array).parts
    count = len(parts.indices)
    shape = (*array.shape[:dim], len(index), *array.shape[dim + 1 :])
    if dim >= count:
        values = numpy.take(parts.values, index, dim - count + 1)
        return like(coo(parts.indices, values, shape, parts.coalesced), array)
    order = numpy.argsort(parts.indices[dim], kind="stable")
    ordered = parts.indices[dim][order]
    begins, ends = numpy.searchsorted(ordered, index, "left"), numpy.searchsorted(ordered, index, "right")
    counts = ends - begins
    places = numpy.repeat(numpy.arange(len(index)), counts)
    within = numpy.arange(counts.sum()) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    chosen = order[numpy.repeat(begins, counts) + within]
    indices = parts.indices[:, chosen]
    indices[dim] = places
    result = coo(indices, parts.values[chosen], shape, parts.coalesced and dim == 0)
    return like(result, array)


def narrow(array: SparseArray, dim: int, start: int, length: int) -> Any:
    """Return a part of a dimension."""
    return index_select(array, dim, numpy.arange(start, start + length))


def unbind(array: SparseArray, dim: int = 0) -> Any:
    """Return the slices along a dimension."""
    require_dims(array, dim)
    return tuple(select(array, dim, index) for index in range(array.shape[dim]))


def cat(arrays: Any, dim: int = 0) -> Any:
    """Return the arrays joined along a dimension."""
    if not all(isinstance(array, SparseArray) for array in arrays):
        place = next(place for place, array in enumerate(arrays) if not isinstance(array, SparseArray))
        raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {place}.")
    first = arrays[0]
    dim = normalize_dim(dim, first.ndim)
    parts = [coordinates(array).parts for array in arrays]
    count = len(parts[0].indices)
    kept = first.shape[:dim] + first.shape[dim + 1 :]
    for place, (array, part) in enumerate(zip(arrays, parts, strict=True)):
        if array.ndim != first.ndim or array.shape[:dim] + array.shape[dim + 1 :] != kept:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found "
                f"shape: {list(array.shape)} at position {place}."
            )
        if len(part.indices) != count:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {count}, {first.ndim - count}, but tensor at position "
                f"{place} has {len(part.indices)}, {array.ndim - len(part.indices)}."
            )
    lengths = [array.shape[dim] for array in arrays]
    shape = (*first.shape[:dim], sum(lengths), *first.shape[dim + 1 :])
    columns, values, before = [], [], 0
    for part, length in zip(parts, lengths, strict=True):
        indices, own = part.indices, part.values
        if dim < count:
            indices = indices.copy()
            indices[dim] += before
        else:
            wide = numpy.zeros((len(own), *shape[count:]), own.dtype)
            at = [slice(None)] * wide.ndim
            at[dim - count + 1] = slice(before, before + length)
            wide[tuple(at)] = own
            own = wide
        columns.append(indices)
        values.append(own)
        before += length
    joined = coo(numpy.concatenate(columns, axis=1), numpy.concatenate(values), shape)
    return like(joined, first)


def stack(arrays: Any, dim: int = 0) -> Any:
    """Return the arrays joined along a new dimension."""
    first = arrays[0].shape
    for place, array in enumerate(arrays):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(array.shape)} at entry "
                f"{place}"
            )
    parts = [unsqueeze(array, dim) if isinstance(array, SparseArray) else array for array in arrays]
    return NotImplemented if any(part is NotImplemented for part in parts) else cat(parts, dim)


def unsqueeze(array: SparseArray, dim: int) -> Any:
    """Return the array with another dimension of length 1."""
    parts = array.parts
    if not isinstance(parts, Coordinates):
        return NotImplemented
    dim = normalize_dim(dim, array.ndim + 1)
    shape = (*array.shape[:dim], 1, *array.shape[dim:])
    count = len(parts.indices)
    if dim <= count:
        return coo(numpy.insert(parts.indices, dim, 0, axis=0), parts.values, shape, parts.coalesced)
    return coo(parts.indices, numpy.expand_dims(parts.values, dim - count + 1), shape, parts.coalesced)


def zeros(array: SparseArray) -> SparseArray:
    """Return an array of the same shape that stores no elements."""
    parts = array.parts
    if isinstance(parts, Coordinates):
        values = numpy.zeros((0, *parts.values.shape[1:]), array.dtype)
        return coo(numpy.zeros((len(parts.indices), 0), numpy.int64), values, array.shape, True)
    starts, places = numpy.zeros_like(parts.starts), numpy.zeros((*parts.batch, 0), parts.places.dtype)
    values = numpy.zeros((*places.shape, *parts.values.shape[places.ndim :]), array.dtype)
    return sparse(Compressed(parts.layout, starts, places, values), array.shape)


def resize_rows(array: SparseArray, shape: tuple[int, ...]) -> SparseArray:
    """Return a CSR matrix of another size with the same stored elements. They move to the last row if rows are removed."""
    if len(shape) < 2:
        raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(shape)}")
    if shape[-1] < array.shape[-1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of "
            f"columns is {array.shape[-1]} while the requested new number of columns is {shape[-1]}."
        )
    parts = array.parts
    first = (0,) * (len(parts.batch) - len(shape) + 2)
    rows, count = shape[-2], min(parts.places.shape[-1], shape[-2] * shape[-1])
    starts = numpy.full((*shape[:-2], rows + 1), count, parts.starts.dtype)
    kept = min(parts.starts.shape[-1], rows + 1) - (rows + 1 < parts.starts.shape[-1])
    starts[..., :kept] = parts.starts[first][..., :kept]
    stored = (*[slice(None)] * (len(shape) - 2), slice(count))
    places, values = (field[first][stored] for field in (parts.places, parts.values))
    return sparse(Compressed(parts.layout, starts, places, values), shape)


def fill(array: Any, value: Any) -> Any:
    """Return an array with a compressed layout. Every stored element is `value`."""
    if not isinstance(array, SparseArray) or isinstance(array.parts, Coordinates):
        return NotImplemented
    return sparse(array.parts.with_values(numpy.full_like(array.parts.values, to_dense(value))), array.shape)


def clone(array: SparseArray, *, memory_format: Any = None) -> SparseArray:
    """Return a copy in separate memory."""
    if memory_format not in (None, preserve_format):
        raise RuntimeError(
            f"unsupported memory format option {repr(memory_format).split('.')[1].split('_')[0].title()}"
        )
    return array.copy()


def itself(array: SparseArray) -> SparseArray:
    """Return the array itself, for another tensor on it."""
    return array


def copy(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Return the elements of `other`, in the dtype of `self`, to replace the elements of `self`."""
    parts = [getattr(array, "parts", None) for array in (self, other)]
    if any(isinstance(part, Compressed) for part in parts):
        _check_copied(self, other)
    elif None in parts:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! "
            f"Found self type = {_type_name(self)} and src type = {_type_name(other)}"
        )
    return other.astype(self.dtype)


def _check_copied(self: Any, other: Any) -> None:
    """Raise an error unless `self` and `other` have one compressed layout and equally many stored elements."""
    names = [
        layout_name(array.parts.layout) if isinstance(array, SparseArray) else "Strided" for array in (self, other)
    ]
    if names[0] == "Strided":
        raise RuntimeError("copy_sparse_compressed_ expected sparse compressed tensor layout but got Strided")
    what = "torch.copy_: copy of sparse compressed tensors having different"
    if names[0] != names[1]:
        raise RuntimeError(f"{what} layouts is not supported. self layout is {names[0]} and src layout is {names[1]}")
    if self.parts.count != other.parts.count:
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."
        )
    dim = len(self.parts.batch) + (not self.parts.by_rows)
    if self.shape != other.shape:
        raise RuntimeError(
            f"torch.copy_: expected shapes of self and src to match along dimension {dim} for {names[0]} layout but the "
            f"corresponding dimensions of self and src are {self.shape[dim]} and {other.shape[dim]}, respectively."
        )
    if self.parts.block != other.parts.block:
        raise RuntimeError(
            f"{what} block sizes is not supported. self and src block sizes are {list(self.parts.block)} and "
            f"{list(other.parts.block)}, respectively."
        )


def _type_name(array: Any) -> str:
    return f"torch.{'sparse.' * isinstance(array, SparseArray)}{type_name(array.dtype)}Tensor"


def to_dtype(array: SparseArray, dtype: Any, memory_format: Any = None) -> SparseArray:
    """Return the array with elements of another dtype."""
    converted: Any = convert(array, dtype.numpy)
    return converted
