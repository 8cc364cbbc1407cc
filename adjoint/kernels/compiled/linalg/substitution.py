"""Solve blocks of triangular systems of real numbers, for factors that are computed by block rows.

A block row is solved in strips of a few vectors, which stay in the first-level cache.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *

Array = numpy.ndarray[Any, Any]

BLOCK = 64
"""The number of rows that are solved or factored together."""

VECTORS = 4
"""The number of vectors in a row of a strip."""

TYPES = {"f": f32, "d": f64}


@loops
def read_strip(
    strip: Pointer[T], r: Pointer[T], update: Pointer[T], stride: Int, step: Int, rows: Int, masks: list[Any], updated: Int,
    W: Static, V: Static,
) -> None:  # fmt: skip
    """Read rows, subtract the rows of the update (`step` apart), and fill the strip with zeros."""
    for row in range(rows):
        for COLUMN in unrolled(V):
            line = load(r + (row * stride + COLUMN * W), W, masks[COLUMN])
            if updated != 0:
                line = line - load(update + (row * step + COLUMN * W), W, masks[COLUMN])
            store(strip + (row * V + COLUMN) * W, line)


@loops
def eliminate(strip: Pointer[T], row: Int, factors: Pointer[T], step: Int, W: Static, V: Static) -> Any:
    """Subtract the rows above from the vectors of a row in a strip, and multiply each vector by its factor."""
    total = local(vector(T, W), V)
    for COLUMN in unrolled(V):
        total[COLUMN] = load(strip + (row * V + COLUMN) * W, W)
    for above in range(row):
        factor = broadcast(-factors[above * step], W)
        for COLUMN in unrolled(V):
            total[COLUMN] = fma(factor, load(strip + (above * V + COLUMN) * W, W), total[COLUMN])
    return [total[COLUMN] for COLUMN in unrolled(V)]


@loops(plain=True)
def solve_strips(
    r: Pointer[T], square: Pointer[T], inverse: Pointer[T], update: Pointer[T], stride: Int, step: Int, rows: Int, width: Int,
    updated: Int, W: Static, V: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Solve strips of rows with `square.T`, whose inverse diagonal is given, in place, after subtracting an update."""
    strip = local(T, BLOCK * V * W)
    for number in range(start, stop):
        first = number * (V * W)
        masks = [first_lanes(width - first - COLUMN * W, W) for COLUMN in unrolled(V)]
        read_strip(strip, r + first, update + first, stride, step, rows, masks, updated, W, V)
        for row in range(rows):
            sums = eliminate(strip, row, square + row, BLOCK, W, V)
            for COLUMN in unrolled(V):
                solved = sums[COLUMN] * broadcast(inverse[row], W)
                store(strip + (row * V + COLUMN) * W, solved)
                store(r + (row * stride + first + COLUMN * W), solved, masks[COLUMN])


def solve_block(
    kind: Any, width: int, r: int, square: Array, inverse: Array, update: int, stride: int, step: int, rows: int, columns: int,
    updated: int,
) -> None:  # fmt: skip
    """Solve a block row of `rows` rows and `columns` columns at the address `r`."""
    vectors = 1 if columns <= width else VECTORS
    strip = vectors * width
    launch(
        solve_strips.compiled(T=kind, W=width, V=vectors), -(-columns // strip), rows * rows * strip // 4,
        r, address(square), address(inverse), update, stride, step, rows, columns, updated,
    )  # fmt: skip
