"""Scans along one dimension: running sums, products, sums of exponentials, and extrema with their last positions."""

from __future__ import annotations

from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.elementary_power import logaddexp
from ....codegen.llvm.kernels import *
from ....codegen.llvm.streaming import ask_ahead
from ...runtime.floating import compute_dtype

_TILE = 256
"""The number of columns that are processed together."""

_SIZES = Struct("rows length inner")
_INT64 = numpy.dtype(numpy.int64)


# --- sums, products, and sums of exponentials ---


@loops
def plus(a: T, b: T) -> T:
    """Return the sum."""
    return a + b


@loops
def times(a: T, b: T) -> T:
    """Return the product."""
    return a * b


@loops
def scan_vector(
    out: Pointer[S], x: Pointer[T], carried: Pointer[I], there: Any, MASKED: Static, NUMBER: Static, COMBINE: Static,
    FIRST: Static, REVERSED: Static, W: Static,
) -> None:  # fmt: skip
    """Compute the running results of a vector of adjacent elements. `carried`: the result before, and then after it."""
    ask_ahead(as_integer(x), W, T)
    first = vector(I, W)(FIRST)
    total = vector(I, W)(vector(NUMBER, W)(load(x, W, there)))
    if MASKED:
        total = where(there, total, first)
    STEP = 1
    for _ in unrolled(W.bit_length() - 1):
        if REVERSED:
            total = COMBINE(total, shuffle(total, first, [LANE + STEP for LANE in unrolled(W)]))
        else:
            total = COMBINE(total, shuffle(total, first, [LANE - STEP if LANE >= STEP else W for LANE in unrolled(W)]))
        STEP = STEP * 2
    total = COMBINE(total, broadcast(carried[0], W))
    carried[0] = total[0 if REVERSED else W - 1]
    store(out, vector(S, W)(vector(NUMBER, W)(total)), there)


@loops(noalias=False, explicit=True, plain=True)
def scan_along(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, NUMBER: Static, CARRIED: Static, COMBINE: Static,
    FIRST: Static, REVERSED: Static, W: Static,
) -> None:  # fmt: skip
    """Compute the running results of `COMBINE` in rows, in the type `CARRIED`. `FIRST` is the result of no elements."""
    n = fields(table[0], _SIZES).length
    x, out = array_at(table, 0, T), array_at(table, 1, S)
    carried = local(CARRIED, 1)
    rest = n % W
    inside = first_lanes(rest, W)
    for row in range(start, stop):
        carried[0] = CARRIED(FIRST)
        begin = row * n
        if CARRIED.kind != "f":  # an addition of integers takes one cycle, less than the steps of a vector
            total = CARRIED(FIRST)
            for i in range(n):
                at = begin + (n - 1 - i if REVERSED else i)
                total = COMBINE(total, CARRIED(NUMBER(x[at])))
                out[at] = S(NUMBER(total))
            continue
        end = begin + (n - rest)
        if REVERSED and rest > 0:
            scan_vector(out + end, x + end, carried, inside, True, NUMBER, COMBINE, FIRST, REVERSED, W)
        for i in range(0, n - rest, W):
            at = end - W - i if REVERSED else begin + i
            scan_vector(out + at, x + at, carried, None, False, NUMBER, COMBINE, FIRST, REVERSED, W)
        if not REVERSED and rest > 0:
            scan_vector(out + end, x + end, carried, inside, True, NUMBER, COMBINE, FIRST, REVERSED, W)


@loops(noalias=False, explicit=True, plain=True)
def scan_rows(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, NUMBER: Static, CARRIED: Static, COMBINE: Static,
    FIRST: Static, REVERSED: Static, LINES: Static,
) -> None:  # fmt: skip
    """Compute the same results for `LINES` rows at once, element by element. The last rows may be computed twice."""
    sizes = fields(table[0], _SIZES)
    n = sizes.length
    x, out = array_at(table, 0, T), array_at(table, 1, S)
    part, found = local(T, LINES), local(S, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, sizes.rows - LINES) * n
        total = vector(CARRIED, LINES)(FIRST)
        for i in range(n):
            at = first + (n - 1 - i if REVERSED else i)
            for LINE in unrolled(LINES):
                part[LINE] = x[at + LINE * n]
            total = COMBINE(total, vector(CARRIED, LINES)(vector(NUMBER, LINES)(load(part, LINES))))
            store(found, vector(S, LINES)(vector(NUMBER, LINES)(total)))
            for LINE in unrolled(LINES):
                out[at + LINE * n] = found[LINE]


@loops
def column_tile(piece: Int, inner: Int) -> tuple[Int, Int, Int]:
    """Return the matrix that contains a tile of columns, the first column of the tile, and its number of columns."""
    tiles = (inner + _TILE - 1) // _TILE
    outer = piece // tiles
    first = (piece - outer * tiles) * _TILE
    return outer, first, minimum(inner - first, _TILE)


@loops(noalias=False, explicit=True, plain=True)
def scan_columns(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, NUMBER: Static, CARRIED: Static, COMBINE: Static,
    FIRST: Static, REVERSED: Static, W: Static,
) -> None:  # fmt: skip
    """Compute the same results for columns of an array (outer, n, inner), with `_TILE` columns side by side."""
    sizes = fields(table[0], _SIZES)
    n, inner = sizes.length, sizes.inner
    x, out = array_at(table, 0, T), array_at(table, 1, S)
    totals = local(CARRIED, _TILE)
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        for j in range(0, width - W + 1, W):
            store(totals + j, vector(CARRIED, W)(FIRST))
        last = vector(CARRIED, W)(FIRST)
        rest = width % W
        inside = first_lanes(rest, W)
        for i in range(n):
            here = (outer * n + (n - 1 - i if REVERSED else i)) * inner + first
            for j in range(0, width - W + 1, W):
                total = COMBINE(load(totals + j, W), vector(CARRIED, W)(vector(NUMBER, W)(load(x + (here + j), W))))
                store(totals + j, total)
                store(out + (here + j), vector(S, W)(vector(NUMBER, W)(total)))
            if rest > 0:
                j = width - rest
                last = COMBINE(last, vector(CARRIED, W)(vector(NUMBER, W)(load(x + (here + j), W, inside))))
                store(out + (here + j), vector(S, W)(vector(NUMBER, W)(last)), inside)


