"""Small products of matrices whose sums stay in registers, and transposes of blocks: what larger kernels are made of."""

from __future__ import annotations

from typing import Any

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    broadcast,
    fma,
    i64,
    lanes,
    load,
    local,
    loops,
    minimum,
    shuffle,
    store,
    unrolled,
    vector,
)

VECTORS = 2
"""How many vectors a row of a tile has."""


def tile_rows(vector_bytes: int) -> int:
    """How many rows a tile has: as many as registers leave room for."""
    return 8 if vector_bytes == 64 or HOST.instruction_set == "NEON" else 4


@loops
def first_lanes(count: Int, W: Static) -> Any:
    """The mask of the first `count` elements of a vector."""
    return lanes(i64, W) < broadcast(count, W)


@loops
def add_product(
    target: Pointer[T], target_row: Int, rows: Int, width: Int, a: Pointer[T], a_row: Int, a_column: Int, last: Int,
    b: Pointer[T], b_row: Int, depth: Int, W: Static, R: Static, WHOLE: Static,
) -> None:  # fmt: skip
    """Add a product of matrices to the rows of `target`, which has room for whole tiles of `R` rows and `VECTORS` vectors.

    Element (r, d) of `a` is at `r * a_row + d * a_column`; rows after the last one are the last one again. Row d of `b` begins
    at `d * b_row` and has `width` elements: `WHOLE` says that these are whole tiles.
    """
    for i in range(0, rows, R):
        starts = [a + minimum(i + ROW, last) * a_row for ROW in unrolled(R)]
        for j in range(0, width, VECTORS * W):
            masks = [first_lanes(width - (j + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
            sums = local(vector(T, W), R * VECTORS)
            for ROW in unrolled(R):
                for COLUMN in unrolled(VECTORS):
                    sums[ROW * VECTORS + COLUMN] = load(target + ((i + ROW) * target_row + j + COLUMN * W), W)
            for d in range(depth):
                start = b + (d * b_row + j)
                if WHOLE:
                    vectors = [load(start + COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
                else:
                    vectors = [load(start + COLUMN * W, W, masks[COLUMN]) for COLUMN in unrolled(VECTORS)]
                for ROW in unrolled(R):
                    factor = broadcast(starts[ROW][d * a_column], W)
                    for COLUMN in unrolled(VECTORS):
                        sums[ROW * VECTORS + COLUMN] = fma(factor, vectors[COLUMN], sums[ROW * VECTORS + COLUMN])
            for ROW in unrolled(R):
                for COLUMN in unrolled(VECTORS):
                    store(target + ((i + ROW) * target_row + j + COLUMN * W), sums[ROW * VECTORS + COLUMN])


def _stages(width: int) -> list[list[tuple[int, int, list[int]]]]:
    """For each stage of a transpose and each new row: the two rows that it is of, and the places of its elements in them."""
    stages = []
    for step in (1 << k for k in range(width.bit_length() - 1)):
        rows = []
        for row in range(width):
            own = step if row & step else 0
            places = [(place & ~step | own) + (width if place & step else 0) for place in range(width)]
            rows.append((row & ~step, row | step, places))
        stages.append(rows)
    return stages


@loops
def transposed(rows: list[Any], W: Static) -> Any:
    """The columns of a square of `W` vectors of `W` elements."""
    for STAGE in _stages(W):
        rows = [shuffle(rows[NEXT[0]], rows[NEXT[1]], NEXT[2]) for NEXT in STAGE]
    return rows
