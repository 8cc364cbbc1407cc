"""Reading and writing at index arrays or a mask, at several indices together or in rows of a table. Also membership tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import asarray, ndarray

from ..._runtime.tracebacks import warn
from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import compiled, replayed, zeros
from ...codegen.pointwise import pointwise
from ...codegen.recording import recordable
from ...codegen.tracing import xp
from ..memory.copying import clone, convert, widen
from ..runtime.costs import MOVED, SHORT, STEPS
from ..runtime.floating import HALVES, INT64, Array, compute_dtype, type_name
from ..runtime.layout import reordered
from ..runtime.positions import as_places
from ..runtime.shapes import broadcast_shapes, normalize_dim
from ..shape.joining import front_of_zeros
from .flattened import wrap_positions
from .masking import common_dtype
from .places import out_of_bounds
from .scatter import combine, copied, take_rows

Indices = Sequence[ndarray | None]

_FULL = slice(None)


@recordable
def index(x: ndarray, indices: Indices) -> ndarray:
    """Return the elements of `x` at `indices` (as in `index_put`)."""
    only = indices[0] if len(indices) == 1 else None
    if only is not None and x.ndim:
        kind = only.dtype.char
        try:
            if kind == "l" and x.flags.c_contiguous:
                many = LOOPS.takes(only.size, STEPS) or SHAPES.recorder is not None
                if many and out_of_bounds(only, len(x), -len(x)) is None:
                    return take_rows(x, only)
                return x.take(only, 0)
            if kind == "?" and only.shape == x.shape and LOOPS.takes(x.size, MOVED):
                return masked_select(x, only)
            if kind in "lihb" or (kind == "?" and only.shape == x.shape):
                return x[only]
            if kind == "?" and only.ndim and only.shape == x.shape[: only.ndim] and x.flags.c_contiguous:
                return x[only]
        except IndexError:
            pass  # raise PyTorch's error below
    elif x.size and len(indices) <= x.ndim and _all_positions(indices):
        try:
            if len(indices) == 2 and indices[0] is None and indices[1] is not None and x.flags.c_contiguous:
                return x.take(indices[1], 1)
            found = _take_together(x, indices) if LOOPS.takes(x.size, MOVED) else None
            if found is not None:
                return found
            result = x[tuple([_FULL if index is None else index for index in indices])]
        except (IndexError, ValueError):  # the wrong bounds or shapes of indices
            pass
        else:
            return result if result.ndim < 2 else _in_order(result, x, indices)
    expanded = expand_indices(x.shape, indices)
    shape = _indexed_shape(x.shape, expanded)
    if math.prod(shape) == 0:
        return numpy.empty(shape, x.dtype)
    _check_bounds(x.shape, expanded)
    result = x[tuple(_FULL if index is None else index for index in expanded)]
    return result if result.ndim < 2 else _in_order(result, x, expanded)


def _take_together(x: ndarray, indices: Indices) -> ndarray | None:
    """Return elements or rows at indices into the leading dimensions of a contiguous array, or None without a loop."""
    given = [index for index in indices if index is not None]
    if len(given) < len(indices) or not x.flags.c_contiguous or not LOOPS.takes(given[0].size, MOVED):
        return None
    if any(out_of_bounds(index, length, -length) is not None for index, length in zip(given, x.shape, strict=False)):
        return None
    leading = x.shape[: len(given)]
    return take_rows(x.reshape(math.prod(leading), *x.shape[len(given) :]), _flattened(leading, given))


@pointwise("index", "i")
def _position(before: Array, index: Array, length: int) -> Any:
    """Return positions that are extended by one dimension of this length. Negative indices count from the end."""
    return before * length + xp.where(index < 0, index + length, index)


def _flattened(shape: tuple[int, ...], indices: Sequence[ndarray]) -> ndarray:
    """Return the position, in a flattened array of `shape`, of each element at `indices`, one array for each dimension."""
    flat = zeros((), INT64)
    for index, length in zip(indices, shape, strict=True):
        flat = _position(flat, index, length)
    return flat


def _all_positions(indices: Indices) -> bool:
    for index in indices:  # noqa: SIM110  (a generator would take longer than the indexing)
        if index is not None and index.dtype.char != "l":
            return False
    return True


def _in_order(result: ndarray, x: ndarray, indices: Indices) -> ndarray:
    """Return `result` in PyTorch's memory order: the order of `x` in dimensions without an index, and of the indices."""
    given = [dim for dim in range(len(indices)) if indices[dim] is not None]
    kept = [step for dim, step in enumerate(x.strides) if dim not in given]
    common = result.ndim - len(kept)
    first = given[0] if given and given == list(range(given[0], given[-1] + 1)) else 0
    source = (result.shape, (*kept[:first], *(0,) * common, *kept[first:]))
    after = len(kept) - first
    places = [index for index in indices if index is not None]
    windows = [(index.shape + (1,) * after, index.strides + (0,) * after) for index in places]
    return reordered(result, (source, *windows))


