"""Functions of the kernel language for instructions that multiply bfloat16 numbers and add the products in float32.

Intel's Advanced Matrix Extensions (AMX) do this with matrices in eight numbered tile registers of up to 16 rows of 64
bytes. A thread releases them after use, so that the system need not save them when it switches threads. Other
processors with AVX-512 do this with vectors of pairs.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from ..._runtime.first_use import computed_once
from ..._runtime.platform import ctypes
from .functions import Builtin
from .host import HOST
from .language import i64
from .lowering import Lowering

_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA = 158, 0x1023, 18


class Tiles:
    """The tile registers and whether this process may use them."""

    @computed_once
    def usable(self) -> bool:
        """Return whether the processor has AMX for bfloat16 and Linux permits it to all threads when asked."""
        if (
            sys.platform != "linux"
            or sys.maxsize >> 32 == 0
            or not {"+amx-tile", "+amx-bf16"} <= set(HOST.features.split(","))
        ):
            return False
        return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA) == 0)


TILES = Tiles()
"""The tile registers of this machine."""


@cache
def has_pairs() -> bool:
    """Return whether the processor has the instruction for `add_products_of_pairs`."""
    return HOST.vector_bytes == 64 and "+avx512bf16" in HOST.features.split(",")


@Builtin
def add_products_of_pairs(lowering: Lowering, first: Any, second: Any, sums: Any) -> Any:
    """Add two products of bfloat16 numbers, from the pairs in two words, to each of 16 float32 numbers."""
    pairs = [
        f"<32 x bfloat> {lowering.value(f'bitcast {words} to <32 x bfloat>', sums.type).name}"
        for words in (first, second)
    ]
    lowering.declarations.add(f"declare <16 x float> @{_OF_PAIRS}(<16 x float>, <32 x bfloat>, <32 x bfloat>)")
    return lowering.value(f"call <16 x float> @{_OF_PAIRS}({', '.join([str(sums), *pairs])})", sums.type)


_OF_PAIRS = "llvm.x86.avx512bf16.dpbf16ps.512"


def _instruction(name: str, tiles: int, *types: str) -> Any:
    """Return an instruction that takes the numbers of `tiles` tiles, followed by values of these types."""

    def write(lowering: Lowering, *arguments: Any) -> None:
        declared = ["i8 immarg"] * tiles + list(types)
        lowering.declarations.add(f"declare void @llvm.x86.{name}({', '.join(declared)})")
        given = [f"i8 {number}" for number in arguments[:tiles]]
        for type_, value in zip(types, arguments[tiles:], strict=True):
            given.append(str(value if type_ == "ptr" else lowering.as_type(value, i64)))
        lowering.emit(f"call void @llvm.x86.{name}({', '.join(given)})")

    write.__name__ = name
    return Builtin(write)


configure_tiles = _instruction("ldtilecfg", 0, "ptr")
"""Configure all tiles with the maximum size, 64 bytes per row, in the format that the processor's manual describes."""

release_tiles = _instruction("tilerelease", 0)
"""Release all tiles."""

load_tile = _instruction("tileloadd64", 1, "ptr", "i64")
"""Load a tile from memory at an address, where rows are this many bytes apart."""

store_tile = _instruction("tilestored64", 1, "ptr", "i64")
"""Store a tile in memory at an address, where rows are this many bytes apart."""

multiply_tiles = _instruction("tdpbf16ps", 3)
"""Add the product of the second and third tiles (bfloat16, in pairs of rows) to the first tile (float32)."""
