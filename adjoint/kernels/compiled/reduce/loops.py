"""Loops that reduce rows of contiguous elements to one number each, and columns across rows.

Three functions in the kernel language define a reduction: `MAP(x, center)` converts elements of type `T` to numbers of
type `S`, `COMBINE(a, b)` combines two numbers, and `IDENTITY` is the neutral element of the combination.

Long reductions are accurate in float32, because several accumulators run over blocks of some thousand elements, and the
results of blocks are combined pairwise. The division of an array does not depend on the number of threads, so results
do not depend on it either.

The loops that are called find their arrays in a table (`CallTables`): the results, the elements, and the centers. The
layout of the table contains the numbers that each loop reads first.
"""

from ....codegen.llvm.kernels import *

TILE = 2048
"""The number of columns that are reduced together. Their accumulators stay in the first-level cache."""

BLOCK = 4096
"""The number of elements of a row that one set of accumulators processes."""


@loops
def reduce_run(
    x: Pointer[T], n: Int, center: S, W: Static, MAP: Static, COMBINE: Static, IDENTITY: Static, PARTS: Static
) -> Any:
    """Reduce `n` contiguous elements to one number with four vectors of accumulators, which are combined at the end.

    If `PARTS` is 2, the elements are alternately real and imaginary parts, and the result is a vector of both.
    """
    sums = local(vector(S, W), 4)
    for K in unrolled(4):
        sums[K] = vector(S, W)(IDENTITY)
    i = 0
    while i + 4 * W <= n:
        for K in unrolled(4):
            sums[K] = COMBINE(sums[K], MAP(load(x + (i + K * W), W), center))
        i += 4 * W
    while i + W <= n:
        sums[0] = COMBINE(sums[0], MAP(load(x + i, W), center))
        i += W
    if i < n:
        here = lanes(i32, W) < i32(n - i)
        sums[1] = where(here, COMBINE(sums[1], MAP(load(x + i, W, here), center)), sums[1])
    total = COMBINE(COMBINE(sums[0], sums[1]), COMBINE(sums[2], sums[3]))
    STEP = W // 2
    for _ in unrolled((W // PARTS).bit_length() - 1):
        total = COMBINE(total, shuffle(total, total, [(LANE + STEP) % W for LANE in unrolled(W)]))
        STEP = STEP // 2
    return total[0] if PARTS == 1 else shuffle(total, total, [0, 1])


@loops
def reduce_row(
    x: Pointer[T], n: Int, center: S, W: Static, MAP: Static, COMBINE: Static, IDENTITY: Static, PARTS: Static
) -> Any:
    """Reduce `n` contiguous elements to one number.

    The results of blocks are combined pairwise, in the order of a binary counter.
    """
    NUMBER = S if PARTS == 1 else vector(S, PARTS)
    levels = local(NUMBER, 48)
    blocks = 0
    i = 0
    while i < n:
        part = reduce_run(x + i, minimum(n - i, BLOCK), center, W, MAP, COMBINE, IDENTITY, PARTS)
        carry = blocks
        level = 0
        while carry % 2 == 1:
            part = COMBINE(levels[level], part)
            carry = carry >> 1
            level += 1
        levels[level] = part
        blocks += 1
        i += BLOCK
    total = NUMBER(IDENTITY)
    level = 0
    while blocks > 0:
        if blocks % 2 == 1:
            total = COMBINE(levels[level], total)
        blocks = blocks >> 1
        level += 1
    return total


@loops
def row_place(layout: Pointer[i64], row: Int) -> Int:
    """Return the offset of a row.

    Rows have three dimensions; `layout` is (inner size, inner step, middle size, middle step, outer step).
    """
    inner, step, middle, middle_step, outer_step = [layout[K] for K in unrolled(5)]
    line = row // inner
    return (row - line * inner) * step + (line % middle) * middle_step + (line // middle) * outer_step


@loops(noalias=False, plain=True)
def reduce_rows(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, W: Static, MAP: Static, COMBINE: Static,
    IDENTITY: Static, PARTS: Static, APART: Static,
) -> None:  # fmt: skip
    """Reduce rows of `n` elements, each in chunks. Each chunk gives one number of one or two parts.

    Rows are consecutive or, if they are `APART`, at the offsets that `row_place` returns.
    """
    layout = as_pointer(table[0], i64)
    center_step, n, chunk = layout[0], layout[1], layout[2]
    out, x, center = (array_at(table, 0, S), array_at(table, 1, T), array_at(table, 2, S))
    chunks = (n + chunk - 1) // chunk
    row = start // chunks
    begin = (start - row * chunks) * chunk
    for piece in range(start, stop):
        middle = center[row * center_step]
        place = row_place(layout + 3, row) if APART else row * n
        source, count = x + (place + begin), minimum(chunk, n - begin)
        store(out + piece * PARTS, reduce_row(source, count, middle, W, MAP, COMBINE, IDENTITY, PARTS))
        begin += chunk
        if begin >= n:
            begin = 0
            row += 1


@loops(noalias=False)
def reduce_short_rows(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, W: Static, MAP: Static, COMBINE: Static,
) -> None:  # fmt: skip
    """Reduce rows of a few elements, which are `step` apart, in groups of as many rows as a vector has elements.

    `row_place` returns the offsets of the rows.
    """
    layout = as_pointer(table[0], i64)
    center_step, n, step, inner = layout[0], layout[1], layout[2], layout[3]
    out, x, center = (array_at(table, 0, S), array_at(table, 1, T), array_at(table, 2, S))
    steps = lanes(i64, W) * layout[4]
    centers = lanes(i64, W) * center_step
    row = start
    while row < stop:
        count = minimum(minimum(stop - row, inner - row % inner), W)
        here = lanes(i32, W) < i32(count)
        first = x + row_place(layout + 3, row)
        middle = gather(center + row * center_step, centers, here)
        total = MAP(gather(first, steps, here), middle)
        for i in range(1, n):
            total = COMBINE(total, MAP(gather(first + i * step, steps, here), middle))
        store(out + row, total, here)
        row += count


@loops
def combine_vector(
    totals: Pointer[S], x: Pointer[T], center: Pointer[S], inner: Int, here: Any, MASKED: Static, ROWS: Static, CENTERED: Static,
    W: Static, MAP: Static, COMBINE: Static,
) -> None:  # fmt: skip
    """Combine a vector of each of `ROWS` rows (one or four) with their totals. `here` is the mask of its valid elements."""
    middle = load(center, W, here) if CENTERED else vector(S, W)(0)
    part = MAP(load(x, W, here), middle)
    if ROWS == 4:
        second = MAP(load(x + inner, W, here), middle)
        third = MAP(load(x + 2 * inner, W, here), middle)
        part = COMBINE(COMBINE(part, second), COMBINE(third, MAP(load(x + 3 * inner, W, here), middle)))
    total = COMBINE(load(totals, W), part)
    store(totals, where(here, total, load(totals, W)) if MASKED else total)


@loops
def combine_rows(
    totals: Pointer[S], x: Pointer[T], center: Pointer[S], inner: Int, width: Int, ROWS: Static, CENTERED: Static,
    W: Static, MAP: Static, COMBINE: Static,
) -> None:  # fmt: skip
    """Combine `ROWS` rows of `width` elements with their totals."""
    j = 0
    while j + W <= width:
        combine_vector(totals + j, x + j, center + j, inner, None, False, ROWS, CENTERED, W, MAP, COMBINE)
        j += W
    if j < width:
        here = lanes(i32, W) < i32(width - j)
        combine_vector(totals + j, x + j, center + j, inner, here, True, ROWS, CENTERED, W, MAP, COMBINE)


@loops(noalias=False, plain=True)
def reduce_columns(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, CENTERED: Static, W: Static, MAP: Static, COMBINE: Static,
    IDENTITY: Static,
) -> None:  # fmt: skip
    """Reduce (outer, rows, inner) to (outer, chunks, inner).

    Each `chunk` of rows is combined to one row, for one tile of columns at a time.

    Rows are `step` apart, and the first rows of two consecutive matrices are `outer_step` apart. If there is only one
    tile, one more row of `rest` elements may follow.
    """
    layout = as_pointer(table[0], i64)
    rows, inner, chunk, rest, step, outer_step = [layout[K] for K in unrolled(6)]
    out, x, center = (array_at(table, 0, S), array_at(table, 1, T), array_at(table, 2, S))
    totals = local(S, TILE + 64)
    tiles = (inner + TILE - 1) // TILE
    chunks = (rows + chunk - 1) // chunk
    for piece in range(start, stop):
        column = (piece % tiles) * TILE
        part = (piece // tiles) % chunks
        outer = piece // (tiles * chunks)
        width = minimum(inner - column, TILE)
        count = minimum(chunk, rows - part * chunk)
        source = x + (outer * outer_step + part * chunk * step + column)
        middle = center + (outer * inner + column)
        j = 0
        while j < width:
            store(totals + j, vector(S, W)(IDENTITY))
            j += W
        row = 0
        while row + 4 <= count:
            combine_rows(totals, source + row * step, middle, step, width, 4, CENTERED, W, MAP, COMBINE)
            row += 4
        last = count + 1 if rest > 0 and part == chunks - 1 else count
        while row < last:
            size = width if row < count else rest
            combine_rows(totals, source + row * step, middle, step, size, 1, CENTERED, W, MAP, COMBINE)
            row += 1
        target = out + ((outer * chunks + part) * inner + column)
        j = 0
        while j + W <= width:
            store(target + j, load(totals + j, W))
            j += W
        if j < width:
            store(target + j, load(totals + j, W), lanes(i32, W) < i32(width - j))
