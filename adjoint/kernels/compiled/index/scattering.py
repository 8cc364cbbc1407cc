"""Write and combine elements at indices, in the order of the indices, regardless of the threads.

Each thread owns some of the matrices or of the columns. Finding the indices of its own rows would take longer than the work.
"""

from __future__ import annotations

from collections.abc import Callable

from ....codegen.llvm.kernels import *
from ....codegen.plans import Plan, is_set, new_flag
from ...runtime.costs import MOVED, NARROW, SHORT
from ...runtime.layout import row_major
from ...runtime.parallel import get_num_threads
from ..memory.copying import copy_row
from .lookup import outside

_CHECKED = 1 << 10
"""The number of indices that are checked before they are used."""


@loops
def share_start(share: Int, n: Int, shares: Int) -> Int:
    """Return where a share of `range(n)` begins. If there are enough columns, each cache line belongs to only one thread."""
    start = n * share // shares
    return minimum(n, (start + 15) // 16 * 16) if n >= NARROW * shares else start


@loops
def combined(old: S, value: S, HOW: Static) -> S:
    """Return the new content of a position, which is the written value ("put") or its combination with the old content."""
    if HOW == "add":
        return old + value
    if HOW == "multiply":
        return old * value
    if HOW == "maximum":
        return maximum(old, value)
    if HOW == "minimum":
        return minimum(old, value)
    return value


@loops
def combine_row(target: Pointer[T], source: Pointer[T], n: Int, HOW: Static, W: Static) -> None:
    """Combine `n` elements."""
    i = 0
    while i + W <= n:
        store(target + i, combined(load(target + i, W), load(source + i, W), HOW))
        i += W
    while i < n:
        target[i] = combined(target[i], source[i], HOW)
        i += 1


@loops(plain=True)
def scatter_elements(
    target: Pointer[T], x: Pointer[T], index: Pointer[I], source: Pointer[T], wrong: Pointer[i64], outer: Int, count: Int,
    inner: Int, across: Int, length: Int, source_step: Int, source_line: Int, ALONG: Static, SHARED: Static, HOW: Static,
    SPLIT: Static, COPY: Static, W: Static, WIDE: Static, n: Int, shares: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute `target[o, index[o, k, i], i] = source[o, k, i]`, or combine the values according to `HOW` (see `combined`).

    `source_step` is 0 if a single number is written. `source_line` is the length of a line of the source, which may have more
    than `count` elements if `inner` is 1. `across`: the number of `i`, which is less than `inner` if the index is narrower.

    `ALONG`: whether `inner` is 1. `SHARED`: whether `index[k]` applies to all `o` and `i`. `SPLIT`: the dimension that
    threads share, which is "outer" or "inner". `n` is its size.
    `COPY`: whether `target` first receives the elements of `x`, and `wrong` is set to 1 if an index is out of bounds.
    """
    low = share_start(start, n, shares)
    high = share_start(stop, n, shares)
    ready = low
    for o in range(low if SPLIT == "outer" else 0, high if SPLIT == "outer" else outer):
        first = target + o * length * inner
        if COPY and o == ready:  # several small matrices at once
            ready = minimum(high, o + 1 + _CHECKED // (maximum(count, length) * inner))
            if outside(index + o * count * across, (ready - o) * (count * across), length, W) != 0:
                wrong[0] = 1
                return
            copy_row(first, x + o * length * inner, (ready - o) * (length * inner), 1, 1, "rows", W)
        if ALONG:
            line = o * count
            for k in range(count):
                place = i64(index[k if SHARED else line + k])
                first[place] = combined(first[place], source[(o * source_line + k) * source_step], HOW)
        else:
            begin = low if SPLIT == "inner" else 0
            end = high if SPLIT == "inner" else across
            for k in range(count):
                line = (o * count + k) * across
                if SHARED:
                    to = first + (i64(index[k]) * inner + begin)
                    combine_row(to, source + (line + begin), end - begin, HOW, WIDE)
                else:
                    for i in range(begin, end):
                        at = i64(index[line + i]) * inner + i
                        first[at] = combined(first[at], source[(line + i) * source_step], HOW)


def _share(function: Any, n: int, least: int, work: int, *arguments: Any) -> None:
    """Call `function(*arguments, n, shares, start, stop)` for all shares of `range(n)`, one per thread, of at least `least`."""
    shares = min(get_num_threads(), n // least)
    launch(function, shares, work // shares, *arguments, n, shares)


@recordable
def scatter(x: ndarray, dim: int, index: ndarray, source: ndarray, how: str) -> Any:
    """Write `source` (with the shape of `index`, or a number) to `x` at indices in bounds, or combine it with `x`.

    `how` is "put" or the name of a ufunc. A one-dimensional `index` selects slices.
    """
    split = _split(x, dim, index, source, how)
    if split is None or source.dtype != x.dtype or numpy.may_share_memory(x, source):
        return NotImplemented
    count = source.shape[dim] if index.ndim == 1 < x.ndim else index.shape[dim]
    _launched(x, dim, index, source.size, count, count, how, split, copy=False)(x, x, index, source)
    return x


def scattered(index: ndarray, x: ndarray, dim: int, src: ndarray, how: str) -> Any:
    """Return the plan of a copy of `x` to which `scatter` writes, which gives None if an index is out of bounds."""
    split = _split(x, dim, index, index, how)
    if split is None or (split != "outer" and index.size >= MOVED) or index.ndim != x.ndim:
        return NotImplemented
    shape, dtype, sizes = x.shape, x.dtype, index.shape
    longer = src.ndim == x.ndim == dim + 1 and src.shape[:dim] == sizes[:dim]  # each line is read up to the last index
    part = tuple(map(slice, sizes)) if src.ndim and src.shape != sizes and not longer else None
    laid_out = part is None and src.flags.c_contiguous
    rest = slice(sizes[0], None) if dim and sizes[0] < shape[0] else None
    line = src.shape[dim] if longer else sizes[dim]
    launched = _launched(x, dim, index, src.size, sizes[dim], line, how, "outer", copy=True)

    @recordable
    def run(index: ndarray, x: ndarray, dim: int, src: ndarray, how: str) -> ndarray | None:
        target = empty(shape, dtype)
        if rest is not None:
            target[rest] = x[rest]
        source = src if laid_out else row_major(src if part is None else src[part])
        return target if launched(target, x, index, source) else None

    return Plan((), run=run)


def _split(x: ndarray, dim: int, index: ndarray, source: ndarray, how: str) -> str | None:
    """Return the dimension that threads share, or None if there is no loop."""
    kind = _kind(x, how)
    if kind is None or (how != "put" and (kind.storage_only or x.dtype.kind == "b")) or not x.ndim or not index.size:
        return None
    shape = source.shape if index.ndim == 1 < x.ndim else index.shape
    if len(shape) != x.ndim or not all(array.flags.c_contiguous for array in (x, index, source)):
        return None
    threads = get_num_threads()
    before, after = (x.shape[:dim], shape[:dim]), (x.shape[dim + 1 :], shape[dim + 1 :])
    if not (_leads(*before) and _leads(*after)):
        return None
    by_columns = math.prod(before[0]) < 4 * threads and math.prod(after[0]) >= NARROW
    return "inner" if by_columns and after[0] == after[1] else "outer"


def _leads(whole: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Return whether `part` is the shape of the beginning of an array of shape `whole`."""
    return part[1:] == whole[1:] and part[:1] <= whole[:1]


def _others(x: ndarray, dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the dimensions before and after `dim`."""
    return x.shape[:dim], x.shape[dim + 1 :]


def _kind(x: ndarray, how: str) -> Any:
    return BITS(x.dtype) if how == "put" else type_of(x.dtype)


def _launched(
    x: ndarray, dim: int, index: ndarray, values: int, count: int, line: int, how: str, split: str, copy: bool
) -> Callable[[ndarray, ndarray, ndarray, ndarray], bool]:
    """Return a function of the target, `x`, the index and the source. It writes, and returns whether indices are in bounds."""
    shared = index.ndim == 1 < x.ndim
    outer, across = (math.prod(sizes) for sizes in _others(x if shared else index, dim))
    inner, length = math.prod(x.shape[dim + 1 :]), x.shape[dim]
    options = {"ALONG": inner == 1, "SHARED": shared, "HOW": how, "SPLIT": split, "COPY": copy}
    options["WIDE"] = max(2, HOST.vector_bytes // x.itemsize)
    function = scatter_elements.compiled(
        T=_kind(x, how), I=type_of(index.dtype), W=HOST.vector_bytes // index.itemsize, **options
    )
    work = outer * count * across * (x.itemsize + index.itemsize)

    def launched(target: ndarray, x: ndarray, index: ndarray, source: ndarray) -> bool:
        wrong = new_flag() if copy else empty(1, numpy.int64)
        _share(
            function, *((inner, SHORT) if split == "inner" else (outer, 1)), work,
            target, x, index, source, wrong, outer, count, inner, across, length,
            int(values > 1), line,
        )  # fmt: skip
        return not copy or not is_set(wrong)

    return launched


@loops
def add_columns(
    out: Pointer[T], x: Pointer[T], index: Pointer[i64], begin: Int, end: Int, width: Int, left: Int, MEAN: Static,
    INDEXED: Static, W: Static, VECTORS: Static,
) -> None:  # fmt: skip
    """Sum `VECTORS` vectors of columns, or one incomplete vector with `left` columns, over the rows of a run."""
    total = local(vector(T, W), VECTORS)
    for V in unrolled(VECTORS):
        total[V] = vector(T, W)(0)
    inside = first_lanes(left, W)
    for k in range(begin, end):
        row = x + (index[k] if INDEXED else k) * width
        for V in unrolled(VECTORS):
            total[V] = total[V] + (load(row + V * W, W) if VECTORS > 1 else load(row, W, inside))
    for V in unrolled(VECTORS):
        found = total[V] / T(maximum(end - begin, 1)) if MEAN else total[V]
        if VECTORS > 1:
            store(out + V * W, found)
        else:
            store(out, found, inside)


@loops(explicit=True, plain=True, T=FLOATS)
def add_runs(
    out: Pointer[T], x: Pointer[T], index: Pointer[i64], bounds: Pointer[i64], width: Int, MEAN: Static, INDEXED: Static,
    W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Set row g of `out` to the sum or mean of rows `bounds[g]` to `bounds[g + 1]` of `x`, or of `x[index]`."""
    for g in range(start, stop):
        begin = bounds[g]
        end = bounds[g + 1]
        to = out + g * width
        j = 0
        while j + 4 * W <= width:
            add_columns(to + j, x + j, index, begin, end, width, W, MEAN, INDEXED, W, 4)
            j += 4 * W
        while j < width:
            add_columns(to + j, x + j, index, begin, end, width, width - j, MEAN, INDEXED, W, 1)
            j += W


def sum_of_runs(x: ndarray, bounds: ndarray, index: ndarray | None, mean: bool) -> Any:
    """Compute `reduce.counting.sum_of_runs` for matrices."""
    width, groups, rows = x.shape[1], len(bounds) - 1, len(x) if index is None else len(index)
    out = numpy.empty((groups, width), x.dtype)
    row_bytes = (rows // max(groups, 1) + 1) * 2 * width * x.itemsize
    return add_runs.run(
        groups, row_bytes, out, x, bounds if index is None else index, bounds, width,
        MEAN=mean, INDEXED=index is not None, W=max(2, HOST.vector_bytes // x.itemsize),
    )  # fmt: skip
