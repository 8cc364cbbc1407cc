"""The sizes of register tiles, masks of vectors, and transposes of squares and of rows of any length."""

from __future__ import annotations

from typing import Any

from .language import *
from .pointwise_loops import masks_are_cheap

VECTORS = 2
"""The number of vectors in a row of a tile of sums, which stays in registers."""


def tile_rows(vector_bytes: int) -> int:
    """Return the number of rows in a tile, which is the maximum that fits in the registers."""
    return 8 if vector_bytes == 64 or HOST.instruction_set == "NEON" else 4


@loops
def first_lanes(count: Int, W: Static) -> Any:
    """Return the mask of the first `count` elements of a vector."""
    return lanes(i64, W) < broadcast(count, W)


def _stages(width: int) -> list[list[tuple[int, int, list[int]]]]:
    """Return, for each stage of a transpose and each new row, its two source rows and the positions of its elements."""
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
    """Return the columns of a square of `W` vectors with `W` elements each."""
    for STAGE in _stages(W):
        rows = [shuffle(rows[NEXT[0]], rows[NEXT[1]], NEXT[2]) for NEXT in STAGE]
    return rows


@loops(noalias=False)
def turn(side: Int, rows: Int, first: Int, left: Int, length: Int, ELEMENT: Static, W: Static, BACK: Static) -> None:
    """Transpose up to `left` rows in whole squares, so that `W` rows are adjacent, or transpose them back."""
    columns = as_pointer(side, ELEMENT)
    line = as_pointer(rows, ELEMENT) + first * length
    count = minimum(left, i64(W))
    S = side_of_squares(ELEMENT)
    if S == 1:
        for row in rolled(count):
            for k in rolled(length):
                if BACK:
                    line[row * length + k] = columns[k * W + row]
                else:
                    columns[k * W + row] = line[row * length + k]
    else:
        for row in rolled((count + (S - 1)) // S):
            for k in rolled((length + (S - 1)) // S):
                left_of_rows = length - k * S
                # Rows after the last one repeat the last one.
                places = [line + (minimum(row * S + ROW, count - 1) * length + k * S) for ROW in unrolled(S)]
                square = columns + (k * S * W + row * S)
                if BACK:
                    found = transposed([load(square + ROW * W, S) for ROW in unrolled(S)], S)
                    for ROW in unrolled(S):
                        there = where(row * S + ROW < count, left_of_rows, i64(0))
                        store(places[ROW], found[ROW], first_lanes(there, S))
                else:
                    there = first_lanes(left_of_rows, S)
                    found = transposed([load(places[ROW], S, there) for ROW in unrolled(S)], S)
                    for ROW in unrolled(S):
                        store(square + ROW * W, found[ROW])


def side_of_squares(type_: Any) -> int:
    """Return the side of a square that is transposed in registers (larger ones compile slowly), or 1."""
    width = HOST.vector_bytes * 8 // type_.bits
    return min(width, 8) if type_.bits >= 32 and masks_are_cheap(type_) else 1
