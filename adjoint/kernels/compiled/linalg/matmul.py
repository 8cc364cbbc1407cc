"""What surrounds products of matrices by BLAS."""

from __future__ import annotations

from typing import Any

import numpy

from ....codegen.llvm.language import Int, Pointer, T, address, f32, f64, loops, vectorized
from ....codegen.llvm.launch import launch

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}


@loops
def add_to_rows(result: Pointer[T], bias: Pointer[T], width: Int, start: Int, stop: Int) -> None:
    """Add a vector to rows `start` to `stop`."""
    for i in range(start, stop):
        row = result + i * width
        for j in vectorized(width):
            row[j] += bias[j]


def add_bias(result: Array, bias: Array) -> Any:
    """`kernels.linalg.matmul.add_bias`."""
    kind = _TYPES.get(result.dtype.char)
    if kind is None or not result.flags.c_contiguous or bias.strides != (bias.itemsize,):
        return NotImplemented
    rows, width = result.shape
    launch(
        add_to_rows.compiled(T=kind), rows, width * result.itemsize, address(result), address(bias), width
    )  # fmt: skip
    return result
