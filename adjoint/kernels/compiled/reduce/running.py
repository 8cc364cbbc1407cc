"""Scans along one dimension: running extrema with their last indices, sums of integers and exponentials, complex scans."""

from __future__ import annotations

from ....codegen.llvm.elementary_power import logaddexp
from ....codegen.llvm.kernels import *
from ...memory.copying import contiguous

_LINES = 4
"""The number of rows that are processed together, because each element of a row depends on the one before it."""

_TILE = 256
"""The number of columns that are processed together."""


@loops
def takes_over(x: T, best: T, MAXIMUM: Static) -> boolean:
    """Return whether an element replaces the running extremum, because it is at least as good or is NaN."""
    if x.type.kind == "f":
        return (not (x < best) if MAXIMUM else not (x > best)) & ((best == best) | (x != x))
    return x >= best if MAXIMUM else x <= best


@loops(explicit=True, plain=True)
def extremum_rows(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], rows: Int, n: Int, MAXIMUM: Static, LINES: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the running extrema in rows of `n` elements. The last group of rows may overlap the previous group."""
    best = local(T, LINES)
    place = local(i64, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        for LINE in unrolled(LINES):
            best[LINE] = x[first + LINE * n]
            place[LINE] = 0
        for i in range(n):
            for LINE in unrolled(LINES):
                here = first + (LINE * n + i)
                element = x[here]
                taken = takes_over(element, best[LINE], MAXIMUM)
                best[LINE] = element if taken else best[LINE]
                place[LINE] = i if taken else place[LINE]
                values[here] = best[LINE]
                places[here] = place[LINE]


@loops
def column_tile(piece: Int, inner: Int) -> tuple[Int, Int, Int]:
    """Return the matrix that contains a tile of columns, the first column of the tile, and its number of columns."""
    tiles = (inner + _TILE - 1) // _TILE
    outer = piece // tiles
    first = (piece - outer * tiles) * _TILE
    return outer, first, minimum(inner - first, _TILE)


@loops
def extremum_vector(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], i: Int, back: Int, there: Any, MAXIMUM: Static, W: Static
) -> None:
    """Compute the running extrema of `W` columns in row `i`. The previous row is `back` elements away."""
    element = load(x, W, there)
    if i > 0:
        best = load(values - back, W, there)
        taken = takes_over(element, best, MAXIMUM)
        store(values, where(taken, element, best), there)
        store(places, where(taken, broadcast(i, W), load(places - back, W, there)), there)
    else:
        store(values, element, there)
        store(places, vector(i64, W)(0), there)


@loops(explicit=True, plain=True)
def extremum_columns(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], n: Int, inner: Int, MAXIMUM: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute, from (outer, n, inner), the running extrema of columns, `_TILE` of them side by side."""
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        rest = width % W
        for i in range(n):
            here = (outer * n + i) * inner + first
            for at in range(here, here + (width - rest), W):
                extremum_vector(values + at, places + at, x + at, i, inner, None, MAXIMUM, W)
            if rest > 0:
                at = here + (width - rest)
                extremum_vector(values + at, places + at, x + at, i, inner, first_lanes(rest, W), MAXIMUM, W)


@loops
def plus(a: T, b: T) -> T:
    """Return the sum."""
    return a + b


