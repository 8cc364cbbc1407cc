"""The columns of a panel of matrices eliminated one after the other, with partial pivoting."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ....codegen.llvm.language import Int, Pointer, T, address, fabs, i32, loops, minimum, vectorized
from ....codegen.llvm.launch import launch
from .substitution import TYPES

Array = numpy.ndarray[Any, Any]


@loops
def factor(
    work: Pointer[T], pivots: Pointer[i32], rows: Int, columns: Int, stride: Int, matrix_stride: Int, pivot_stride: Int,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Factor panels `start` to `stop`, of `columns` columns, in place; `pivots` become the rows exchanged, from 0 on."""
    for number in range(start, stop):
        panel = work + number * matrix_stride
        for k in range(minimum(rows, columns)):
            chosen = k
            most = fabs(panel[k * stride + k])
            for i in range(k + 1, rows):
                size = fabs(panel[i * stride + k])
                if (size > most) | ((size != size) & (most == most)):
                    most = size
                    chosen = i
            pivots[number * pivot_stride + k] = i32(chosen)
            top = panel + k * stride
            other = panel + chosen * stride
            for j in vectorized(columns):
                kept = top[j]
                top[j] = other[j]
                other[j] = kept
            pivot = top[k]
            if pivot != 0:
                for i in range(k + 1, rows):
                    row = panel + i * stride
                    share = row[k] / pivot
                    row[k] = share
                    for j in vectorized(columns - k - 1):
                        row[k + 1 + j] = row[k + 1 + j] - share * top[k + 1 + j]


@functools.lru_cache(4)
def _factor(kind: Any) -> Any:
    return factor.compiled(T=kind)


def factor_panel(work: Array, pivots: Array) -> Any:
    """Factor matrices (batch, rows, columns) of narrow columns in place, with their pivots. NotImplemented for complex ones."""
    kind = TYPES.get(work.dtype.char)
    item = work.itemsize
    if kind is None or work.strides[2] != item or pivots.strides[1] != pivots.itemsize:
        return NotImplemented
    batch, rows, columns = work.shape
    strides = work.strides[1] // item, work.strides[0] // item, pivots.strides[0] // pivots.itemsize
    launch(
        _factor(kind), batch, rows * columns * columns * item, address(work), address(pivots), rows, columns, *strides
    )
    return None
