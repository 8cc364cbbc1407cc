"""The sums of what blocks of rows have added up."""

from __future__ import annotations

from typing import Any

import numpy

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import Int, Pointer, Static, T, address, f32, f64, load, loops, store, vector
from ....codegen.llvm.launch import launch
from ..linalg.tiles import first_lanes

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}


@loops(explicit=True, plain=True)
def sum_blocks(
    out: Pointer[T], sums: Pointer[T], blocks: Int, distance: Int, length: Int, start: Int, stop: Int, W: Static
) -> None:
    """Vectors `start` to `stop` of the sum, in float64, of rows that are `distance` apart."""
    for j in range(start * W, stop * W, W):
        there = first_lanes(length - j, W)
        total = vector(f64, W)(0)
        for block in range(blocks):
            total += vector(f64, W)(load(sums + (block * distance + j), W, there))
        store(out + j, vector(T, W)(total), there)


def add_blocks(sums: Array, order: int, out: Array) -> Any:
    """Write the sum over the first dimension of `sums[:, order]` to `out`; `sums` has no gaps."""
    kind = _TYPES.get(out.dtype.char)
    if kind is None or out.dtype is not sums.dtype:
        return NotImplemented
    blocks, columns, length = sums.shape
    width = HOST.vector_bytes // 8
    launch(
        sum_blocks.compiled(T=kind, W=width), -(-length // width), blocks * width * out.itemsize, address(out),
        address(sums) + order * length * out.itemsize, blocks, columns * length, length,
    )  # fmt: skip
    return out