@recordable
def index_backward(grad: ndarray, shape: tuple[int, ...], indices: Indices) -> ndarray:
    """Return zeros of `shape` with `grad` added at the indices."""
    only = indices[0] if len(indices) == 1 else None
    if only is not None and only.dtype.kind == "b" and only.shape == shape:
        return masked_select_backward(grad, shape, only)
    result = zeros(shape, grad.dtype)
    if only is not None and only.dtype.kind == "b":
        result[only] = grad  # a mask selects no element twice
        return result
    few = 0 < grad.size <= STEPS and SHAPES.recorder is None
    if few and only is not None and only.dtype.char == "l" and grad.dtype.char in "fd":
        numpy.add.at(result, only, grad)
        return result
    expanded = expand_indices(shape, indices)
    if grad.size:
        _check_bounds(shape, expanded)
        _accumulate(result, expanded, numpy.broadcast_to(grad, _indexed_shape(shape, expanded)))
    return result


def index_put(x: ndarray, indices: Indices, values: ndarray, accumulate: bool = False) -> ndarray:
    """Return a copy of `x` with `x[indices] = values`, or with `values` added there once for each repetition of a position.

    Each of `indices`, for the leading dimensions of `x`, is None (the whole dimension), an array of integers, or a mask
    for as many dimensions as the mask has. `values` is broadcast.
    """
    return index_put_(clone(x), indices, values, accumulate)


def index_put_(x: ndarray, indices: Indices, values: ndarray, accumulate: bool = False) -> ndarray:
    """Do the same as `index_put` in place in `x`."""
    if values.size == 1 and not accumulate and _put_masked(x, indices, values):
        return x
    if _put_at(x, indices, values, accumulate):
        return x
    expanded = expand_indices(x.shape, indices)
    shape = _indexed_shape(x.shape, expanded)
    try:
        values = values if values.shape == shape else numpy.broadcast_to(values, shape)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None
    if values.dtype != x.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {type_name(x.dtype)} for the destination "
            f"and {type_name(values.dtype)} for the source."
        )
    if values.size == 0:
        return x
    _check_bounds(x.shape, expanded)
    if not accumulate:
        x[tuple(slice(None) if index is None else index for index in expanded)] = values
    else:
        _accumulate(x, expanded, values)
    return x


def _put_masked(x: ndarray, indices: Indices, value: ndarray) -> bool:
    """Do the same as `index_put_` if the only index is a mask and there is one value, of any type. Otherwise return False."""
    given = [position for position, index in enumerate(indices) if index is not None]
    if len(given) != 1 or (mask := indices[given[0]]) is None or mask.dtype.char not in "?B":
        return False
    _check_mask(x.shape, given[0], mask)
    if mask.dtype.char == "B":
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    where = mask.reshape(mask.shape + (1,) * (x.ndim - given[0] - mask.ndim))
    numpy.copyto(x, value.reshape(()), "unsafe", where=where)
    return True


