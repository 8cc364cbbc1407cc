"""Products of matrices, and of stacks of matrices, by BLAS on the threads of compiled kernels.

A product is cut into parts, by rows and by columns of the result. BLAS computes each on the thread that takes it. A bias, or
what the product is added to, is there before, and BLAS adds to it.
"""

from __future__ import annotations

import functools
from array import array
from typing import Any

import numpy

from ....codegen.llvm.atomics import call_address
from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    address,
    as_pointer,
    f32,
    f64,
    i32,
    i64,
    load,
    loops,
    minimum,
    store,
)
from ....codegen.llvm.workers import run_ranges, workers
from ...runtime.parallel import get_num_threads
from .blas import BLAS, enter_alone, gemm, leave_alone

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}

_PARALLEL = 1 << 18
"""From so many multiplications on, threads share a product."""

_UNIT = 16
"""Parts have multiples of so many rows and columns: BLAS computes as many at a time."""

ROW_MAJOR, PLAIN, TURNED = 101, 111, 112
"""CBLAS's names: matrices lie row by row, and are taken as they are or transposed."""

FRESH, OFFSET, ADDED = range(3)
"""What a product begins with: nothing, a vector in each row, or the result as it is."""

(
    RESULT, A, B, VECTOR, RESULT_STEP, A_STEP, B_STEP, RESULT_ROW, A_ROW, B_ROW, A_FORM, B_FORM, ROWS, DEPTH, COLUMNS, TALL,
    WIDE, ACROSS, PARTS, BEGINS,
) = range(20)  # fmt: skip
"""The table: where the arrays are; how far apart matrices of a stack and rows of a matrix are, in elements; how the factors lie;
sizes; the rows and columns of a part, how many parts stand side by side, how many a matrix has; what the product begins with."""


@loops(plain=True)
def fill_rows(rows: Pointer[T], distance: Int, vector: Pointer[T], tall: Int, wide: Int, W: Static) -> None:
    """The vector in each row."""
    whole = wide // W * W
    for i in range(tall):
        row = rows + i * distance
        for j in range(0, whole, W):
            store(row + j, load(vector + j, W))
        for j in range(whole, wide):
            row[j] = vector[j]


@loops(noalias=False, plain=True)
def multiply_parts(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, GEMM: Static) -> None:
    """Some parts of the products of two stacks of matrices."""
    rows, columns, across, parts = table[ROWS], table[COLUMNS], table[ACROSS], table[PARTS]
    result_row, a_row, b_row = table[RESULT_ROW], table[A_ROW], table[B_ROW]
    for index in range(start, stop):
        matrix = index // parts
        top = index % parts // across * table[TALL]
        left = index % parts % across * table[WIDE]
        tall, wide = minimum(table[TALL], rows - top), minimum(table[WIDE], columns - left)
        result = as_pointer(table[RESULT], T) + (matrix * table[RESULT_STEP] + top * result_row + left)
        a = as_pointer(table[A], T) + (matrix * table[A_STEP] + top * (a_row if table[A_FORM] == PLAIN else 1))
        b = as_pointer(table[B], T) + (matrix * table[B_STEP] + left * (1 if table[B_FORM] == PLAIN else b_row))
        if table[BEGINS] == OFFSET:
            fill_rows(result, result_row, as_pointer(table[VECTOR], T) + left, tall, wide, W)
        beta = T(0) if table[BEGINS] == FRESH else T(1)
        form_a, form_b = i32(table[A_FORM]), i32(table[B_FORM])
        GEMM(
            i32(ROW_MAJOR), form_a, form_b, tall, wide, table[DEPTH], T(1), a, a_row, b, b_row, beta, result, result_row
        )  # fmt: skip


