"""Sorting and selection along one dimension: sort, topk, kthvalue, median, mode, quantile.

Every sort is stable. NaN is greater than every number. Values are taken from the array, not from sort keys, so negative
zeros keep their sign.
"""

from __future__ import annotations

import math
from functools import partial

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.plans import NUMPY, Plan, compiled, replayed
from ..index.places import few_positions, flat_positions
from ..math.arithmetic import lerp
from ..memory.copying import contiguous, copy_elements, widen
from ..runtime.costs import MOVED, PART, PASSES, STEPS
from ..runtime.floating import INT64, is_floating, is_inexact, refuse, unwarned
from ..runtime.layout import laid_out, row_major
from ..runtime.parallel import parallel_rows
from ..runtime.positions import gives_positions
from ..runtime.shapes import normalize_dim

Pair = tuple[ndarray, ndarray]


@compiled("reduce.sorting.sort", least=PASSES, cost=1)
def _sorted_by_loops(x: ndarray, descending: bool) -> Plan:
    """Return the result of `_sort_last`, computed by compiled loops."""
    return NUMPY


@compiled("reduce.selection.first", least=PASSES, cost=1)
def _first_by_loops(x: ndarray, k: int, descending: bool) -> Plan:
    """Return the first `k` elements in order, found by compiled loops."""
    return NUMPY


@compiled("reduce.selection.place_in_order", least=PASSES, cost=1)
def _placed_by_loops(x: ndarray, k: int, numbers: str) -> Plan:
    """Return the element at position `k` of the sorted order, found by compiled loops. `numbers` determines how NaN counts."""
    return NUMPY


# --- sorting --------------------------------------------------------------------------------------------------