def _put_at(x: ndarray, indices: Indices, values: ndarray, accumulate: bool) -> bool:
    """Do the same as `index_put_` in a simple case: valid integers of one shape, and values with the shape of `x[indices]`."""
    shape, count = x.shape, len(indices)
    if not 0 < count <= len(shape) or values.dtype != x.dtype or (index := indices[0]) is None:
        return False
    if values.shape != index.shape + shape[count:]:
        return False
    for each, length in zip(indices, shape, strict=False):
        if each is None or each.dtype.char != "l" or each.shape != index.shape:
            return False
        if accumulate and out_of_bounds(each, length, -length) is not None:
            return False
    if not accumulate:
        try:
            x[tuple(indices)] = values
        except IndexError:  # nothing has been written
            return False
        return True
    if count > 1 or x.dtype.char not in "fdFDl" or not x.flags.c_contiguous:
        return False
    if values.size <= STEPS:
        numpy.add.at(x, index, values)
    else:
        width = math.prod(shape[1:])
        flat = wrap_positions(index.reshape(-1), shape[0])
        combine(x, (shape[0], width), 0, flat, values.reshape(flat.size, width), numpy.add)
    return True


def expand_indices(shape: tuple[int, ...], indices: Indices) -> list[ndarray | None]:
    """Return indices without masks: each mask is replaced by the positions of its true elements, one array per dimension."""
    if len(indices) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {len(indices)})")
    expanded: list[ndarray | None] = []
    for index in indices:
        if index is None or index.dtype.char in "liq":
            expanded.append(index)
            continue
        if index.dtype.char == "B":
            warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
        elif index.dtype.kind != "b":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        _check_mask(shape, len(expanded), index)
        if index.ndim:
            expanded.extend(index.nonzero())
    if len(expanded) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {len(expanded)})")
    return expanded


def _check_mask(shape: tuple[int, ...], start: int, mask: ndarray) -> None:
    """Raise an error if `mask` does not have the dimensions of `shape` from `start` on."""
    if mask.shape != shape[start : start + mask.ndim]:
        alike = [shape[start + dim : start + dim + 1] == (length,) for dim, length in enumerate(mask.shape)]
        wrong = alike.index(False)
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} at index {wrong} does not match the shape of the indexed "
            f"tensor {list(shape)} at index {start + wrong}"
        )


def _check_bounds(shape: tuple[int, ...], indices: Indices) -> None:
    given = [(index, length) for index, length in zip(indices, shape, strict=False) if index is not None]
    for position, (index, length) in enumerate(given):
        wrong = out_of_bounds(index, length, -length)
        if wrong is not None:
            raise IndexError(f"index {wrong} is out of bounds for dimension {position} with size {length}")


def _indexed_shape(shape: tuple[int, ...], indices: Indices) -> tuple[int, ...]:
    """Return the shape of `x[indices]`. Broadcast dimensions replace adjacent indices, or come first if others lie between."""
    given = [dim for dim, index in enumerate(indices) if index is not None]
    if not given:
        return shape
    arrays = [index for index in indices if index is not None]
    try:
        common = broadcast_shapes(*[index.shape for index in arrays])
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(index.shape)) for index in arrays)
        ) from None
    if 0 not in common and any(shape[dim] == 0 for dim in given):
        raise IndexError("index is out of bounds for dimension with size 0")
    rest = tuple(length for dim, length in enumerate(shape) if dim not in given)
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    return rest[:first] + common + rest[first:]


def _accumulate(x: ndarray, indices: Indices, values: ndarray) -> None:
    given = [index for index in indices if index is not None]
    if all(index is not None for index in indices[: len(given)]):
        # Leading dimensions: one flat index selects whole rows of the other dimensions.
        leading, width = x.shape[: len(given)], math.prod(x.shape[len(given) :])
        flat, shape = _flattened(leading, given).reshape(-1), (math.prod(leading), width)
        combine(x, shape if width > 1 else shape[:1], 0, flat, values if width > 1 else values.reshape(-1), numpy.add)
    else:
        combine(x, (x.size,), 0, _flat_positions(x.shape, indices).reshape(-1), values.reshape(-1), numpy.add)


