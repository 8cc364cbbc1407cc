"""Matrix products computed from tiles that stay in registers.

The second factor is traversed in panels that are as wide as a tile and have `PANEL_ROWS` rows. Panels are copied so that
those of many columns stay in the second-level cache. For each tile, some rows of the first factor are copied so that they
stay in the first-level cache, and are then multiplied by one panel after another. Two threads may share these caches. If
only a few panels use the rows, the rows are read in place. Without the copy, rows whose distance is a power of two would
displace each other in the cache. If the first factor is stored by columns, the rows of each tile are copied side by side.
Results are written once for every `PANEL_ROWS` numbers that are summed. The loops run in the order of F. Van Zee and R.
van de Geijn, "BLIS: a framework for rapidly instantiating BLAS functionality", ACM Transactions on Mathematical Software
41, 2015.

A factor of bfloat16 is stored as words of two numbers each. One instruction adds their products to a float32 sum.
"""

from __future__ import annotations

from ....codegen.llvm.amx import add_products_of_pairs
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, transposed
from ...runtime.costs import SECOND_CACHE

PANEL_ROWS = 256
"""The number of rows in a panel."""

LINE = PANEL_ROWS + 16
"""The distance between copied rows of the first factor, which lie in different sets of the cache."""

STRIPS = 4
"""The number of tiles whose rows are copied together, because columns of one tile fill only a part of a cache line."""

FEW = 4
"""The number of panels that read the rows of the first factor in place."""

AHEAD = 8
"""The prefetch distance of copies, in rows or columns of the source. Each may lie on another page."""

STEPS = 2
"""The number of products that are added to each sum of a tile before the loop ends or repeats."""