@gives_positions(1)
@replayed
def sort(x: ndarray, dim: int = -1, descending: bool = False, stable: bool = True) -> Pair:
    """Return the sorted values along `dim`, and their indices. Equal elements keep their order, even if `stable` is False."""
    dim = normalize_dim(dim, x.ndim)
    if x.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    lines = _moved(x, dim, x.ndim - 1)
    step = max(PART * len(lines) // x.size, 1) if x.size else 1
    if dim == x.ndim - 1 or step >= len(lines):
        values, indices = _sort_last(lines, descending)
        return laid_out(_moved_back(values, dim), (x,)), laid_out(_moved_back(indices, dim), (x,))
    values, indices = numpy.empty(x.shape, x.dtype), numpy.empty(x.shape, INT64)
    for start in range(0, len(lines), step):
        some = slice(start, start + step)
        for target, found in zip((values, indices), _sort_last(lines[some], descending), strict=True):
            copy_elements(_moved(target, dim, x.ndim - 1)[some], found)
    return laid_out(values, (x,)), laid_out(indices, (x,))


def _moved(x: ndarray, source: int, target: int) -> ndarray:
    """Return `x` with one dimension moved, so that copies read whole lines of the others."""
    if source == target:
        return x
    return x.swapaxes(source, target) if abs(source - target) < 2 else numpy.moveaxis(x, source, target)


def _moved_back(x: ndarray, dim: int) -> ndarray:
    """Return `x` with its last dimension moved to `dim`, in row-major order."""
    if dim == x.ndim - 1 and x.flags.c_contiguous:
        return x
    moved = _moved(x, x.ndim - 1, dim)
    return contiguous(moved).reshape(-1).reshape(moved.shape)  # a view would keep the stride of a dimension of length 1


@gives_positions()
def argsort(x: ndarray, dim: int = -1, descending: bool = False, stable: bool = True) -> ndarray:
    """Return the indices that sort the array; see `sort`."""
    return sort(x, dim, descending, stable)[1]


def _sort_last(x: ndarray, descending: bool) -> Pair:
    x = numpy.not_equal(x.view(numpy.uint8), 0, order="C") if x.dtype.kind == "b" else contiguous(x)  # true is any byte
    found: Pair = _sorted_by_loops(x, descending)
    if found is not NotImplemented:
        return found
    order = _order(x, descending)
    return take_last(x, order), order


def _order(x: ndarray, descending: bool, k: int | None = None) -> ndarray:
    """Return the indices that sort the last dimension, or the first `k` of them."""
    if not descending:
        return widen(x).argsort(-1, kind="stable")[..., :k]
    # Sort ascending from the other end. After two reversals, equal elements are in their original order.
    order = widen(x[..., ::-1]).argsort(-1, kind="stable")[..., : None if k is None else -k - 1 : -1]
    return numpy.subtract(x.shape[-1] - 1, order, order="C")


def take_last(x: ndarray, indices: ndarray) -> ndarray:
    """Compute `numpy.take_along_axis` along the last dimension. This is faster than NumPy for small arrays."""
    if x.size >= MOVED and not x.flags.c_contiguous:  # `take` would copy the array
        return numpy.take_along_axis(x, indices, -1)
    positions = few_positions(x.shape, x.ndim - 1, indices)
    return asarray(x.take(flat_positions(x.shape, x.ndim - 1, indices) if positions is None else positions))


# --- selection ------------------------------------------------------------------------------------------------


@gives_positions(1)
@replayed
def topk(x: ndarray, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """Return the `k` largest (or smallest) elements along `dim`, always sorted, and their indices."""
    dim = normalize_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if x.dtype.kind in "bc":
        kind, space = ("bool", "") if x.dtype.kind == "b" else ("complex", " ")
        raise RuntimeError(f"{space}topk does not support {kind} dtypes on CPU")
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    values, indices = _first(_moved(x, dim, x.ndim - 1), k, largest)
    return _moved_back(values, dim), _moved_back(indices, dim)


def _first(x: ndarray, k: int, descending: bool) -> Pair:
    """Return the first `k` elements in order along the last dimension, and their indices."""
    length = x.shape[-1]
    if 2 * k < length:
        x = contiguous(x)
        found: Pair = _first_by_loops(x, k, descending)
        if found is not NotImplemented:
            return found
    # A few elements are all sorted, so that the first of equal elements are selected.
    if x.size < PASSES and not LOOPS.every_size:
        order = _order(x, descending, k)
        return take_last(x, order), order
    if k == 0 or 8 * k >= length:
        values, indices = _sort_last(x, descending)
        return values[..., :k], indices[..., :k]
    kth = length - k if descending else k - 1
    chosen = widen(x).argpartition(kth, -1)
    indices = chosen[..., kth:] if descending else chosen[..., :k]
    indices.sort(-1)
    values, order = _sort_last(take_last(x, indices), descending)
    return values, take_last(indices, order)


@gives_positions(1)
def kthvalue(x: ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """Return the `k`-th smallest element along `dim`, counted from 1, and its index."""
    dim = normalize_dim(dim, x.ndim)
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    _refuse_unordered("kthvalue_cpu", x)
    rows = _moved(x, dim, x.ndim - 1)
    values, found = _kth(rows, k - 1)
    # In larger arrays, the choice among equal elements differs from PyTorch's.
    if x.size <= STEPS and numpy.count_nonzero(rows == values) != found.size:
        found = numpy.apply_along_axis(_kth_by_exchanges, -1, widen(rows), k - 1)
        values = take_last(rows, found)
    return _kept(values, found, dim, keepdim)


def _kth_by_exchanges(row: ndarray, k: int) -> list[int]:
    """Return the index of the element that selection by exchanges moves to position `k`. PyTorch returns the same index.

    The source is Press et al., Numerical Recipes, 2nd edition, 1992, section 8.5: partition in place by the median of three.
    """
    places, keys = list(range(len(row))), [(value != value, value) for value in row.tolist()]

    def exchange(i: int, j: int) -> None:
        places[i], places[j] = places[j], places[i]

    def precedes(i: int, j: int) -> bool:
        return keys[places[i]] < keys[places[j]]

    first, last = 0, len(places) - 1
    while last > first + 1:
        exchange((first + last) // 2, first + 1)
        for low, high in ((first + 1, last), (first, last), (first + 1, first)):
            if precedes(high, low):
                exchange(low, high)
        up, down = first + 1, last
        while True:
            up, down = up + 1, down - 1
            while precedes(up, first):
                up += 1
            while precedes(first, down):
                down -= 1
            if down < up:
                break
            exchange(up, down)
        exchange(first, down)
        first, last = up if down <= k else first, down - 1 if down >= k else last
    if last == first + 1 and precedes(last, first):
        exchange(first, last)
    return [places[k]]


def _refuse_unordered(name: str, x: ndarray) -> None:
    if x.dtype.kind in "bc" and x.size:
        raise refuse(f"{name}", x)


def _kth(x: ndarray, k: int) -> Pair:
    """Return the element that sorting would move to position `k` of the last dimension, which is kept, and its index."""
    found: Pair = _placed_by_loops(contiguous(x), k, "count")
    if found is not NotImplemented:
        return found
    if x.size < PASSES:
        indices = widen(x).argsort(-1, kind="stable")[..., k : k + 1]
    else:
        indices = widen(x).argpartition(k, -1)[..., k : k + 1]
    return take_last(x, indices), indices


def _kept(values: ndarray, indices: ndarray, dim: int, keepdim: bool) -> Pair:
    """Move the last dimension, which has length 1, to `dim`, or drop it unless `keepdim`."""
    values, indices = _moved_back(values, dim), _moved_back(indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def median_of_all(x: ndarray) -> ndarray:
    """Return the median of all elements, without its index."""
    if x.dtype.char in "fd" and 0 < x.size < PASSES and not LOOPS.every_size:
        flat = x.flatten()
        flat.sort()
        found = flat.item((x.size - 1) // 2)
        if found != 0 and flat[-1] == flat[-1]:  # neither zeros nor NaN, which may differ in their bits
            return asarray(found, x.dtype)
    return median(x)[0]


@gives_positions(1)
def _median(ignore_nan: bool, x: ndarray, dim: int | None = None, keepdim: bool = False) -> Pair:
    """Return the median along `dim` or of all elements, and its index.

    It is the lower of two middle elements, and NaN if an element is NaN, unless `ignore_nan`. Without `dim`, the index
    refers to the flattened array. The median of no elements is NaN, with the index -1.
    """
    _refuse_unordered("median_cpu" if dim is None else "median_out", x)
    if dim is None:
        if x.size == 0:
            nothing = math.nan if is_inexact(x.dtype) else numpy.iinfo(x.dtype).min
            return asarray(nothing, x.dtype), asarray(-1, INT64)
        x, dim = x.reshape(-1), 0
    dim = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    if x.shape[dim] == 0:
        raise IndexError(f"median(): Expected reduction dim {dim} to have non-zero size.")
    along_last = _moved(x, dim, x.ndim - 1)
    numbers = "count" if not is_floating(x.dtype) else "only" if ignore_nan else "any"
    found: Pair = _placed_by_loops(contiguous(along_last), (x.shape[dim] - 1) // 2, numbers)
    if found is not NotImplemented:
        return _kept(*found, dim, keepdim)
    if not is_floating(x.dtype) or not numpy.count_nonzero(nan := numpy.isnan(along_last)):
        return _kept(*_kth(along_last, (x.shape[dim] - 1) // 2), dim, keepdim)
    order = widen(along_last).argsort(-1, kind="stable")
    count = x.shape[dim] - nan.sum(-1, keepdims=True)
    if ignore_nan:
        rank = numpy.maximum(count - 1, 0) // 2
    else:
        # The first nan follows the last number.
        rank = numpy.where(count < x.shape[dim], count, (x.shape[dim] - 1) // 2)
    indices = take_last(order, rank)
    return _kept(take_last(along_last, indices), indices, dim, keepdim)


median, nanmedian = partial(_median, False), partial(_median, True)


def nanmedian_of_all(x: ndarray) -> ndarray:
    """Return the median of all elements that are numbers, without its index."""
    return nanmedian(x)[0]


@gives_positions(1)
def mode(x: ndarray, dim: int = -1, keepdim: bool = False) -> Pair:
    """Return the most frequent element along `dim` (the smallest, if there are several), and its last index."""
    dim = normalize_dim(dim, x.ndim)
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    if x.dtype.kind == "c" and x.size:
        raise refuse("mode_cpu", x)
    along_last = _moved(x, dim, x.ndim - 1)
    rows = along_last.reshape(math.prod(along_last.shape[:-1]), x.shape[dim])
    if x.size < PASSES:
        values, places = _longest_runs(*_sort_last(rows, descending=False))
    else:
        values, places = numpy.empty((len(rows), 1), x.dtype), numpy.empty((len(rows), 1), INT64)

        def find(start: int, stop: int) -> None:
            found = _longest_runs(*_sort_last(rows[start:stop], descending=False))
            values[start:stop], places[start:stop] = found

        parallel_rows(find, len(rows), x.shape[dim] * 32)
    shape = *along_last.shape[:-1], 1
    return _kept(values.reshape(shape), places.reshape(shape), dim, keepdim)


@compiled("reduce.sorting.longest_runs", least=PASSES, cost=1)
def _longest_runs_by_loops(values: ndarray, order: ndarray) -> Plan:
    """Return `_longest_runs`, found by compiled loops."""
    return NUMPY


def _longest_runs(values: ndarray, order: ndarray) -> Pair:
    """Return the elements of `values` and `order` at the end of the first of the longest runs of equal elements in each row."""
    found: Pair = _longest_runs_by_loops(values, order)
    if found is not NotImplemented:
        return found
    repeated = values[:, 1:] == values[:, :-1]
    if not numpy.count_nonzero(repeated):
        return values[:, :1].copy(), order[:, :1].copy()
    position = numpy.arange(values.shape[1])
    starts = numpy.zeros(values.shape, INT64)
    starts[:, 1:] = position[1:] * ~repeated
    run_length = position - numpy.maximum.accumulate(starts, -1)
    ends = run_length.argmax(-1, keepdims=True)
    return take_last(values, ends), take_last(order, ends)


# --- quantiles ------------------------------------------------------------------------------------------------


def check_quantile(x: ndarray, q: ndarray | float, dim: int | None, interpolation: str, *, readable: bool) -> None:
    """Raise an error for an invalid fraction, dimension or interpolation. `readable`: whether the elements of `q` can be read."""
    if not isinstance(q, ndarray):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q, readable = asarray(q, x.dtype), False  # it has been checked
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if x.size == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if x.dtype.char not in "fd":
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype != x.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    normalize_dim(0 if dim is None else dim, x.ndim)
    if readable and not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


CHOICES = {"lower": numpy.floor, "higher": numpy.ceil, "nearest": numpy.rint}
"""The rounding of the rank, for interpolations that choose an element."""


def neighbours(
    ordered: ndarray, levels: ndarray, interpolation: str, ignore_nan: bool
) -> tuple[ndarray, ndarray | None, ndarray | None]:
    """Return the positions of the elements below and above each quantile in the last dimension, and the weight of the latter.

    NaNs are the last elements. If the interpolation chooses an element, there is one position.
    """
    last = ordered.shape[-1] - 1
    if ignore_nan:
        counts = (ordered == ordered).sum(-1, keepdims=True) - 1
        rank = numpy.maximum(levels * counts.astype(levels.dtype), 0)
    else:
        greatest = ordered[..., -1:]
        rank = numpy.where(greatest == greatest, levels * levels.dtype.type(last), levels.dtype.type(last))
    if interpolation in CHOICES:
        return CHOICES[interpolation](rank).astype(INT64), None, None
    below = rank.astype(INT64)
    weight = numpy.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below.astype(rank.dtype)
    return below, numpy.ceil(rank).astype(INT64), weight


def quantile(x: ndarray, q: float, dim: int | None, keepdim: bool, interpolation: str) -> ndarray:
    """Return the `q`-quantile along `dim` or of all elements, or NaN if an element is NaN. The arguments have been checked."""
    if dim is None:
        shape = (1,) * x.ndim if keepdim else ()
        x, dim = x.reshape(-1), 0
    else:
        dim = normalize_dim(dim, x.ndim)
        shape = (*x.shape[:dim], *((1,) if keepdim and x.ndim else ()), *x.shape[dim + 1 :])
    ordered = sort(x.reshape(-1) if x.ndim == 0 else x, dim)[0]
    last = ordered.shape[dim] - 1
    rank = x.dtype.type(q) * x.dtype.type(last)
    if interpolation in CHOICES:
        result = ordered.take(int(CHOICES[interpolation](rank)), dim)
    else:
        below, above = (asarray(ordered.take(int(end(rank)), dim)) for end in (math.floor, math.ceil))
        weight = asarray(0.5 if interpolation == "midpoint" else rank % 1, x.dtype)
        with unwarned():
            result = lerp(below, above, weight)
    greatest = ordered.take(last, dim)
    return row_major(numpy.where(greatest == greatest, result, greatest)).reshape(shape)