def _flat_positions(shape: tuple[int, ...], indices: Indices) -> ndarray:
    """Return the flat position of each element of `x[indices]`."""
    key = tuple(slice(None) if index is None else index for index in indices)
    total: Any = 0
    for dim, length in enumerate(shape):
        counted = numpy.arange(length).reshape((-1,) + (1,) * (len(shape) - dim - 1))
        total = total + numpy.broadcast_to(counted, shape)[key] * math.prod(shape[dim + 1 :])
    return numpy.asarray(total)


def nonzero(x: ndarray) -> ndarray:
    """Return the indices of the nonzero elements, with one row for each element. Each column is contiguous."""
    if x.ndim == 0:
        return numpy.empty((int(bool(x)), 0), numpy.int64)
    (places,) = x.reshape(-1).nonzero()  # in less time than the indices of several dimensions
    found = numpy.empty((x.ndim, places.size), numpy.int64)
    for dim in reversed(range(1, x.ndim)):
        outer = places // x.shape[dim]
        numpy.subtract(places, numpy.multiply(outer, x.shape[dim], found[dim]), found[dim])
        places = outer
    found[0] = places
    return found.T


_SELECT = compiled("index.masks.select", least=MOVED)


def masked_select(x: ndarray, mask: ndarray) -> ndarray:
    """Return the elements of `x` where `mask` is true as a flat array. `x` and `mask` are broadcast together."""
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if mask.shape != x.shape:
        shape = broadcast_shapes(mask.shape, x.shape)
        x, mask = numpy.broadcast_to(x, shape), numpy.broadcast_to(mask, shape)
    found = _SELECT.run(x.size, x, mask)
    return x[mask] if found is NotImplemented else asarray(found)


def masked_select_backward(grad: ndarray, shape: tuple[int, ...], mask: ndarray) -> ndarray:
    """Return zeros, of `shape` broadcast with `mask`, with `grad` where `mask` is true."""
    common = broadcast_shapes(shape, mask.shape)
    result = numpy.zeros(common, grad.dtype)
    result[numpy.broadcast_to(mask, common)] = grad
    return result


def masked_scatter(x: ndarray, mask: ndarray, source: ndarray) -> ndarray:
    """Return a copy of `x` (broadcast with `mask`) with the elements of `source`, in order, where `mask` is true."""
    if mask.shape != x.shape:
        x = numpy.broadcast_to(x, broadcast_shapes(mask.shape, x.shape))
    return masked_scatter_(x.copy(), mask, source)


def masked_scatter_(x: ndarray, mask: ndarray, source: ndarray) -> ndarray:
    """Do the same as `masked_scatter` in place in `x`."""
    if mask.shape != x.shape:
        broadcast_shapes(mask.shape, x.shape)
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {type_name(mask.dtype)}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{type_name(x.dtype)} and "
            f"{type_name(source.dtype)}"
        )
    where = mask if mask.shape == x.shape else numpy.broadcast_to(mask, x.shape)
    wanted = int(numpy.count_nonzero(where))
    if source.size < wanted:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    x[where] = source.reshape(-1)[:wanted]
    return x


_INDEX_TYPES = (INT64, numpy.dtype(numpy.int32))


def masked_scatter_backward(grad: ndarray, mask: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Return zeros of `shape` that begin, when flattened, with the elements of `grad` where `mask` is true."""
    return front_of_zeros(masked_select(grad, mask), shape)


@recordable
def embedding(weight: ndarray, indices: ndarray, *_: Any) -> ndarray:
    """Return the rows of `weight` (rows, width) at `indices`, as an array of the shape of `indices` with one more dimension."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in _INDEX_TYPES:
        kind = type_name(indices.dtype)
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got torch.{kind}Tensor instead (while checking arguments for embedding)"
        )
    if out_of_bounds(indices, len(weight)) is not None:
        raise IndexError("index out of range in self")
    return take_rows(weight, indices)