@loops(noalias=False, explicit=True, plain=True)
def scan_pairs(
    table: Pointer[i64], start: Int, stop: Int, T: Static, PRODUCT: Static, REVERSED: Static, LINES: Static
) -> None:
    """Compute the running sums or products in rows of complex numbers. Groups of rows are as in `scan_rows`."""
    sizes = fields(table[0], _SIZES)
    n = sizes.length
    x, out = array_at(table, 0, T), array_at(table, 1, T)
    PAIR = vector(f64, 2)
    totals = local(PAIR, LINES)
    signs = PAIR(lanes(i64, 2)) * 2 - 1
    for group in range(start, stop):
        first = minimum(group * LINES, sizes.rows - LINES) * n
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


# --- extrema ---


@loops
def takes_over(x: T, best: T, MAXIMUM: Static) -> boolean:
    """Return whether an element replaces the running extremum, because it is at least as good or is NaN."""
    if x.type.kind == "f":
        return (not (x < best) if MAXIMUM else not (x > best)) & ((best == best) | (x != x))
    return x >= best if MAXIMUM else x <= best


@loops(noalias=False, explicit=True, plain=True)
def extremum_rows(table: Pointer[i64], start: Int, stop: Int, T: Static, MAXIMUM: Static, LINES: Static) -> None:
    """Compute the running extrema in rows. Groups of rows are as in `scan_rows`."""
    sizes = fields(table[0], _SIZES)
    n = sizes.length
    x, values, places = array_at(table, 0, T), array_at(table, 1, T), array_at(table, 2, i64)
    best = local(T, LINES)
    place = local(i64, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, sizes.rows - LINES) * n
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


@loops(noalias=False, explicit=True, plain=True)
def extremum_columns(table: Pointer[i64], start: Int, stop: Int, T: Static, MAXIMUM: Static, W: Static) -> None:
    """Compute the running extrema of columns of an array (outer, n, inner), with `_TILE` columns side by side."""
    sizes = fields(table[0], _SIZES)
    n, inner = sizes.length, sizes.inner
    x, values, places = array_at(table, 0, T), array_at(table, 1, T), array_at(table, 2, i64)
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


# --- calls ---

_COMBINATIONS: dict[str, tuple[Loops, float]] = {
    "sum": (plus, 0), "prod": (times, 1), "logsumexp": (logaddexp, -math.inf),
}  # fmt: skip
"""The combination of two results, and the result of no elements."""


def scan(x: ndarray, dim: int, name: str, reverse: bool) -> Any:
    """Return the call that computes the running results of `name` along `dim`, or from its end if `reverse`.

    "max" and "min" give the last positions too. Results are accumulated in float64, complex128 or int64.
    """
    outer, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    kind, dtype = u8 if x.dtype.kind == "b" else type_of(x.real.dtype), x.dtype
    if kind is None or not x.size:
        return NotImplemented
    width = HOST.vector_bytes // 8
    lines, work = min(outer, 4), n * 2 * (x.itemsize + 8)  # each element waits for the one before it
    results = [Memory(x.shape, dtype)]
    types: dict[str, Any] = {"T": kind}
    if name in ("max", "min"):
        if kind.storage_only or dtype.kind == "c":
            return NotImplemented
        results.append(Memory(x.shape, _INT64))
        types["MAXIMUM"] = name == "max"
        along, across = extremum_rows, extremum_columns
    elif dtype.kind == "c" and inner == 1:
        types |= {"PRODUCT": name == "prod", "REVERSED": reverse}
        along = across = scan_pairs
    else:
        inner *= 1 + (dtype.kind == "c")  # the parts of sums are independent
        if dtype.kind == "c" and name != "sum":
            return NotImplemented
        if kind.kind != "f":
            results = [Memory(x.shape, _INT64)]
        number, carried = (type_of(compute_dtype(x.real.dtype)), f64) if kind.kind == "f" else (i64, i64)
        combine, first = _COMBINATIONS[name]
        types |= {"S": kind if kind.kind == "f" else i64, "NUMBER": number, "CARRIED": carried, "COMBINE": combine,
                  "FIRST": first, "REVERSED": reverse}  # fmt: skip
        along, across = scan_rows, scan_columns
        lines = 2 * width if outer >= 2 * width else 1  # each element waits for the one before
        if inner == 1 and n > 16 and name != "logsumexp":  # shorter rows are computed side by side
            along, lines = scan_along, 1
            types["W"] = HOST.vector_bytes * 8 // number.bits
    if inner == 1:
        if along is not scan_along:
            types["LINES"] = lines
        function, pieces, work = along.compiled(**types), -(-outer // lines), work * lines
    else:
        function, pieces = across.compiled(W=width, **types), outer * -(-inner // _TILE)
        work *= min(inner, _TILE)
    sizes = _SIZES.pack(rows=outer, length=n, inner=inner)
    return NativeCall(function, pieces, work, sizes, ["x"], results, copied=not_row_major(x=x))