@loops(noalias=False, plain=True)
def multiply_alone(
    state: Pointer[i64], function: Int, table: Int, count: Int, threads: Int, shared: Pointer[i64]
) -> None:
    """All parts, while OpenBLAS's own threads rest."""
    enter_alone(state)
    if threads > 1:
        run_ranges(shared, function, table, count, i64(1), threads)
    else:
        call_address(function, table, i64(0), count)
    leave_alone(state)


@functools.lru_cache(maxsize=1024)
def _plan(count: int, rows: int, depth: int, columns: int, char: str, threads: int) -> tuple[Any, ...]:
    """The address of the kernel; rows and columns of a part, and how many stand side by side; parts in all; threads."""
    if count * rows * depth * columns < _PARALLEL:
        threads = 1
    split = 1 if count >= 4 * threads else threads
    # Every part reads its rows of the one factor and its columns of the other: parts as square as can be read least.
    down, across = min(
        ((split // across, across) for across in range(1, split + 1) if split % across == 0),
        key=lambda split: rows * split[1] + columns * split[0],
    )
    tall, wide = _rounded(-(-rows // down)), _rounded(-(-columns // across))
    down, across = -(-rows // tall), -(-columns // wide)
    kind = _TYPES[char]
    function = multiply_parts.compiled(T=kind, W=HOST.vector_bytes * 8 // kind.bits, GEMM=gemm(kind))
    return (
        function.code.address,
        (rows, depth, columns, tall, wide, across, down * across),
        count * down * across,
        threads,
    )


def _rounded(number: int) -> int:
    return -(-number // _UNIT) * _UNIT


def product(a: Array, b: Array, added: Array | None = None, result: Array | None = None) -> Any:
    """`a @ b`, of matrices or of stacks of as many; plus `added`, a vector, in each row; or added to `result`."""
    kind = a.dtype
    if kind.char not in _TYPES or b.dtype is not kind or a.ndim != b.ndim:
        return NotImplemented
    *stack, rows, depth = a.shape
    columns = b.shape[-1]
    count = stack[0] if stack else 1
    if min(count, rows, depth, columns) == 0:
        return NotImplemented
    a, a_step, a_row, a_form = _factor(a)
    b, b_step, b_row, b_form = _factor(b)
    begins = FRESH if result is None else ADDED
    if added is not None:
        if added.dtype is not kind or added.strides != (kind.itemsize,) or result is not None:
            return NotImplemented
        begins = OFFSET
    if result is None:
        result = numpy.empty((*stack, rows, columns), kind)
        result_step, result_row = rows * columns, columns
    else:
        _, result_step, result_row, form = _factor(result, copy=False)
        if form != PLAIN:
            return NotImplemented
    threads = get_num_threads()
    function, sizes, parts, threads = _plan(count, rows, depth, columns, kind.char, threads)
    table = array(
        "q",
        (
            address(result), address(a), address(b), 0 if added is None else address(added), result_step, a_step, b_step,
            result_row, a_row, b_row, a_form, b_form, *sizes, begins,
        ),
    )  # fmt: skip
    multiply_alone.compiled().call(
        BLAS.state, function, table.buffer_info()[0], parts, threads, workers().ready(threads)
    )
    return result


def _factor(matrices: Array, copy: bool = True) -> tuple[Array, int, int, int]:
    """An array, or its copy, that BLAS can read; how far apart its matrices and rows are, in elements; how it lies."""
    item = matrices.itemsize
    rows, columns = matrices.shape[-2:]
    down, right = matrices.strides[-2:]
    step = matrices.strides[0] if matrices.ndim == 3 else 0
    if step % item == 0 and matrices.flags.aligned:
        step //= item
        if (right == item or columns == 1) and (down >= columns * item or rows == 1) and down % item == 0:
            return matrices, step, max(down // item, columns), PLAIN
        if (down == item or rows == 1) and (right >= rows * item or columns == 1) and right % item == 0:
            return matrices, step, max(right // item, rows), TURNED
    if not copy:
        return matrices, 0, 0, 0
    return numpy.ascontiguousarray(matrices), rows * columns, columns, PLAIN
