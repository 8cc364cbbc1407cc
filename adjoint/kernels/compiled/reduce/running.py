"""Scans along one dimension: running sums, products, sums of exponentials, and extrema with their last positions."""

from __future__ import annotations

from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.elementary_power import logaddexp
from ....codegen.llvm.kernels import *
from ....codegen.llvm.streaming import ask_ahead
from ...runtime.costs import SHORT
from ...runtime.floating import compute_dtype

_TILE = 256
"""The number of columns that are processed together."""

_SIZES = Struct("rows length inner")
_INT64 = numpy.dtype(numpy.int64)


@loops
def plus(a: T, b: T) -> T:
    """Return the sum."""
    return a + b


@loops
def times(a: T, b: T) -> T:
    """Return the product."""
    return a * b


@loops
def takes_over(best: T, x: T, MAXIMUM: Static) -> boolean:
    """Return whether an element replaces the running extremum, because it is at least as good or is NaN."""
    if x.type.kind == "f":
        return (not (x < best) if MAXIMUM else not (x > best)) & ((best == best) | (x != x))
    return x >= best if MAXIMUM else x <= best


@loops
def above(best: T, x: T) -> boolean:
    """Return whether an element is the new maximum."""
    return takes_over(best, x, True)


@loops
def below(best: T, x: T) -> boolean:
    """Return whether an element is the new minimum."""
    return takes_over(best, x, False)


@loops
def advance(
    out: Pointer[S], indices: Pointer[i64], x: Pointer[T], totals: Pointer[I], places: Pointer[i64], i: Int, there: Any,
    NUMBER: Static, COMBINE: Static, PLACED: Static, W: Static,
) -> Any:  # fmt: skip
    """Write the next `W` running results, and return them. Extrema are `PLACED`: `COMBINE` tells which elements replace them."""
    element = vector(I, W)(vector(NUMBER, W)(load(x, W, there)))
    total, place = load(totals, W, there), load(places, W, there)
    if PLACED:
        taken = COMBINE(total, element)
        total, place = where(taken, element, total), where(taken, broadcast(i, W), place)
        store(indices, place, there)
    else:
        total = COMBINE(total, element)
    store(out, vector(S, W)(vector(NUMBER, W)(total)), there)
    return total, place


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
    FIRST: Static, REVERSED: Static, PLACED: Static, LINES: Static,
) -> None:  # fmt: skip
    """Compute the same results for `LINES` rows at once, element by element. The last rows may be computed twice."""
    sizes = fields(table[0], _SIZES)
    n = sizes.length
    x, out, indices = array_at(table, 0, T), array_at(table, 1, S), array_at(table, 2 if PLACED else 1, i64)
    totals, places = local(CARRIED, LINES), local(i64, LINES)
    part, found, at_places = local(T, LINES), local(S, LINES), local(i64, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, sizes.rows - LINES) * n
        store(totals, vector(CARRIED, LINES)(FIRST))
        store(places, vector(i64, LINES)(0))
        for i in range(n):
            at = first + (n - 1 - i if REVERSED else i)
            for LINE in unrolled(LINES):
                part[LINE] = x[at + LINE * n]
            total, place = advance(found, at_places, part, totals, places, i, None, NUMBER, COMBINE, PLACED, LINES)
            store(totals, total)
            store(places, place)
            for LINE in unrolled(LINES):
                out[at + LINE * n] = found[LINE]
                if PLACED:
                    indices[at + LINE * n] = at_places[LINE]


@loops(noalias=False, explicit=True, plain=True)
def scan_columns(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, NUMBER: Static, CARRIED: Static, COMBINE: Static,
    FIRST: Static, REVERSED: Static, PLACED: Static, W: Static,
) -> None:  # fmt: skip
    """Compute the same results for columns of an array (outer, n, inner), with `_TILE` columns side by side."""
    sizes = fields(table[0], _SIZES)
    n, inner = sizes.length, sizes.inner
    x, out, indices = array_at(table, 0, T), array_at(table, 1, S), array_at(table, 2 if PLACED else 1, i64)
    totals, places = local(CARRIED, _TILE), local(i64, _TILE)
    tiles = (inner + _TILE - 1) // _TILE
    for piece in range(start, stop):
        outer = piece // tiles
        begin = (piece - outer * tiles) * _TILE
        width = minimum(inner - begin, _TILE)
        rest = width % W
        for j in range(0, width, W):
            store(totals + j, vector(CARRIED, W)(FIRST))
            store(places + j, vector(i64, W)(0))
        for i in range(n):
            here = (outer * n + (n - 1 - i if REVERSED else i)) * inner + begin
            before, at_before = totals, places
            if PLACED:  # the previous row contains the results
                before = where(i > 0, out + (here - inner), totals)
                at_before = where(i > 0, indices + (here - inner), places)
            for j in range(0, width - rest, W):
                at = here + j
                total, _place = advance(
                    out + at, indices + at, x + at, before + j, at_before + j, i, None, NUMBER, COMBINE, PLACED, W
                )
                if not PLACED:
                    store(totals + j, total)
            if rest > 0:
                j, there = width - rest, first_lanes(rest, W)
                at = here + j
                total, _place = advance(
                    out + at, indices + at, x + at, before + j, at_before + j, i, there, NUMBER, COMBINE, PLACED, W
                )
                if not PLACED:
                    store(totals + j, total)


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


_COMBINATIONS: dict[str, tuple[Loops, float]] = {
    "sum": (plus, 0), "prod": (times, 1), "logsumexp": (logaddexp, -math.inf), "max": (above, -math.inf),
    "min": (below, math.inf),
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
    types: dict[str, Any] = {"T": kind, "REVERSED": reverse}
    along, across, placed = scan_rows, scan_columns, name in ("max", "min")
    if dtype.kind == "c" and inner == 1 and not placed:
        types["PRODUCT"] = name == "prod"
        along = scan_pairs
    else:
        inner *= 1 + (dtype.kind == "c")  # the parts of sums are independent
        if (dtype.kind == "c" and name != "sum") or (placed and kind.storage_only):
            return NotImplemented
        combine, first = _COMBINATIONS[name]
        number, carried = (type_of(compute_dtype(x.real.dtype)), f64) if kind.kind == "f" else (i64, i64)
        if placed:
            results.append(Memory(x.shape, _INT64))
            number = carried = kind
            lines = 4 if outer >= 4 else 1
            if kind.kind != "f":
                limits = numpy.iinfo(f"{kind.kind}{kind.bits // 8}")
                first = int(limits.min if name == "max" else limits.max)
        else:
            if kind.kind != "f":
                results = [Memory(x.shape, _INT64)]
            lines = 2 * width if outer >= 2 * width else 1  # each element waits for the one before
            if inner == 1 and n > SHORT and name != "logsumexp":  # shorter rows are computed side by side
                along, lines = scan_along, 1
        types |= {"S": kind if placed or kind.kind == "f" else i64, "NUMBER": number, "CARRIED": carried, "COMBINE": combine,
                  "FIRST": first}  # fmt: skip
    if inner > 1 or along is scan_rows:
        types["PLACED"] = placed
    if inner == 1:
        types |= {"W": HOST.vector_bytes * 8 // number.bits} if along is scan_along else {"LINES": lines}
        function, pieces, work = along.compiled(**types), -(-outer // lines), work * lines
    else:
        function, pieces = across.compiled(W=width, **types), outer * -(-inner // _TILE)
        work *= min(inner, _TILE)
    sizes = _SIZES.pack(rows=outer, length=n, inner=inner)
    return NativeCall(function, pieces, work, sizes, ["x"], results, copied=not_row_major(x=x))
