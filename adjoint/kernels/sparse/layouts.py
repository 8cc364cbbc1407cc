"""Conversion between dense and sparse layouts, the normal order of stored elements, and sparse gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..runtime.floating import Array
from ..runtime.positions import as_places
from ..runtime.sparse_array import Compressed, Coordinates, SparseArray, sparse

_LARGEST = 1 << 62


def coo(indices: Array, values: Array, shape: tuple[int, ...], coalesced: bool = False) -> SparseArray:
    """Return an array of layout `sparse_coo`."""
    return sparse(Coordinates(indices, values, coalesced), shape)


def keys(indices: Array, shape: tuple[int, ...]) -> Array:
    """Return numbers in the row-major order of the columns of coordinates: ranks if the product of sizes is too large."""
    if math.prod(shape) < _LARGEST:
        numbers = numpy.zeros(indices.shape[1], numpy.int64)
        for row, length in zip(indices, shape, strict=True):
            numbers = numbers * length + row
        return numbers
    return numpy.unique(indices, axis=1, return_inverse=True)[1].reshape(-1)


def coalesce(array: SparseArray) -> SparseArray:
    """Return the same array with sorted coordinates. Elements at equal coordinates are added."""
    parts = array.parts
    if isinstance(parts, Compressed) or parts.coalesced:
        return array
    indices, values = summed(parts.indices, parts.values, array.shape[: len(parts.indices)])
    return coo(indices, values, array.shape, True)


def summed(indices: Array, values: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the different columns of `indices`, sorted, and the sums of the values of each column."""
    if indices.shape[1] < 2:
        return indices, values
    numbers = keys(indices, shape)
    order = numpy.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = numpy.flatnonzero(numpy.concatenate(([True], numbers[1:] != numbers[:-1])))
    indices, values = indices[:, order[starts]], values[order]
    if len(starts) < len(values):
        values = numpy.add.reduceat(values, starts, axis=0, dtype=values.dtype)
    return indices, values


def coordinates(array: Any) -> SparseArray:
    """Convert an array of any layout to coordinates, in the order of storage. The result is coalesced only if `array` was."""
    if not isinstance(array, SparseArray):
        return from_dense(array)
    parts = array.parts
    if isinstance(parts, Coordinates):
        return array
    indices, values = _expanded(parts, places_of(array))
    order = numpy.argsort(keys(indices, array.shape[: len(indices)]), kind="stable")
    return coo(indices[:, order], values[order], array.shape, True)


def _expanded(parts: Compressed, indices: Array) -> tuple[Array, Array]:
    """Return the coordinates and values of the elements of a compressed array, which stores them at `indices`."""
    count = indices.shape[1]
    values = parts.values.reshape(count, *parts.values.shape[parts.places.ndim :])
    if parts.in_blocks:
        height, width = values.shape[1:3]
        down, across = numpy.divmod(numpy.arange(height * width), width)
        rows, columns = (indices[-2:, :, None] * [[[height]], [[width]]] + [[down], [across]]).reshape(2, -1)
        indices = numpy.stack((*numpy.repeat(indices[:-2], height * width, axis=1), rows, columns))
        values = values.reshape(count * height * width, *values.shape[3:])
    return indices, values


def from_dense(array: Array, sparse_dim: int | None = None) -> SparseArray:
    """Return a sparse array of the nonzero elements, or of nonzero slices at indices of `sparse_dim` dimensions."""
    count = array.ndim if sparse_dim is None else sparse_dim
    if not 0 < count <= array.ndim and not count == array.ndim == 0:
        wanted = f"[0,{array.ndim}] range, but {count} is given" if count else ">0 when self.dim()>0"
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in {wanted}")
    found = array != 0
    if count < array.ndim:
        found = found.any(axis=tuple(range(count, array.ndim)))
    if count == 0:
        return coo(numpy.empty((0, int(found)), numpy.int64), array.reshape(-1)[: int(found)].copy(), (), True)
    places = numpy.nonzero(found)
    return coo(numpy.stack(places).astype(numpy.int64), array[places], array.shape, True)


