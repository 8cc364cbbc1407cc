"""Matrix products computed from tiles that stay in registers.

The second factor is traversed in panels that are as wide as a tile and have `PANEL_ROWS` rows. A panel is copied so
that it stays in the first-level cache, and is then multiplied by rows of the first factor. If only a few panels use the
rows, the rows are read in place. Otherwise blocks of `BLOCK_ROWS` rows are first copied so that they stay in the
second-level cache. Without the copy, rows whose distance is a power of two would displace each other in the cache. If the
first factor is stored by columns, the rows of each tile are copied side by side. Results are written once for every
`PANEL_ROWS` numbers that are summed. The loops run in the order of K. Goto and R. van de Geijn, "Anatomy of
high-performance matrix multiplication", ACM Transactions on Mathematical Software 34, 2008.

A factor of bfloat16 is stored as words of two numbers each. One instruction adds their products to a float32 sum.
"""

from __future__ import annotations

from ....codegen.llvm.amx import add_products_of_pairs
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, transposed

PANEL_ROWS = 256
"""The number of rows in a panel."""

PANELS = 4
"""The number of panels that are copied together. They are parts of the same rows, because distant rows lie on different pages."""

BLOCK_ROWS = 256
"""The number of rows of the first factor that are copied together."""

STRIPS = 4
"""The number of tiles whose rows are copied together, because the rows of one tile fill only a part of a cache line."""

AHEAD = 8
"""The prefetch distance of the copy in columns. Each column may lie on another page."""


@loops
def copy_panels(panels: Pointer[T], b: Pointer[T], b_row: Int, depth: Int, width: Int, W: Static) -> None:
    """Copy rows as consecutive panels. The last panel is padded with zeros."""
    whole = width // (VECTORS * W) * (VECTORS * W)
    masks = [first_lanes(width - (whole + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
    for k in range(depth):
        source, target = b + k * b_row, panels + k * (VECTORS * W)
        for j in range(0, whole, VECTORS * W):
            for COLUMN in unrolled(VECTORS):
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
def copy_block(block: Pointer[T], a: Pointer[T], a_row: Int, rows: Int, depth: Int, W: Static) -> None:
    """Copy the rows of a block one after another."""
    for i in range(rows):
        for k in range(0, depth, W):
            store(block + (i * PANEL_ROWS + k), load(a + (i * a_row + k), W, first_lanes(depth - k, W)))


@loops
def copy_strips(block: Pointer[T], a: Pointer[T], a_column: Int, rows: Int, depth: Int, R: Static) -> None:
    """Copy adjacent rows in strips of `R`, one strip after another."""
    for start in range(0, rows, STRIPS * R):
        count = (minimum(rows - start, STRIPS * R) + (R - 1)) // R
        for k in range(depth):
            source, target = a + (k * a_column + start), block + (start * PANEL_ROWS + k * R)
            for strip in range(count):
                there = first_lanes(rows - start - strip * R, R)
                prefetch(source + (AHEAD * a_column + strip * R))
                store(target + strip * (PANEL_ROWS * R), load(source + strip * R, R, there))


@loops
def plus_product(total: Any, x: Any, y: Any, T: Static) -> Any:
    """Return `total + x * y`. Numbers of type i32 are pairs of bfloat16 numbers, and both products are added."""
    return add_products_of_pairs(x, y, total) if T is i32 else fma(x, y, total)


@loops
def multiply_panel(
    result: Pointer[S], result_row: Int, rows: Int, width: Int, a: Pointer[T], a_tile: Int, a_row: Int, a_column: Int,
    panel: Pointer[T], depth: Int, begin: Pointer[S], begin_row: Int, W: Static, R: Static,
) -> None:  # fmt: skip
    """Compute columns of the result: add the product of rows and a panel to the content at `begin`.

    Element (r, k) of a tile is at `r * a_row + k * a_column`, and tiles are `R * a_tile` apart.
    """
    masks = [first_lanes(width - COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
    for first in range(0, rows, R):
        last = rows - 1 - first
        starts = [a + (first * a_tile + minimum(ROW, last) * a_row) for ROW in unrolled(R)]
        origin = begin + first * begin_row
        following = origin + R * begin_row
        for ROW in unrolled(R):
            for COLUMN in unrolled(VECTORS):
                prefetch(following + (ROW * begin_row + COLUMN * W))
        sums = local(vector(S, W), R * VECTORS)
        for ROW in unrolled(R):
            for COLUMN in unrolled(VECTORS):
                source = origin + (minimum(ROW, last) * begin_row + COLUMN * W)
                sums[ROW * VECTORS + COLUMN] = load(source, W, masks[COLUMN])
        for k in range(depth):
            line = panel + k * (VECTORS * W)
            vectors = [load(line + COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
            for ROW in unrolled(R):
                factor = broadcast(starts[ROW][k * a_column], W)
                for COLUMN in unrolled(VECTORS):
                    place = ROW * VECTORS + COLUMN
                    sums[place] = plus_product(sums[place], factor, vectors[COLUMN], T)
        # Rows after the last one repeat the last one.
        for ROW in unrolled(R):
            target = result + (first + minimum(ROW, last)) * result_row
            for COLUMN in unrolled(VECTORS):
                store(target + COLUMN * W, sums[ROW * VECTORS + COLUMN], masks[COLUMN])


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
    panels = local(T, PANELS * PANEL_ROWS * WIDTH)
    block = local(T, BLOCK_ROWS * PANEL_ROWS)
    zeros = local(S, WIDTH)
    for COLUMN in unrolled(VECTORS):
        store(zeros + COLUMN * W, vector(S, W)(0))
    copies = a_column != 1 or columns > 7 * WIDTH  # few panels read rows in place
    tall = minimum(rows, BLOCK_ROWS) if copies else rows
    for top in range(0, depth, PANEL_ROWS):
        deep = minimum(depth - top, PANEL_ROWS)
        for index in range((rows + (tall - 1)) // tall):
            first = index * tall
            high = minimum(rows - first, tall)
            source, source_tile, source_row, source_column = a + (first * a_row + top * a_column), a_row, a_row, i64(1)
            if copies:
                source_tile = i64(PANEL_ROWS)
                if a_column == 1:
                    copy_block(block, source, a_row, high, deep, W)
                    source_row = source_tile
                else:
                    copy_strips(block, source, a_column, high, deep, R)
                    source_row, source_column = i64(1), i64(R)
                source = block
            for left in range(0, columns, PANELS * WIDTH):
                wide = minimum(columns - left, PANELS * WIDTH)
                copied = panels
                if not turned and b_row == WIDTH and columns == WIDTH:
                    copied = b + top * b_row  # rows as wide as a panel already are a panel
                elif turned:
                    for j in range(0, wide, WIDTH):
                        origin = b + ((left + j) * b_row + top)
                        turn(panels + j * PANEL_ROWS, WIDTH, origin, b_row, minimum(wide - j, WIDTH), deep, SIDE)
                else:
                    copy_panels(panels, b + (top * b_row + left), b_row, deep, wide, W)
                for j in range(0, wide, WIDTH):
                    target = result + (first * result_row + left + j)
                    begin, begin_row = zeros, 0
                    if top > 0:
                        begin, begin_row = target, result_row
                    elif has_offset:
                        begin = offset + (left + j)
                    multiply_panel(
                        target, result_row, high, minimum(wide - j, WIDTH), source, source_tile, source_row,
                        source_column, copied + j * PANEL_ROWS, deep, begin, begin_row, W, R,
                    )  # fmt: skip