@loops(explicit=True, plain=True)
def scan_rows(
    out: Pointer[S], x: Pointer[T], rows: Int, n: Int, CARRIED: Static, COMBINE: Static, LINES: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """Compute the running results of `COMBINE` in `LINES` rows at once, in the type `CARRIED`.

    Groups of rows are as in `extremum_rows`.
    """
    part, found = local(T, LINES), local(S, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        total = vector(CARRIED, LINES)(0)
        for i in range(n):
            for LINE in unrolled(LINES):
                part[LINE] = x[first + (LINE * n + i)]
            element = vector(CARRIED, LINES)(load(part, LINES))
            total = COMBINE(total, element) if i > 0 else element
            store(found, vector(S, LINES)(total))
            for LINE in unrolled(LINES):
                out[first + (LINE * n + i)] = found[LINE]


@loops
def scan_vector(
    out: Pointer[S], totals: Pointer[I], x: Pointer[T], i: Int, there: Any, COMBINE: Static, W: Static
) -> None:
    """Compute the running results of `W` columns in row `i` from `totals`, and store them in `totals`."""
    total = vector(I, W)(load(x, W, there))
    if i > 0:
        total = COMBINE(load(totals, W), total)
    store(totals, total)
    store(out, vector(S, W)(total), there)


@loops(explicit=True, plain=True)
def scan_columns(
    out: Pointer[S], x: Pointer[T], n: Int, inner: Int, CARRIED: Static, COMBINE: Static, W: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """Compute, from (outer, n, inner), the running results of columns, `_TILE` of them side by side."""
    totals = local(CARRIED, _TILE)
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        rest = width % W
        for i in range(n):
            here = (outer * n + i) * inner + first
            for j in range(0, width - rest, W):
                scan_vector(out + (here + j), totals + j, x + (here + j), i, None, COMBINE, W)
            if rest > 0:
                j = width - rest
                scan_vector(out + (here + j), totals + j, x + (here + j), i, first_lanes(rest, W), COMBINE, W)


@loops(explicit=True, plain=True)
def scan_pairs(
    out: Pointer[T],
    x: Pointer[T],
    rows: Int,
    n: Int,
    PRODUCT: Static,
    REVERSED: Static,
    LINES: Static,
    start: Int,
    stop: Int,
) -> None:
    """Compute the running sums or products in rows of `n` complex numbers, from the start or from the end.

    Groups of rows are as in `extremum_rows`.
    """
    PAIR = vector(f64, 2)
    totals = local(PAIR, LINES)
    signs = PAIR(lanes(i64, 2)) * 2 - 1
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        for LINE in unrolled(LINES):
            totals[LINE] = shuffle(PAIR(lanes(i64, 2)), PAIR(0), [1, 0] if PRODUCT else [2, 2])
        for i in range(n):
            for LINE in unrolled(LINES):
                here = (first + (LINE * n + (n - 1 - i if REVERSED else i))) * 2
                element, total = PAIR(load(x + here, 2)), totals[LINE]
                if PRODUCT:
                    crossed = shuffle(total, total, [1, 0]) * shuffle(element, element, [1, 1])
                    totals[LINE] = total * shuffle(element, element, [0, 0]) + crossed * signs
                else:
                    totals[LINE] = total + element
                store(out + here, vector(T, 2)(totals[LINE]))


def extremum(x: ndarray, dim: int, maximum: bool) -> Any:
    """Return the plan of the running extrema along `dim` and of the last positions where they occurred."""
    kind = u8 if x.dtype.kind == "b" else type_of(x.dtype)
    if kind is None or kind.storage_only or not x.size:
        return NotImplemented

    columns = functools.partial(extremum_columns.compiled, T=kind, MAXIMUM=maximum, W=HOST.vector_bytes // 8)
    lines = min(math.prod(x.shape[:dim]), _LINES)
    rows = functools.partial(extremum_rows.compiled, T=kind, MAXIMUM=maximum, LINES=lines)
    return _plan(x, dim, [x.dtype, numpy.dtype(numpy.int64)], rows, lines, columns)


def integer_sum(x: ndarray, dim: int) -> Any:
    """Return the plan of the running sums along `dim` in int64."""
    kind = u8 if x.dtype.kind == "b" else type_of(x.dtype)
    if kind is None or kind.kind == "f" or not x.size:
        return NotImplemented
    return _carried(x, dim, numpy.dtype(numpy.int64), T=kind, S=i64, CARRIED=i64, COMBINE=plus)


def logcumsumexp(x: ndarray, dim: int) -> Any:
    """Return the plan of the logarithms of the running sums of exponentials along `dim`."""
    if x.dtype.char not in "fd" or not x.size:
        return NotImplemented
    kind = type_of(x.dtype)
    return _carried(x, dim, x.dtype, T=kind, S=kind, CARRIED=f64, COMBINE=logaddexp)


def _carried(x: ndarray, dim: int, dtype: numpy.dtype[Any], **types: Any) -> Plan:
    width = HOST.vector_bytes // 8
    lines = 2 * width if math.prod(x.shape[:dim]) >= 2 * width else 1  # each element waits for the one before
    rows = functools.partial(scan_rows.compiled, LINES=lines, **types)
    return _plan(x, dim, [dtype], rows, lines, functools.partial(scan_columns.compiled, W=width, **types))


def complex_scan(x: ndarray, dim: int, product: bool, reverse: bool) -> Any:
    """Return the plan of the running sums or products, in complex128, along the last dimension `dim` or from its end."""
    if not x.size or math.prod(x.shape[dim + 1 :]) != 1:
        return NotImplemented
    lines = min(math.prod(x.shape[:dim]), _LINES)
    types = {"T": type_of(x.real.dtype), "PRODUCT": product, "REVERSED": reverse}
    return _plan(x, dim, [x.dtype], functools.partial(scan_pairs.compiled, LINES=lines, **types), lines)


def _plan(
    x: ndarray, dim: int, dtypes: Sequence[numpy.dtype[Any]], rows: Callable[[], Any], lines: int, columns: Any = None
) -> Plan:
    """Return the plan of a function that processes this number of rows at once, or of a function that processes columns."""
    outer, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    each = x.itemsize + 8
    if inner == 1:
        function, pieces, piece_bytes, sizes = rows(), -(-outer // lines), lines * n * 4 * each, (outer, n)
    else:
        function, pieces, sizes = columns(), outer * -(-inner // _TILE), (n, inner)
        piece_bytes = n * min(inner, _TILE) * 2 * each

    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        source = contiguous(x)
        launch(function, pieces, piece_bytes, *map(address, out), address(source), *sizes)

    return Plan([Memory(x.shape, dtype) for dtype in dtypes], into=into)
