"""Products of matrices in blocks that fit the caches: packed columns of one factor times rows of the other.

Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008. A panel is as many columns as a tile has,
one row of them after another: a part of it stays in the first-level cache while rows of the other factor pass, of which a
block stays in the second. The sums of a tile stay in registers.
"""

from __future__ import annotations

from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    broadcast,
    fma,
    i64,
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

GROUP = 4
"""How many tiles or panels are packed at a time: what lies in one cache line is read once."""

ADDED, FRESH, OFFSET = range(3)
"""What a product begins with: what the result holds, zero, or the same vector in every row."""


@loops(explicit=True)
def pack_columns(
    packed: Pointer[T], b: Pointer[T], b_row: Int, b_column: Int, depth: Int, columns: Int, W: Static, S: Static
) -> None:
    """Panels of `columns` columns of `b`; each has room for whole squares of `S` rows. Of the steps of `b`, one is 1."""
    room = (depth + (S - 1)) // S * (S * VECTORS * W)
    if b_column == 1:
        for first in range(0, columns, GROUP * VECTORS * W):
            for d in range(depth):
                for j in range(first, minimum(first + GROUP * VECTORS * W, columns), VECTORS * W):
                    target = packed + (j // (VECTORS * W) * room + d * (VECTORS * W))
                    for PART in unrolled(VECTORS):
                        there = first_lanes(columns - (j + PART * W), W)
                        store(target + PART * W, load(b + (d * b_row + j + PART * W), W, there))
    else:
        for j in range(0, columns, S):
            target = packed + (j // (VECTORS * W) * room + j % (VECTORS * W))
            for d in range(0, depth, S):
                deep = first_lanes(depth - d, S)
                square = [load(b + (minimum(j + ROW, columns - 1) * b_column + d), S, deep) for ROW in unrolled(S)]
                square = transposed(square, S)
                for ROW in unrolled(S):
                    store(target + (d + ROW) * (VECTORS * W), square[ROW])


@loops(explicit=True)
def pack_rows(packed: Pointer[T], a: Pointer[T], a_column: Int, rows: Int, depth: Int, R: Static) -> None:
    """For each tile of rows, their elements one column after another; those of a column of `a` are contiguous."""
    for first in range(0, rows, GROUP * R):
        for d in range(depth):
            for i in range(first, minimum(first + GROUP * R, rows), R):
                store(packed + (i * depth + d * R), load(a + (d * a_column + i), R, first_lanes(rows - i, R)))


@loops(explicit=True)
def multiply(
    c: Pointer[T], c_step: Int, c_row: Int, a: Pointer[T], a_step: Int, a_row: Int, a_column: Int, b: Pointer[T], b_step: Int,
    b_row: Int, b_column: Int, packs: Int, added: Pointer[T], begins: Int, scratch: Pointer[T], room: Int, count: Int, rows: Int,
    depth: Int, columns: Int, part_rows: Int, part_columns: Int, block_rows: Int, block_depth: Int, block_columns: Int,
    shares: Int, start: Int, stop: Int, W: Static, R: Static,
) -> None:  # fmt: skip
    """The shares `start` to `stop` of `count` products; a product has parts of `part_rows` by `part_columns` of its elements.

    Matrix i of a stack begins at i times its step. `packs`: 0 where the rows of `b` are read where they are. A share has
    `room` elements of `scratch`.
    """
    S = minimum(W, 8)
    sums = local(vector(T, W), R * VECTORS)
    across = (columns + (part_columns - 1)) // part_columns
    parts = across * ((rows + (part_rows - 1)) // part_rows)
    for share in range(start, stop):
        packed = scratch + share * room
        packed_rows = packed + block_columns * block_depth
        part = share
        while part < count * parts:
            matrix, place = part // parts, part % parts
            m_start, n = place // across * part_rows, place % across * part_columns
            m_stop, n_stop = minimum(m_start + part_rows, rows), minimum(n + part_columns, columns)
            while n < n_stop:
                wide = minimum(n_stop - n, block_columns)
                k = 0
                while k < depth:
                    deep = minimum(depth - k, block_depth)
                    before = where(k == 0, begins, ADDED)
                    panels = b + (matrix * b_step + k * b_row + n * b_column)
                    panel_row, next_panel = b_row, i64(VECTORS * W)
                    if packs != 0:
                        pack_columns(packed, panels, b_row, b_column, deep, wide, W, S)
                        panels, panel_row = packed, i64(VECTORS * W)
                        next_panel = (deep + (S - 1)) // S * (S * VECTORS * W)
                    m = m_start
                    while m < m_stop:
                        tall = minimum(m_stop - m, block_rows)
                        source = a + (matrix * a_step + m * a_row + k * a_column)
                        source_row, source_column, next_tile = a_row, a_column, a_row * R
                        if a_column != 1:
                            pack_rows(packed_rows, source, a_column, tall, deep, R)
                            source, source_row, source_column, next_tile = packed_rows, 1, R, deep * R
                        for j in range(0, wide, VECTORS * W):
                            panel = panels + j // (VECTORS * W) * next_panel
                            masks = [first_lanes(wide - (j + PART * W), W) for PART in unrolled(VECTORS)]
                            for i in range(0, tall, R):
                                here = minimum(tall - i, R)
                                target = c + (matrix * c_step + (m + i) * c_row + n + j)
                                if before == FRESH:
                                    for EACH in unrolled(R * VECTORS):
                                        sums[EACH] = vector(T, W)(0)
                                else:
                                    origin = where(before == ADDED, target, added + (n + j))
                                    origin_row = where(before == ADDED, c_row, 0)
                                    for ROW in unrolled(R):
                                        own = origin + minimum(ROW, here - 1) * origin_row
                                        for PART in unrolled(VECTORS):
                                            sums[ROW * VECTORS + PART] = load(own + PART * W, W, masks[PART])
                                tile = source + i // R * next_tile
                                starts = [tile + minimum(ROW, here - 1) * source_row for ROW in unrolled(R)]
                                for d in range(deep):
                                    vectors = [
                                        load(panel + (d * panel_row + PART * W), W) for PART in unrolled(VECTORS)
                                    ]
                                    for ROW in unrolled(R):
                                        factor = broadcast(starts[ROW][d * source_column], W)
                                        for PART in unrolled(VECTORS):
                                            EACH = ROW * VECTORS + PART
                                            sums[EACH] = fma(factor, vectors[PART], sums[EACH])
                                for ROW in unrolled(R):
                                    if here > ROW:
                                        for PART in unrolled(VECTORS):
                                            EACH = ROW * VECTORS + PART
                                            store(target + (ROW * c_row + PART * W), sums[EACH], masks[PART])
                        m += block_rows
                    k += block_depth
                n += block_columns
            part += shares