def to_dense(array: Any, dtype: Any = None, masked_grad: Any = None, source: Any = None) -> Any:
    """Return the array with all elements."""
    if isinstance(array, SparseArray):
        whole = coalesce(coordinates(array))
        result = numpy.zeros(array.shape, array.dtype)
        parts = whole.parts
        if len(parts.indices):
            result[tuple(parts.indices)] = parts.values
        elif len(parts.values):
            result[...] = parts.values[0]
        array = result
    return array if dtype is None else array.astype(dtype)


def to_coo(array: Any, sparse_dim: int | None = None) -> SparseArray:
    """Return an array of any layout as `sparse_coo`."""
    if not isinstance(array, SparseArray):
        return from_dense(array, sparse_dim)
    if array.parts.layout in ("sparse_coo", "sparse_csr"):
        return coordinates(array)
    return coo(*_expanded(array.parts, places_of(array)), array.shape)  # in the order of storage, as in PyTorch


def compress(
    array: Any, layout: str, blocksize: tuple[int, ...] | None = None, dense_dim: int | None = None
) -> SparseArray:
    """Convert an array of any layout to one of the four compressed layouts."""
    if isinstance(array, SparseArray):
        parts = array.parts
        if parts.layout == layout and blocksize in (None, parts.block):
            return array
        if isinstance(parts, Coordinates) and len(parts.indices) != 2:
            raise RuntimeError(
                f"coo_to_{layout}: conversion from Sparse to {layout_name(layout)} for input tensors with sparse_dim()!=2 is not "
                "supported"
            )
        whole = coalesce(coordinates(array))
    else:
        count = array.ndim - (dense_dim or 0)
        if count < 2:
            raise RuntimeError(
                f"Only tensors with two sparse dimensions can be converted to the {layout_name(layout)} layout, got self with "
                f"{count} dimensions"
            )
        whole = from_dense(array, count)
    if not math.prod(whole.shape[: len(whole.parts.indices) - 2]):
        raise RuntimeError(f"to_{layout}: Expected product of batch dimensions to be non-zero.")
    if blocksize is not None:
        tall, wide = blocksize
        height, width = whole.shape[len(whole.parts.indices) - 2 :][:2]
        if height % tall or width % wide:
            parts = getattr(array, "parts", None)
            source = "dense_to_" if parts is None else "sparse_compressed_to_" if isinstance(parts, Compressed) else ""
            raise RuntimeError(
                f"{source}{layout}: tensor sparse size ({height},{width}) must be divisible by given blocksize ({tall},{wide})"
            )
    return _compressed(whole, layout, blocksize, getattr(getattr(array, "parts", None), "starts", _NO_STARTS).dtype)


_NO_STARTS = numpy.empty(0, numpy.int64)


def _check_conversion(parts: Compressed, layout: str, blocksize: tuple[int, int] | None) -> None:
    """Raise an error for pairs of compressed layouts that PyTorch does not convert."""
    names = layout_name(parts.layout), layout_name(layout)
    if blocksize is None and parts.in_blocks and layout != parts.layout:
        raise RuntimeError(f"sparse_compressed_to_{layout}: expected SparseCsr or SparseCsc layout but got {names[0]}")
    reason = ""
    if blocksize is not None and not parts.in_blocks and parts.batch:
        reason = "for batched inputs"
    elif blocksize is not None and parts.in_blocks and parts.block != blocksize:
        reason = f"with blocksize changed from {list(parts.block or ())} to {list(blocksize)}"
    if reason:
        function = "to_sparse" if parts.layout == layout else "sparse_compressed_to_sparse"
        raise RuntimeError(f"{function}: conversion from {names[0]} to {names[1]} {reason} is not supported")


