"""Products of matrices made of tiles that stay in registers.

The second factor is walked in panels, as wide as a tile and `PANEL_ROWS` deep: a panel is copied, row by row, to where it stays
in cache, and meets all rows of the first factor, which is read where it lies. So nothing but panels is copied, and results are
written once for every `PANEL_ROWS` numbers that are summed.
"""

from __future__ import annotations

from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    boolean,
    broadcast,
    fma,
    load,
    local,
    loops,
    minimum,
    store,
    unrolled,
    vector,
)
from .tiles import VECTORS, first_lanes, transposed

PANEL_ROWS = 256
"""How many rows a panel has."""


@loops
def copy_panel(panel: Pointer[T], b: Pointer[T], b_row: Int, depth: Int, width: Int, W: Static) -> None:
    """Rows of which only the first `width` elements are there, one after another, filled up with zeros."""
    masks = [first_lanes(width - COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
    for k in range(depth):
        for COLUMN in unrolled(VECTORS):
            store(panel + (k * (VECTORS * W) + COLUMN * W), load(b + (k * b_row + COLUMN * W), W, masks[COLUMN]))


@loops
def turn_panel(panel: Pointer[T], b: Pointer[T], b_row: Int, depth: Int, width: Int, W: Static) -> None:
    """The same of a matrix whose columns lie one after another; those after the last one are the last one again."""
    SIDE = minimum(W, 8)  # squares of this side are turned: larger ones take long to compile
    for column in range(0, VECTORS * W, SIDE):
        starts = [b + minimum(column + PLACE, width - 1) * b_row for PLACE in unrolled(SIDE)]
        for k in range(0, depth, SIDE):
            there = first_lanes(depth - k, SIDE)
            rows = transposed([load(starts[PLACE] + k, SIDE, there) for PLACE in unrolled(SIDE)], SIDE)
            for PLACE in unrolled(SIDE):
                store(panel + ((k + PLACE) * (VECTORS * W) + column), rows[PLACE])


@loops
def multiply_panel(
    result: Pointer[T], result_row: Int, rows: Int, width: Int, a: Pointer[T], a_row: Int, a_column: Int, panel: Pointer[T],
    depth: Int, begin: Pointer[T], begin_row: Int, W: Static, R: Static,
) -> None:  # fmt: skip
    """Columns of the result: the product of all rows and a panel, added to what begins at `begin`.

    Element (r, k) of `a` is at `r * a_row + k * a_column`.
    """
    masks = [first_lanes(width - COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
    for first in range(0, rows, R):
        last = rows - 1 - first
        starts = [a + (first + minimum(ROW, last)) * a_row for ROW in unrolled(R)]
        origin = begin + first * begin_row
        sums = local(vector(T, W), R * VECTORS)
        for ROW in unrolled(R):
            for COLUMN in unrolled(VECTORS):
                source = origin + (minimum(ROW, last) * begin_row + COLUMN * W)
                sums[ROW * VECTORS + COLUMN] = load(source, W, masks[COLUMN])
        at = 0
        for k in range(depth):
            line = panel + k * (VECTORS * W)
            vectors = [load(line + COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
            for ROW in unrolled(R):
                factor = broadcast(starts[ROW][at], W)
                for COLUMN in unrolled(VECTORS):
                    sums[ROW * VECTORS + COLUMN] = fma(factor, vectors[COLUMN], sums[ROW * VECTORS + COLUMN])
            at += a_column
        # Rows after the last one are the last one again.
        for ROW in unrolled(R):
            target = result + (first + minimum(ROW, last)) * result_row
            for COLUMN in unrolled(VECTORS):
                store(target + COLUMN * W, sums[ROW * VECTORS + COLUMN], masks[COLUMN])


@loops
def multiply_rectangle(
    result: Pointer[T], result_row: Int, rows: Int, columns: Int, a: Pointer[T], a_row: Int, a_column: Int, b: Pointer[T],
    b_row: Int, turned: boolean, depth: Int, offset: Pointer[T], has_offset: boolean, W: Static, R: Static,
) -> None:  # fmt: skip
    """`a @ b`, or `a` and the transpose of `b` if that is `turned`, plus the vector `offset` in each row."""
    panel = local(T, PANEL_ROWS * VECTORS * W)
    zeros = local(T, VECTORS * W)
    for COLUMN in unrolled(VECTORS):
        store(zeros + COLUMN * W, vector(T, W)(0))
    for top in range(0, depth, PANEL_ROWS):
        deep = minimum(depth - top, PANEL_ROWS)
        for left in range(0, columns, VECTORS * W):
            wide = minimum(columns - left, VECTORS * W)
            if turned:
                turn_panel(panel, b + (left * b_row + top), b_row, deep, wide, W)
            else:
                copy_panel(panel, b + (top * b_row + left), b_row, deep, wide, W)
            begin, begin_row = zeros, 0
            if top > 0:
                begin, begin_row = result + left, result_row
            elif has_offset:
                begin = offset + left
            multiply_panel(
                result + left, result_row, rows, wide, a + top * a_column, a_row, a_column, panel, deep, begin, begin_row, W, R
            )  # fmt: skip