@loops
def copy_panels(panels: Pointer[T], b: Pointer[T], b_row: Int, depth: Int, width: Int, W: Static) -> None:
    """Copy rows as consecutive panels. The last panel is padded with zeros."""
    whole = width // (VECTORS * W) * (VECTORS * W)
    masks = [first_lanes(width - (whole + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
    for k in range(depth):
        source, target = b + k * b_row, panels + k * (VECTORS * W)
        for j in range(0, whole, VECTORS * W):
            for COLUMN in unrolled(VECTORS):
                prefetch(source + (AHEAD * b_row + j + COLUMN * W))
                store(target + (j * PANEL_ROWS + COLUMN * W), load(source + (j + COLUMN * W), W))
        if whole < width:
            for COLUMN in unrolled(VECTORS):
                there = load(source + (whole + COLUMN * W), W, masks[COLUMN])
                store(target + (whole * PANEL_ROWS + COLUMN * W), there)


@loops
def turn(target: Pointer[T], line: Int, source: Pointer[T], row: Int, rows: Int, columns: Int, SIDE: Static) -> None:
    """Transpose rows that are `row` apart to rows that are `line` apart, in squares. Missing rows repeat the last one."""
    for i in range(0, rows, SIDE):
        starts = [source + minimum(i + PLACE, rows - 1) * row for PLACE in unrolled(SIDE)]
        for j in range(0, columns, SIDE):
            there = first_lanes(columns - j, SIDE)
            square = transposed([load(starts[PLACE] + j, SIDE, there) for PLACE in unrolled(SIDE)], SIDE)
            for PLACE in unrolled(SIDE):
                store(target + ((j + PLACE) * line + i), square[PLACE])


@loops
def plus_product(total: Any, x: Any, y: Any, T: Static) -> Any:
    """Return `total + x * y`. Numbers of type i32 are pairs of bfloat16 numbers, and both products are added."""
    return add_products_of_pairs(x, y, total) if T is i32 else fma(x, y, total)


@loops
def copy_rows(block: Pointer[T], a: Pointer[T], a_row: Int, rows: Int, depth: Int, R: Static, W: Static) -> None:
    """Copy rows one after another. Rows that the last tile lacks repeat the last row."""
    whole = depth // W * W
    rest = first_lanes(depth - whole, W)
    for i in range((rows + (R - 1)) // R * R):
        source, target = a + minimum(i, rows - 1) * a_row, block + i * LINE
        for k in range(0, whole, W):
            prefetch(source + (AHEAD * a_row + k))
            store(target + k, load(source + k, W))
        if whole < depth:
            store(target + whole, load(source + whole, W, rest))


@loops
def copy_strips(block: Pointer[T], a: Pointer[T], a_column: Int, rows: Int, depth: Int, R: Static) -> None:
    """Copy the adjacent rows of each tile in a strip, one strip after another."""
    for k in range(depth):
        source, target = a + k * a_column, block + k * R
        for first in range(0, rows, R):
            prefetch(source + (AHEAD * a_column + first))
            store(target + first * LINE, load(source + first, R, first_lanes(rows - first, R)))


@loops
def copy_part(
    target: Pointer[S], row: Int, source: Pointer[S], source_row: Int, rows: Int, masks: Any, W: Static
) -> None:
    """Copy rows of an incomplete tile."""
    for i in range(rows):
        for COLUMN in unrolled(VECTORS):
            place = COLUMN * W
            store(target + (i * row + place), load(source + (i * source_row + place), W, masks[COLUMN]), masks[COLUMN])


@loops
def multiply_tile(
    result: Pointer[S], result_row: Int, a: Pointer[T], a_row: Int, a_column: Int, panel: Pointer[T], depth: Int,
    begin: Pointer[S], begin_row: Int, masks: Any, W: Static, R: Static,
) -> None:  # fmt: skip
    """Compute a tile of the result: add the product of `R` rows and a panel to the content at `begin`.

    Element (r, k) of the rows is at `r * a_row + k * a_column`. The masks are those of the columns of the result.
    """
    sums = local(vector(S, W), R * VECTORS)
    for ROW in unrolled(R):
        for COLUMN in unrolled(VECTORS):
            sums[ROW * VECTORS + COLUMN] = load(begin + (ROW * begin_row + COLUMN * W), W, masks[COLUMN])
            prefetch(result + (ROW * result_row + (VECTORS + COLUMN) * W))  # the next tile
    rows, line, source = [ROW * a_row for ROW in unrolled(R)], panel, a
    for _ in range(depth // STEPS):
        for _STEP in unrolled(STEPS):
            add_products(sums, rows, source, line, W, R)
            source, line = source + a_column, line + VECTORS * W
    for _ in range(depth % STEPS):
        add_products(sums, rows, source, line, W, R)
        source, line = source + a_column, line + VECTORS * W
    for ROW in unrolled(R):
        for COLUMN in unrolled(VECTORS):
            store(result + (ROW * result_row + COLUMN * W), sums[ROW * VECTORS + COLUMN], masks[COLUMN])


@loops
def add_products(sums: Any, rows: Any, source: Pointer[T], line: Pointer[T], W: Static, R: Static) -> None:
    """Add the products of one number of each row, which are `rows` after `source`, and a row of a panel."""
    vectors = [load(line + COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
    for ROW in unrolled(R):
        factor = broadcast(source[rows[ROW]], W)
        for COLUMN in unrolled(VECTORS):
            place = ROW * VECTORS + COLUMN
            sums[place] = plus_product(sums[place], factor, vectors[COLUMN], T)


@loops
def multiply_rectangle(
    result: Pointer[S], result_row: Int, rows: Int, columns: Int, a: Pointer[T], a_row: Int, a_column: Int, b: Pointer[T],
    b_row: Int, turned: boolean, depth: Int, offset: Pointer[S], has_offset: boolean, W: Static, R: Static,
) -> None:  # fmt: skip
    """Compute `a @ b`, or `a` times the transpose of `b` if `turned`, and add the vector `offset` to each row.

    Element (r, k) of `a` is at `r * a_row + k * a_column`. One of the two distances is 1.
    """
    WIDTH = VECTORS * W
    SIDE = minimum(W, 8)  # larger squares take long to compile
    PANELS = SECOND_CACHE // (PANEL_ROWS * VECTORS * HOST.vector_bytes)
    panels = local(T, PANELS * PANEL_ROWS * WIDTH)
    block = local(T, STRIPS * R * LINE)
    part = local(S, R * WIDTH)
    zeros = local(S, WIDTH)
    for COLUMN in unrolled(VECTORS):
        store(zeros + COLUMN * W, vector(S, W)(0))
    # Few rows do not repay the writes of many panels, which leave the first-level cache.
    group = minimum((rows + (WIDTH - 1)) // WIDTH, PANELS) * WIDTH
    for top in range(0, depth, PANEL_ROWS):
        deep = minimum(depth - top, PANEL_ROWS)
        for index in range((columns + (group - 1)) // group):
            left = index * group
            wide = minimum(columns - left, group)
            copied = panels
            if not turned and b_row == WIDTH and columns == WIDTH:
                copied = b + top * b_row  # rows as wide as a panel already are a panel
            elif turned:
                for j in range(0, wide, WIDTH):
                    origin = b + ((left + j) * b_row + top)
                    turn(panels + j * PANEL_ROWS, WIDTH, origin, b_row, minimum(wide - j, WIDTH), deep, SIDE)
            else:
                copy_panels(panels, b + (top * b_row + left), b_row, deep, wide, W)
            for first in range(0, rows, STRIPS * R):
                high = minimum(rows - first, STRIPS * R)
                source = a + (first * a_row + top * a_column)
                source_tile, source_row, source_column = a_row, a_row, i64(1)
                if a_column != 1:
                    copy_strips(block, source, a_column, high, deep, R)
                    source, source_tile, source_row, source_column = block, i64(LINE), i64(1), i64(R)
                elif wide > FEW * WIDTH or high % R != 0:
                    copy_rows(block, source, a_row, high, deep, R, W)
                    source, source_tile, source_row = block, i64(LINE), i64(LINE)
                for i in range(0, high, R):
                    for j in range(0, wide, WIDTH):
                        masks = [first_lanes(wide - j - COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
                        target, target_row = result + ((first + i) * result_row + left + j), result_row
                        begin, begin_row = zeros, i64(0)
                        if top > 0:
                            begin, begin_row = target, result_row
                        elif has_offset:
                            begin = offset + (left + j)
                        there = minimum(high - i, R)
                        place, place_row = target, target_row
                        if there < R:
                            copy_part(part, i64(WIDTH), begin, begin_row, there, masks, W)
                            begin, begin_row, place, place_row = part, i64(WIDTH), part, i64(WIDTH)
                        multiply_tile(
                            place, place_row, source + i * source_tile, source_row, source_column, copied + j * PANEL_ROWS,
                            deep, begin, begin_row, masks, W, R,
                        )  # fmt: skip
                        if there < R:
                            copy_part(target, target_row, part, i64(WIDTH), there, masks, W)