@replayed
def embedding_dense_backward(
    grad: ndarray, indices: ndarray, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> ndarray:
    """Return the gradient of the table: `num_weights` rows of zeros to which the rows of `grad` are added at `indices`.

    Nothing is added to the row `padding_idx`, unless it is negative. With `scale_grad_by_freq`, each row is divided by
    the number of times that its index occurs.
    """
    width = grad.shape[-1]
    rows = convert(grad, compute_dtype(grad.dtype)) if grad.dtype in HALVES else grad
    rows = rows.reshape(indices.size, width)
    index = indices.reshape(-1).astype(INT64, copy=False)
    result = zeros((num_weights, width), rows.dtype)
    if padding_idx >= 0:
        used = index if SHAPES.recorder is not None else numpy.flatnonzero(index != padding_idx)
        if len(used) < len(index):
            index, rows = index[used], rows[used]
    if out_of_bounds(index, num_weights) is not None:
        raise IndexError("index out of range in self")
    if index.size and width:
        if scale_grad_by_freq:
            rows = rows / numpy.bincount(as_places(index), minlength=num_weights)[index, None].astype(rows.dtype)
        combine(result, result.shape, 0, index, rows, numpy.add)
        if padding_idx >= 0 and SHAPES.recorder is not None:
            result[padding_idx] = 0
    return convert(result, grad.dtype) if grad.dtype in HALVES else result


def isin(elements: Array, test_elements: Array, invert: bool = False) -> Array:
    """Return whether each of `elements` is one of `test_elements` or, with `invert`, whether it is not."""
    for array in (elements, test_elements):
        if array.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {type_name(array.dtype)}")
    dtype = common_dtype(elements, test_elements)
    elements, tests = (widen(array.astype(dtype, copy=False)) for array in (elements, test_elements.reshape(-1)))
    if tests.size <= SHORT:
        found = numpy.zeros(elements.shape, bool)
        for value in tests:
            found |= elements == value
    elif dtype.kind in "iu" and (span := int(tests.max()) - int(tests.min())) <= 8 * (tests.size + elements.size):
        wide, least = elements.astype(numpy.int64, copy=False), int(tests.min())
        table = numpy.zeros(span + 2, bool)  # elements outside the extrema use the last entry
        table[tests.astype(numpy.int64, copy=False) - least] = True
        between = (wide >= least) & (wide <= least + span)
        found = table.take(numpy.where(between, wide - least, span + 1))
    else:
        ordered = numpy.sort(tests)
        places = numpy.minimum(ordered.searchsorted(elements), ordered.size - 1)
        found = ordered[places] == elements
    return numpy.asarray(~found if invert else found)


def nonzero_static(self: Array, size: int, fill_value: int = -1) -> Array:
    """Return the indices of the first `size` nonzero elements, one row each. Missing rows contain `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    places = nonzero(self)[:size]
    result = numpy.full((size, self.ndim), fill_value, numpy.int64)
    result[: len(places)] = places
    return result


def index_copy(x: ndarray, dim: int, index: ndarray, source: ndarray) -> ndarray:
    """Return a copy of `x` with slices of `source` in place of the slices along `dim` that `index` selects."""
    return index_copy_(copied(x), dim, index, source)


def index_copy_(x: ndarray, dim: int, index: ndarray, source: ndarray) -> ndarray:
    """Do the same as `index_copy` in place in `x`."""
    dim = normalize_dim(dim, x.ndim)
    _check_index_copy(x, dim, index, source)
    if x.ndim == 0:
        x[...] = source.reshape(())
    else:
        x[(slice(None),) * dim + (index.reshape(-1),)] = source
    return x


def _check_index_copy(x: ndarray, dim: int, index: ndarray, source: ndarray) -> None:
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    slices = source.shape[dim] if source.ndim else 1
    if source.ndim == 0 and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if x.ndim and source.ndim and source.ndim != x.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    if index.dtype != INT64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {type_name(index.dtype)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {type_name(x.dtype)} and "
            f"(source) {type_name(source.dtype)}"
        )
    mine, theirs = x.shape[:dim] + x.shape[dim + 1 :], source.shape[:dim] + source.shape[dim + 1 :]
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} "
            "at dimension 0."
        )
    if index.size != slices:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({slices})"
        )
    length = x.shape[dim] if x.ndim else 1
    wrong = out_of_bounds(index, length)
    if wrong is not None:
        raise IndexError(f"index_copy_(): index {wrong} is out of bounds for dimension {dim} with size {length}")
