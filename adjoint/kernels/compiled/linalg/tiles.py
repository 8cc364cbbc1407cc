"""The sizes of tiles of sums that stay in registers: what products of matrices are made of."""

from __future__ import annotations

from ....codegen.llvm.host import HOST

VECTORS = 2
"""How many vectors a row of a tile has."""


def tile_rows(vector_bytes: int) -> int:
    """How many rows a tile has: as many as registers leave room for."""
    return 8 if vector_bytes == 64 or HOST.instruction_set == "NEON" else 4
