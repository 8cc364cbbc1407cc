"""Distinct values, histograms, positions in sorted sequences, and sums of segments.

Segments are consecutive elements. Lengths or offsets define the segments.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy
from numpy import asarray, ndarray

from ...codegen.plans import compiled
from ..index.places import out_of_bounds
from ..index.scatter import index_add_, take_rows
from ..memory.copying import contiguous, rounded, widen
from ..runtime.costs import LARGE, MOVED, PASSES, STEPS, TILE, TILE_BYTES
from ..runtime.floating import HALVES, INT64, compute_dtype, is_floating, refuse, type_name
from ..runtime.layout import row_major
from ..runtime.positions import as_places, gives_positions
from ..runtime.shapes import normalize_dim, require_dims
from .sorting import sort, take_last

Triple = tuple[ndarray, ndarray, ndarray]


# --- distinct values ------------------------------------------------------------------------------------------


@gives_positions(1, 2)
def unique(
    x: ndarray, sorted: bool = True, inverse: bool = True, counts: bool = True, dim: int | None = None
) -> Triple:
    """Return the distinct elements (or slices along `dim`) in order, the index of each element among them, and their counts.

    Results that are not requested are empty. A NaN is not equal to another NaN. The elements are always sorted, even if
    `sorted` is False.
    """
    if dim is None:
        if x.dtype.kind == "c":
            raise refuse("unique", x)
        values = None if inverse else _in_order(x.reshape(-1))
        if values is None:
            values, order = sort(x.reshape(-1))
        distinct, places, lengths = _runs(values, _starts(values), inverse, counts)
    else:
        slices, dim = _slices("unique_dim", x, dim)
        order = _order_of_rows(slices)
        ordered = numpy.moveaxis(x, dim, 0)[order]
        distinct, places, lengths = _runs(ordered, _starts(slices[order]), inverse, counts)
        distinct = numpy.moveaxis(row_major(distinct), 0, dim)
    if not inverse:
        return distinct, places, lengths
    unsorted = numpy.empty_like(places)
    unsorted[order] = places
    return distinct, unsorted.reshape(x.shape) if dim is None else unsorted, lengths


def _in_order(x: ndarray) -> ndarray | None:
    """Return the sorted elements of a small array, or None for other arrays, and for zeros, which may differ in sign."""
    if x.size >= PASSES or x.dtype.char not in "lifd":
        return None
    values = numpy.sort(x)
    if x.dtype.kind == "f" and 0 in values[values.searchsorted(0) :][:1]:  # zeros of either sign
        return None
    return values


def _order_of_rows(rows: ndarray) -> ndarray:
    """Return the indices of the rows in lexicographic order. Later columns are read only while some rows are equal."""
    order, group = numpy.arange(len(rows)), numpy.zeros(len(rows), INT64)
    for column in rows.T:
        order = order[numpy.lexsort((column[order], group))]  # the last key counts most
        values = column[order]
        number = values == values
        differ = (values[1:] != values[:-1]) & (number[1:] | number[:-1]) | (group[1:] != group[:-1])
        if differ.all():
            break
        group[1:] = differ.cumsum()
    return order


@gives_positions(1, 2)
def unique_slices(x: ndarray, dim: int, sorted: bool = True, inverse: bool = True, counts: bool = True) -> Triple:
    """Return the distinct slices along `dim`; see `unique`."""
    return unique(x, sorted, inverse, counts, dim)


@gives_positions(1, 2)
def unique_consecutive(x: ndarray, dim: int | None = None, inverse: bool = True, counts: bool = True) -> Triple:
    """Return the first element of each run of equal elements, the index of each element's run, and the lengths of runs.

    With `dim`, elements are slices along it. The last two results are empty unless they are requested.
    """
    if dim is None:
        if x.dtype.kind == "c":
            raise refuse("unique", x)
        flat = x.reshape(-1)
        distinct, places, lengths = _runs(flat, _starts(flat), inverse, counts)
        return distinct, places.reshape(x.shape) if inverse else places, lengths
    slices, dim = _slices("unique_dim_consecutive", x, dim)
    distinct, places, lengths = _runs(numpy.moveaxis(x, dim, 0), _starts(slices), inverse, counts)
    return numpy.moveaxis(row_major(distinct), 0, dim), places, lengths


def _slices(name: str, x: ndarray, dim: int) -> tuple[ndarray, int]:
    """Return each slice along `dim` as a row, and `dim` counted from the front."""
    if x.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = normalize_dim(dim, x.ndim)
    if x.dtype.kind == "c":
        raise refuse(f"{name}", x)
    if x.size == 0 and x.shape[dim] != 0:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if x.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    length = x.shape[dim]
    return numpy.moveaxis(x, dim, 0).reshape(length, x.size // length if length else 0), dim


def _starts(rows: ndarray) -> ndarray:
    """Return whether each row differs from the previous row."""
    starts = numpy.empty(len(rows), bool)
    starts[:1] = True
    starts[1:] = (rows[1:] != rows[:-1]).any(1) if rows.ndim > 1 else rows[1:] != rows[:-1]
    return starts


def _runs(ordered: ndarray, starts: ndarray, inverse: bool, counts: bool) -> Triple:
    places = lengths = numpy.empty(0, INT64)
    if counts:
        (first,) = starts.nonzero()
        lengths = numpy.empty_like(first)
        lengths[-1:] = len(starts)
        lengths[:-1] = first[1:]
        lengths -= first
    if inverse:
        places = starts.cumsum()
        places -= 1
    return ordered[starts], places, lengths


# --- histograms -----------------------------------------------------------------------------------------------


def histc(x: ndarray, bins: int = 100, min: float = 0, max: float = 0) -> ndarray:
    """Return the number of elements in each of `bins` equal intervals of [min, max].

    If `min` equals `max`, the intervals divide the range of `x`. Elements outside the range, and NaNs, are not counted.
    The result has the type of `x`.
    """
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if not is_floating(x.dtype):
        raise refuse("histogram_cpu", x)
    flat = widen(x).reshape(-1)
    low, high = flat.dtype.type(min), flat.dtype.type(max)
    whole = bool(low == high and x.size)
    if whole:
        low, high = _least(flat), _most(flat)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high:  # all elements are equal, so they are in the middle of a range that is 1 wider at each end
        return numpy.bincount(numpy.full(flat.size, bins // 2), minlength=bins).astype(x.dtype)
    counts = numpy.zeros(bins, INT64)
    for start in range(0, flat.size, TILE):
        part = flat[start : start + TILE]
        inside = part if whole else part[(part >= low) & (part <= high)]
        counts += numpy.bincount(_bins_of(inside, low, high, bins), minlength=bins)
    return counts.astype(x.dtype)


def _bins_of(inside: ndarray, low: Any, high: Any, bins: int) -> ndarray:
    """Return the index of the interval that contains each element."""
    places = (inside - low) * low.dtype.type(bins) / (high - low)
    # NaN counts as the largest: the product or a difference has overflowed.
    if places.size and not math.isfinite(places[places.argmax()]):
        places = (inside / 2 - low / 2) / (high / 2 - low / 2) * low.dtype.type(bins)
    return numpy.minimum(places.astype(INT64), bins - 1)


_least, _most = numpy.minimum.reduce, numpy.maximum.reduce

_MOST = 2**63 - 1


def bincount(x: ndarray, weights: ndarray | None = None, minlength: int = 0) -> ndarray:
    """Return how often each integer from 0 to the largest integer occurs, or the sum of the weights of its occurrences.

    The result is int64 without weights, float32 for float32 weights and float64 for others.
    """
    if x.dtype.kind not in "iu":
        raise refuse("bincount_cpu", x)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if x.ndim == 1 and x.size == 0:
        return numpy.zeros(minlength, INT64)
    if x.ndim != 1 or x.item(x.argmin()) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    largest = x.item(x.argmax())
    if largest >= _MOST:  # the count would overflow int64, and NumPy would write before the result
        raise RuntimeError(f"maximum value of input overflowed, it should be < {_MOST} but got {largest}")
    if weights is None:
        return numpy.bincount(as_places(x), minlength=minlength).astype(INT64, copy=False)
    if weights.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    totals = numpy.bincount(as_places(x), weights.astype(numpy.float64), minlength)
    return totals.astype(numpy.float32) if weights.dtype == numpy.float32 else totals


# --- positions in sorted sequences ----------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: ndarray, values: ndarray, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: ndarray | None = None,
) -> ndarray:  # fmt: skip
    """Return the positions at which to insert `values` into sequences that are sorted along the last dimension.

    The positions are before equal elements, or after them if `right`. `sorted_sequence` has one dimension, or has the
    dimensions of `values` except for the last dimension. `sorter` contains the indices that sort it.
    """
    _check_search(sorted_sequence, values, right, side, sorter)
    right = right or side == "right"
    if sorter is not None:
        sorted_sequence = take_last(sorted_sequence, sorter)
    ordered = not _has_nan(sorted_sequence)
    place: Literal["left", "right"] = "right" if right else "left"
    compiled: Any = NotImplemented
    if ordered and (sorted_sequence.ndim > 1 or values.size >= PASSES):
        compiled = _PLACES.run(values.size, sorted_sequence, values, right)
    if compiled is not NotImplemented:
        found = asarray(compiled)
    elif ordered and sorted_sequence.ndim == 1:
        found = asarray(sorted_sequence.searchsorted(values, place))
    elif ordered and values.size * sorted_sequence.shape[-1] < LARGE:
        after = numpy.greater if right else numpy.greater_equal  # no element comes after NaN
        beyond = numpy.count_nonzero(after(sorted_sequence[..., None, :], values[..., None]), -1)
        found = asarray(numpy.subtract(sorted_sequence.shape[-1], beyond, order="C"))
    elif ordered and math.prod(values.shape[:-1]) < STEPS:
        found = numpy.empty(values.shape, INT64)
        for row in numpy.ndindex(values.shape[:-1]):
            found[row] = sorted_sequence[row].searchsorted(values[row], place)
    else:
        found = _search_rows(sorted_sequence, values, right)
    return found.astype(numpy.int32 if out_int32 else INT64, copy=False)


_SUM_OF_RUNS = compiled("index.scattering.sum_of_runs", least=MOVED)
_PLACES = compiled("index.searching.places", least=PASSES, cost=1)


def _has_nan(x: ndarray) -> bool:
    if x.dtype.kind == "f" and 0 < x.size < PASSES:
        largest = x.item(x.argmax())  # the first NaN, if there is one
        return bool(largest != largest)
    return is_floating(x.dtype) and bool(numpy.isnan(x).any())


def _search_rows(sequences: ndarray, values: ndarray, right: bool) -> ndarray:
    """Search all rows at once by bisection. A NaN in a sequence is treated as less than any value."""
    length = sequences.shape[-1]
    low = numpy.zeros(values.shape, INT64)
    high = numpy.full(values.shape, length)
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        middle_or_last = numpy.minimum(middle, length - 1)
        probe = sequences[middle_or_last] if sequences.ndim == 1 else take_last(sequences, middle_or_last)
        after = (~(probe > values) if right else ~(probe >= values)) & (middle < high)
        low = numpy.where(after, middle + 1, low)
        high = numpy.where(after, high, middle)
    return low


def _check_search(sequence: ndarray, values: ndarray, right: bool, side: str | None, sorter: ndarray | None) -> None:
    prefix = "torch.searchsorted(): "
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{prefix}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{prefix}side and right can't be set to opposites, got side of left while right was True")
    if values.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(
            f"{prefix}input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sequence.ndim == 0:
        raise RuntimeError(f"{prefix}boundaries tensor should have positive dimension, but got 0 dimension")
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            f"{prefix}boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
            f"input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input value tensor "
            f"{list(values.shape)}"
        )
    if sequence.dtype.kind in "bc":
        raise refuse("searchsorted_out_cpu", sequence)
    if sorter is None:
        return
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            f"{prefix}boundary and sorter must have the same size, but got boundary tensor {list(sequence.shape)}"
            f"and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != INT64:
        raise RuntimeError(f"{prefix}sorter must be a tensor of long dtype but got dtype {type_name(sorter.dtype)}")
    if sorter.size and (sorter.min() < 0 or sorter.max() >= sequence.shape[-1]):
        raise RuntimeError(f"{prefix}sorter index out of range")


def ends_of(given: ndarray, of_lengths: bool) -> tuple[ndarray, ndarray]:
    """Return the starts and ends of segments along the last dimension, from their lengths or their offsets."""
    if not given.ndim:
        raise RuntimeError("lengths and offsets of segments have at least one dimension")
    if not of_lengths:
        return given[..., :-1], given[..., 1:]
    ends = given.cumsum(-1)
    return ends - given, ends


def segment_bounds(given: ndarray, of_lengths: bool, size: int) -> ndarray:
    """Return the starts of segments of `size` elements, followed by the last end, from one-dimensional lengths or offsets."""
    starts, ends = ends_of(given, of_lengths)
    if numpy.count_nonzero(ends < starts):
        raise RuntimeError("Expected segment_length >= 0 to be true, but got false.")
    bounds = numpy.concatenate([starts[:1], ends]) if ends.size else numpy.zeros(1, numpy.int64)
    return numpy.minimum(numpy.maximum(bounds, 0), size).astype(INT64, copy=False)


def segment_of_each(given: ndarray, of_lengths: bool, size: int) -> ndarray:
    """Return the segment of each of `size` elements along the last dimension, or the number of segments outside of all."""
    _, ends = ends_of(given, of_lengths)
    count = ends.shape[-1]
    segments = numpy.full((*ends.shape[:-1], size), count, numpy.int64)
    for row in numpy.ndindex(ends.shape[:-1]):
        bounds = segment_bounds(given[row], of_lengths, size)
        segments[row][bounds[0] : bounds[-1]] = numpy.repeat(numpy.arange(count), as_places(numpy.diff(bounds)))
    return segments


def sum_of_runs(x: ndarray, bounds: ndarray, index: ndarray | None = None, mean: bool = False) -> ndarray:
    """Return the sums, or means, of the slices of `x` from `bounds[g]` to `bounds[g + 1]` along the first dimension.

    A sum of no slices is 0. If `index` is given, slices of `x[index]` are summed, without creating this array.
    """
    require_dims(x, 0)
    count = len(x) if index is None else index.size
    if bounds[0] < 0 or bounds[-1] > count or numpy.count_nonzero(bounds[1:] < bounds[:-1]):
        raise RuntimeError(f"the bounds of runs of {count} rows must ascend, from 0 on")
    if index is not None and out_of_bounds(index, len(x)) is not None:
        raise IndexError("index out of range in self")
    if x.dtype in HALVES:
        return _sum_of_runs_of_halves(x, bounds, index, mean)
    shape = (len(bounds) - 1, *x.shape[1:])
    matrix = contiguous(x).reshape(len(x), math.prod(x.shape[1:]))
    found = _SUM_OF_RUNS.run(count * matrix.shape[1], matrix, bounds, index, mean)
    if found is not NotImplemented:
        return asarray(found).reshape(shape)
    rows = (matrix if index is None else matrix.take(index, 0))[: bounds[-1]]
    filled = bounds[1:] > bounds[:-1]
    many = numpy.count_nonzero(filled)
    if 0 < many == len(filled):
        result = numpy.add.reduceat(rows, as_places(bounds[:-1]), 0).astype(x.dtype, copy=False)
    else:
        result = numpy.zeros((shape[0], matrix.shape[1]), x.dtype)
        if many:
            result[filled] = numpy.add.reduceat(rows, as_places(bounds[:-1][filled]), 0)
    if mean:
        result /= _sizes(bounds, result)
    return result.reshape(shape)


def _sum_of_runs_of_halves(x: ndarray, bounds: ndarray, index: ndarray | None, mean: bool) -> ndarray:
    """Return `sum_of_runs` for half types. Several runs at a time are converted to float32 and summed."""
    result = numpy.empty((len(bounds) - 1, *x.shape[1:]), x.dtype)
    step, first = _rows_at_once(result.shape[1:]), 0
    while first < len(result):
        last = max(int(numpy.searchsorted(bounds, bounds[first] + step, "right")) - 1, first + 1)
        used = slice(bounds[first], bounds[last])
        rows = x[used] if index is None else take_rows(x, index[used])
        result[first:last] = sum_of_runs(widen(rows), bounds[first : last + 1] - bounds[first], None, mean)
        first = last
    return result


def _rows_at_once(shape: tuple[int, ...]) -> int:
    """Return how many rows of this shape are copied at a time."""
    return max(TILE_BYTES // (8 * max(math.prod(shape), 1)), 1)


def _sizes(bounds: ndarray, sums: ndarray) -> ndarray:
    """Return the number of slices in each of `sums`, but at least 1, as a column."""
    sizes = numpy.maximum(numpy.diff(bounds), 1).astype(compute_dtype(sums.dtype))
    return sizes.reshape(-1, *[1] * (sums.ndim - 1))


def sum_of_runs_backward(
    grad: ndarray, shape: tuple[int, ...], bounds: ndarray, index: ndarray | None = None, mean: bool = False
) -> ndarray:
    """Return the transpose of `sum_of_runs` of an array of `shape`. The gradient of each slice is the gradient of its sum."""
    require_dims(grad, 0)
    kind, wide = grad.dtype, compute_dtype(grad.dtype)
    if mean:
        grad = rounded(widen(grad) / _sizes(bounds, grad), kind)
    groups = numpy.repeat(numpy.arange(len(grad)), as_places(numpy.diff(bounds)))
    result = numpy.zeros(shape, kind if index is None else wide)
    step = _rows_at_once(shape[1:])
    for start in range(0, len(groups), step):
        rows = take_rows(grad, groups[start : start + step])
        used = slice(bounds[0] + start, bounds[0] + start + len(rows))
        if index is None:
            result[used] = rows
        else:
            index_add_(result, 0, index[used], widen(rows))
    return rounded(result, kind)
