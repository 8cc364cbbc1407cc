"""Products of stacks of small matrices. A vector contains one element of several matrices."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...runtime.costs import NARROW

Array = numpy.ndarray[Any, Any]


@loops
def pack(
    target: Pointer[T], source: Pointer[T], step: Int, row: Int, column: Int, rows: Int, columns: Int, count: Int, W: Static
) -> None:  # fmt: skip
    """Store each element of `count` matrices, which are `step` apart, as one vector."""
    there, places = first_lanes(count, W), lanes(i64, W) * broadcast(step, W)
    for i in range(rows):
        for j in range(columns):
            place = source + (i * row + j * column)
            elements = load(place, W, there) if step == 1 else gather(place, places, there)
            store(target + (i * columns + j) * W, elements)


@loops(noalias=False, explicit=True, T=FLOATS)
def multiply(
    result: Pointer[T], a: Pointer[T], b: Pointer[T], a_step: Int, a_row: Int, a_column: Int, b_step: Int, b_row: Int,
    b_column: Int, rows: Int, depth: Int, columns: Int, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the products of matrices `start` to `stop` of two stacks."""
    left, right, sums = local(T, NARROW * W), local(T, NARROW * W), local(T, W)
    for first in range(start, stop, W):
        count = minimum(stop - first, W)
        pack(left, a + first * a_step, a_step, a_row, a_column, rows, depth, count, W)
        pack(right, b + first * b_step, b_step, b_row, b_column, depth, columns, count, W)
        for i in range(rows):
            for j in range(columns):
                total = vector(T, W)(0)
                for k in range(depth):
                    x, y = load(left + (i * depth + k) * W, W), load(right + (k * columns + j) * W, W)
                    total = fma(x, y, total)
                store(sums, total)
                target = result + ((first * rows + i) * columns + j)
                for matrix in range(count):
                    target[matrix * rows * columns] = sums[matrix]


def product(a: Array, b: Array) -> Any:
    """Return `a @ b` for stacks of matrices of which a pair takes at most `NARROW` multiplications."""
    if a.dtype is not b.dtype or a.dtype.char not in "fd":
        return NotImplemented
    (count, rows, depth), columns, item = a.shape, b.shape[2], a.itemsize
    if any(stride % item for stride in (*a.strides, *b.strides)):
        a, b = a.copy(), b.copy()
    steps = [stride // item for stride in (*a.strides, *b.strides)]
    function = multiply.compiled(T=f32 if item == 4 else f64, W=HOST.vector_bytes // item)
    result = numpy.empty((count, rows, columns), a.dtype)
    work = 8 * (rows * depth + depth * columns + rows * columns) + rows * depth * columns
    launch(function, count, work, result, a, b, *steps, rows, depth, columns)
    return result
