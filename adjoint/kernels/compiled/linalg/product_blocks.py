"""Products of matrices in blocks that fit the caches: packed columns of one factor times rows of the other.

Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008. A panel holds the columns of as many vectors as
a tile's rows have, one row of them after another; it stays in the first-level cache while the rows of the other factor
pass. Sums of a tile stay in registers.
"""

from __future__ import annotations

from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    broadcast,
    fma,
    load,
    local,
    loops,
    minimum,
    store,
    unrolled,
    vector,
    where,
)
from .tiles import VECTORS, first_lanes, transposed


@loops(explicit=True)
def pack_columns(
    packed: Pointer[T], b: Pointer[T], b_row: Int, b_column: Int, depth: Int, width: Int, W: Static
) -> None:
    """Panels of `width` columns of `depth` rows; each has room for whole vectors of rows. One of the steps of `b` is 1."""
    room = (depth + (W - 1)) // W * (W * VECTORS * W)
    for j in range(0, width, VECTORS * W):
        panel = packed + j // (VECTORS * W) * room
        if b_column == 1:
            masks = [first_lanes(width - (j + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
            for d in range(depth):
                for COLUMN in unrolled(VECTORS):
                    found = load(b + (d * b_row + j + COLUMN * W), W, masks[COLUMN])
                    store(panel + (d * (VECTORS * W) + COLUMN * W), found)
        else:
            for d in range(0, depth, W):
                there = first_lanes(depth - d, W)
                for column in range(0, VECTORS * W, W):
                    rows = [
                        load(b + (minimum(j + column + ROW, width - 1) * b_column + d), W, there) for ROW in unrolled(W)
                    ]
                    turned = transposed(rows, W)
                    for ROW in unrolled(W):
                        store(panel + ((d + ROW) * (VECTORS * W) + column), turned[ROW])


@loops(explicit=True)
def pack_rows(packed: Pointer[T], a: Pointer[T], a_column: Int, rows: Int, depth: Int, R: Static) -> None:
    """For each tile of rows, its elements of one column after another; rows of `a` are next to one another."""
    for i in range(0, rows, R):
        there = first_lanes(rows - i, R)
        target = packed + i * depth
        for d in range(depth):
            store(target + d * R, load(a + (d * a_column + i), R, there))


@loops(explicit=True)
def multiply_tile(
    c: Pointer[T], c_row: Int, rows: Int, width: Int, starts: Static, a_column: Int, panel: Pointer[T], depth: Int, fresh: Int,
    bias: Pointer[T], W: Static, R: Static,
) -> None:  # fmt: skip
    """One tile."""
    masks = [first_lanes(width - COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
    sums = local(vector(T, W), R * VECTORS)
    if fresh == 0:
        for ROW in unrolled(R):
            for COLUMN in unrolled(VECTORS):
                place = c + (minimum(rows - 1, ROW) * c_row + COLUMN * W)
                sums[ROW * VECTORS + COLUMN] = load(place, W, masks[COLUMN])
    else:
        for COLUMN in unrolled(VECTORS):
            first = vector(T, W)(0)
            if fresh == 2:
                first = load(bias + COLUMN * W, W, masks[COLUMN])
            for ROW in unrolled(R):
                sums[ROW * VECTORS + COLUMN] = first
    for d in range(depth):
        vectors = [load(panel + (d * (VECTORS * W) + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
        for ROW in unrolled(R):
            factor = broadcast(starts[ROW][d * a_column], W)
            for COLUMN in unrolled(VECTORS):
                sums[ROW * VECTORS + COLUMN] = fma(factor, vectors[COLUMN], sums[ROW * VECTORS + COLUMN])
    for ROW in unrolled(R):
        if ROW < rows:
            for COLUMN in unrolled(VECTORS):
                store(c + (ROW * c_row + COLUMN * W), sums[ROW * VECTORS + COLUMN], masks[COLUMN])


@loops(explicit=True)
def multiply(
    c: Pointer[T], c_row: Int, a: Pointer[T], a_row: Int, a_column: Int, b: Pointer[T], b_row: Int, b_column: Int,
    bias: Pointer[T], mode: Int, scratch: Pointer[T], room: Int, rows: Int, depth: Int, columns: Int, part_rows: Int,
    part_columns: Int, block_rows: Int, block_depth: Int, block_columns: Int, start: Int, stop: Int, W: Static, R: Static,
) -> None:  # fmt: skip
    """The parts `start` to `stop` of a product. `mode`: 0 adds to what `c` holds, 1 begins with zero, 2 with the bias."""
    for part in range(start, stop):
        across = (columns + (part_columns - 1)) // part_columns
        first_row, first_column = part // across * part_rows, part % across * part_columns
        last_row, last_column = minimum(first_row + part_rows, rows), minimum(first_column + part_columns, columns)
        packed = scratch + part * room
        packed_rows = packed + block_columns * block_depth
        n = first_column
        while n < last_column:
            width = minimum(last_column - n, block_columns)
            k = 0
            while k < depth:
                deep = minimum(depth - k, block_depth)
                pack_columns(packed, b + (k * b_row + n * b_column), b_row, b_column, deep, width, W)
                step = (deep + (W - 1)) // W * (W * VECTORS * W)
                fresh = where(k == 0, mode, 0)
                m = first_row
                while m < last_row:
                    tall = minimum(last_row - m, block_rows)
                    source, source_row, source_tile, source_column = a + (m * a_row + k * a_column), a_row, a_row * R, a_column
                    if a_column != 1:
                        pack_rows(packed_rows, source, a_column, tall, deep, R)
                        source, source_row, source_tile, source_column = packed_rows, 1, deep * R, R
                    for j in range(0, width, VECTORS * W):
                        for i in range(0, tall, R):
                            here = minimum(tall - i, R)
                            tile = source + i // R * source_tile
                            starts = [tile + minimum(ROW, here - 1) * source_row for ROW in unrolled(R)]
                            multiply_tile(
                                c + ((m + i) * c_row + n + j), c_row, here, width - j, starts, source_column,
                                packed + j // (VECTORS * W) * step, deep, fresh, bias + (n + j), W, R,
                            )  # fmt: skip
                    m += block_rows
                k += block_depth
            n += block_columns
