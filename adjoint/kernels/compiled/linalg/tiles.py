"""The sizes of tiles of sums that stay in registers, masks, and transposes of squares: what products of matrices are made of."""

from __future__ import annotations

from typing import Any

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Static,
    broadcast,
    i64,
    lanes,
    loops,
    shuffle,
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