def _compressed(whole: SparseArray, layout: str, blocksize: tuple[int, ...] | None, kind: Any) -> SparseArray:
    """Convert coalesced coordinates to a compressed layout with indices of the dtype `kind`."""
    indices, values = whole.parts.indices, whole.parts.values
    batch = whole.shape[: len(indices) - 2]
    numbers, (rows, columns) = keys(indices[:-2], batch), indices[-2:]
    height, width = whole.shape[len(batch) :][:2]
    if blocksize is not None:
        tall, wide = blocksize
        height, width = height // tall, width // wide
        found, which = numpy.unique((numbers * height + rows // tall) * width + columns // wide, return_inverse=True)
        blocks = numpy.zeros((len(found), tall, wide, *values.shape[1:]), values.dtype)
        blocks[which.reshape(-1), rows % tall, columns % wide] = values
        (numbers, rows, columns), values = numpy.unravel_index(found, (max(math.prod(batch), 1), height, width)), blocks
    by_rows = layout in ("sparse_csr", "sparse_bsr")
    outer, inner, length = (rows, columns, height) if by_rows else (columns, rows, width)
    lines = numbers * length + outer
    if not by_rows:
        order = numpy.argsort(lines, kind="stable")
        lines, inner, values = lines[order], inner[order], values[order]
    starts = numpy.zeros((*batch, length + 1), kind)
    counts = numpy.bincount(lines, minlength=math.prod(batch) * length).reshape(*batch, length)
    numpy.cumsum(counts, -1, out=starts[..., 1:])
    count = int(starts.reshape(-1)[length]) if starts.size else 0
    if (starts[..., -1] != count).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    places = numpy.ascontiguousarray(inner, kind).reshape(*batch, count)
    return sparse(Compressed(layout, starts, places, values.reshape(*batch, count, *values.shape[1:])), whole.shape)


def layout_name(layout: str) -> str:
    """Return `SparseCsr` for `sparse_csr`."""
    return layout.title().replace("_", "")


def like(array: Any, model: SparseArray) -> Any:
    """Return an array of coordinates in the layout of `model`."""
    parts = model.parts
    if isinstance(parts, Coordinates):
        return array
    return _compressed(coalesce(array), parts.layout, parts.block, parts.starts.dtype)


def all_stored(array: SparseArray) -> SparseArray:
    """Return the same array in the same layout, with stored zeros."""
    sparse_dim = len(coordinates(array).parts.indices)
    shape = array.shape[:sparse_dim]
    ones = numpy.ones((math.prod(shape), *array.shape[sparse_dim:]), array.dtype)
    whole = coo(numpy.indices(shape).reshape(sparse_dim, -1), ones, array.shape, True)
    return sparse_mask(array, like(whole, array))


def places_in_dense(array: SparseArray) -> Array:
    """Return the positions, in the flat array of all elements, of the stored elements of a coalesced array."""
    count = array.parts.values.size
    numbers = to_dense(
        sparse(array.parts.with_values(numpy.arange(1, count + 1).reshape(array.parts.values.shape)), array.shape)
    )
    places = numpy.flatnonzero(numbers)
    return places[numpy.argsort(numbers.reshape(-1)[places])]


def as_written_to(array: Any, result: Any) -> Any:
    """Return `result` in the layout of `array`, to which it will be written."""
    if not isinstance(array, SparseArray):
        return to_dense(result)
    parts = array.parts
    if not isinstance(result, SparseArray):
        raise RuntimeError(f"a dense result cannot be written to a tensor of layout {layout_name(parts.layout)}")
    return result if result.parts.layout == parts.layout else like(coordinates(result), array)


def overwrite(array: SparseArray, result: SparseArray) -> None:
    """Write `result`, of equal shape and layout, to `array`. Compressed values at the same coordinates keep their memory."""
    old, new = array.parts, result.parts
    values = new.values.astype(array.dtype, copy=False)
    if isinstance(old, Compressed) and new.starts is old.starts and new.places is old.places:
        old.values[...] = values
    else:
        array.parts = new.with_values(values)


def sparse_mask(array: Any, mask: SparseArray) -> SparseArray:
    """Return the elements of `array` at the coordinates that `mask` stores, in the layout of `mask`."""
    if not isinstance(mask, SparseArray):
        raise NotImplementedError(
            "Could not run 'aten::_nnz' with arguments from the 'CPU' backend. The mask of sparse_mask() must be sparse."
        )
    if array.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(array.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if not isinstance(mask.parts, Coordinates):
        return mask_compressed(array, mask)
    indices, coalesced = mask.parts.indices, mask.parts.coalesced
    return coo(indices, elements_at(array, indices, mask.parts.values.shape[1:]), mask.shape, coalesced)


def mask_compressed(array: Any, mask: SparseArray) -> SparseArray:
    """Return the result of `sparse_mask` for a mask with a compressed layout."""
    parts, places = mask.parts, places_of(mask)
    if parts.block:
        (tall, wide), count = parts.block, len(parts.batch)
        height, width = mask.shape[count : count + 2]
        grid = to_dense(array).reshape(
            *parts.batch, height // tall, tall, width // wide, wide, *mask.shape[count + 2 :]
        )
        values = grid[(*places[:-1], slice(None), places[-1])]
    else:
        values = elements_at(array, places, parts.values.shape[parts.places.ndim :])
    if not isinstance(array, SparseArray):
        starts, inner = (part.astype(numpy.int64, copy=False) for part in (parts.starts, parts.places))
        parts = Compressed(parts.layout, starts, inner, values)
    return sparse(parts.with_values(values.reshape(mask.parts.values.shape)), mask.shape)


def places_of(mask: SparseArray) -> Array:
    """Return the coordinates of the elements (or blocks) of a compressed array in the order in which they are stored."""
    parts = mask.parts
    lengths, count = numpy.diff(parts.starts), parts.places.size
    outer = numpy.repeat(
        numpy.arange(lengths.size, dtype=numpy.int64) % max(lengths.shape[-1], 1), as_places(lengths.reshape(-1))
    )
    inner = parts.places.reshape(-1).astype(numpy.int64)
    batches = numpy.indices(parts.places.shape)[:-1].reshape(len(parts.batch), count)
    return numpy.stack((*batches, *((outer, inner) if parts.by_rows else (inner, outer))))


def elements_at(array: Any, indices: Array, dense_shape: tuple[int, ...]) -> Array:
    """Return the elements, or slices, of an array of any layout at these coordinates."""
    if isinstance(array, SparseArray) and len(coordinates(array).parts.indices) != len(indices):
        array = to_dense(array)
    if not isinstance(array, SparseArray):
        return numpy.array(array[tuple(indices)]) if len(indices) else numpy.stack([array] * indices.shape[1])
    whole = coalesce(coordinates(array))
    parts, shape = whole.parts, array.shape[: len(indices)]
    result = numpy.zeros((indices.shape[1], *dense_shape), array.dtype)
    if parts.indices.shape[1]:
        both = keys(numpy.concatenate((parts.indices, indices), axis=1), shape)
        own, wanted = both[: parts.indices.shape[1]], both[parts.indices.shape[1] :]
        at = numpy.minimum(numpy.searchsorted(own, wanted), len(own) - 1)
        found = own[at] == wanted
        result[found] = parts.values[at[found]]
    return result


def compressed_of_parts(starts: Array, places: Array, values: Array, size: tuple[int, ...], layout: str) -> SparseArray:
    """Return an array of a compressed layout."""
    return sparse(Compressed(layout, starts, places, values), size)


def with_values(array: SparseArray, values: Any) -> SparseArray:
    """Return an array with other values at the same coordinates."""
    return sparse(array.parts.with_values(to_dense(values)), array.shape)


def at_places_of(template: SparseArray, array: SparseArray) -> SparseArray:
    """Return an array with the shape and coordinates of `template` and the stored elements of `array`, followed by zeros."""
    values = numpy.zeros(template.parts.values.shape, array.dtype)
    count = min(values.size, array.parts.values.size)
    values.reshape(-1)[:count] = array.parts.values.reshape(-1)[:count]
    return sparse(template.parts.with_values(values), template.shape)


def stored(array: SparseArray) -> Array:
    """Return the stored elements."""
    return array.parts.values


def in_layout(array: Any, layout: str) -> Any:
    """Return an array in the layout of this name, which dense dimensions and the block size may follow: `sparse_bsr 0 2 2`."""
    if layout == "strided":
        return to_dense(array)
    name, *sizes = layout.split()
    dense_dim, *block = map(int, sizes or "0")
    return to_coo(array) if name == "sparse_coo" else compress(array, name, tuple(block) or None, dense_dim)


def made_in_layout(array: Any, layout: str) -> Any:
    """Return a new array in the layout of this name, which is sparse only for zeros. No element is then stored."""
    if not layout.startswith("sparse"):
        return array
    if layout in ("sparse_bsr", "sparse_bsc"):
        raise RuntimeError(
            "zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{layout.title().replace('_', '')}"
        )
    if array.ndim < 2 and layout != "sparse_coo":
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size "
            f"{list(array.shape)}"
        )
    if array.any():
        raise RuntimeError("full(...) is not implemented for sparse layout")
    return in_layout(array, layout)


def to_coo_from(array: Any, *options: Any) -> SparseArray:
    """Return an array of a compressed layout as `sparse_coo`."""
    return to_coo(array)


def _compressing(layout: str) -> Any:
    """Return the kernel of the operator that converts sparse arrays to this layout."""

    def converted(array: SparseArray, blocksize: Any, dense_dim: Any, source: str) -> SparseArray:
        if isinstance(array.parts, Compressed):
            _check_conversion(array.parts, layout, blocksize)
        return compress(array, layout, blocksize)

    return converted


to_sparse_csr, to_sparse_csc = _compressing("sparse_csr"), _compressing("sparse_csc")
to_sparse_bsr, to_sparse_bsc = _compressing("sparse_bsr"), _compressing("sparse_bsc")


def diagonals(array: Array, offsets: list[int], shape: tuple[int, int]) -> SparseArray:
    """Return a matrix with the rows of `array` on its diagonals. The index of an element in its row is its column."""
    rows, columns, values = [], [], []
    for row, offset in zip(array.reshape(-1, array.shape[-1]), offsets, strict=True):
        across = numpy.arange(max(offset, 0), max(min(shape[1], shape[0] + offset, row.size), max(offset, 0)))
        rows.append(across - offset)
        columns.append(across)
        values.append(row[across])
    indices = numpy.stack((numpy.concatenate(rows), numpy.concatenate(columns))).astype(numpy.int64)
    return coo(indices, numpy.concatenate(values), shape)


def not_dense(*args: Any, **options: Any) -> Any:
    """Raise the error of an operator that accepts only sparse arrays."""
    raise NotImplementedError("this operator takes sparse tensors")


def empty_parts(sparse_dim: int, shape: tuple[int, ...], dtype: Any) -> Coordinates:
    """Return the parts of an array of coordinates that stores nothing."""
    return Coordinates(numpy.zeros((sparse_dim, 0), numpy.int64), numpy.zeros((0, *shape[sparse_dim:]), dtype), True)


def grown(parts: Coordinates, shape: tuple[int, ...]) -> Coordinates:
    """Return the same elements in an array of a larger shape."""
    values = numpy.zeros((len(parts.values), *shape[len(parts.indices) :]), parts.values.dtype)
    values[tuple(slice(0, length) for length in parts.values.shape)] = parts.values
    return Coordinates(parts.indices, values, parts.coalesced)


# --- gradients that are sparse because few elements were taken ---


def embedding_backward(grad: Array, indices: Array, num_weights: int, padding_idx: int) -> SparseArray:
    """Return the gradients of the rows of a table at `indices`, in the order of `indices`."""
    taken, rows = indices.reshape(-1), grad.reshape(indices.size, grad.shape[-1])
    if padding_idx >= 0:
        kept = taken != padding_idx
        taken, rows = taken[kept], rows[kept]
    return coo(taken.reshape(1, -1).astype(numpy.int64), rows, (num_weights, grad.shape[-1]))


def gather_backward(grad: Any, dim: int, index: Array, shape: tuple[int, ...]) -> SparseArray:
    """Return the gradients of the elements at `index` along `dim`."""
    if not shape:
        return coo(numpy.zeros((0, index.size), numpy.int64), grad.reshape(-1), shape)
    places = numpy.indices(index.shape or (1,)).reshape(len(shape), -1)
    places[dim] = index.reshape(-1)
    return coo(places.astype(numpy.int64), grad.reshape(-1), shape)
