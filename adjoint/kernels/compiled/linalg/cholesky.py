"""Cholesky factors of real matrices by block rows.

BLAS computes the updates as products, and compiled loops factor the blocks.

The factor `R`, for which `R.T @ R` is the matrix, is computed row by row, so all vectors run along rows. Read by
columns, it is the lower factor. One product updates a block row with all rows above it. Then its first square is
factored, and the part to the right of the square is solved in strips of a few vectors, which stay in the first-level
cache.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...memory.copying import contiguous

Array = numpy.ndarray[Any, Any]

BLOCK = 64
"""The number of rows that are solved or factored together."""

VECTORS = 4
"""The number of vectors in a row of a strip."""


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


@loops(plain=True, noalias=False)
def factor_squares(
    r: Pointer[T], squares: Pointer[T], inverses: Pointer[T], update: Pointer[T], failed: Pointer[i64], stride: Int, side: Int,
    matrix: Int, rows: Int, before: Int, width: Int, W: Static, V: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Factor the squares of `rows` rows at column `before` of some matrices, and write zeros to the left of their diagonals.

    `squares` receives the factors again, in rows of `side` elements, and may be the memory of the squares itself. `inverses`
    receives the inverses of their diagonals. `failed`: the matrices in which an element of the diagonal is not positive.
    """
    strip = local(T, BLOCK * V * W)
    for number in range(start, stop):
        block = r + number * matrix
        square = squares + number * matrix
        inverse = inverses + number * BLOCK
        for first in range(0, rows, V * W):
            columns = minimum(rows - first, V * W)
            masks = [first_lanes(columns - COLUMN * W, W) for COLUMN in unrolled(V)]
            read_strip(
                strip, block + (before + first), update + first, stride, width, first + columns, masks, before, W, V
            )
            for row in range(rows):
                target = block + (row * stride + before + first)
                if row < first + columns:
                    line = strip + row * (V * W)
                    inside = row >= first
                    factors = strip + (row - first) if inside else square + row
                    sums = eliminate(strip, row, factors, i64(V * W) if inside else side, W, V)
                    if inside:
                        for COLUMN in unrolled(V):
                            store(line + COLUMN * W, sums[COLUMN])
                        pivot = line[row - first]
                        if not (pivot > T(0)):
                            failed[number] = 1
                        inverse[row] = T(1) / sqrt(pivot)
                    for COLUMN in unrolled(V):
                        place = lanes(i64, W) + broadcast(first + COLUMN * W, W)
                        scaled = where(place >= broadcast(row, W), sums[COLUMN] * broadcast(inverse[row], W), T(0))
                        store(line + COLUMN * W, scaled)
                        store(square + (row * side + first + COLUMN * W), scaled, masks[COLUMN])
                        store(target + COLUMN * W, scaled, masks[COLUMN])
                else:
                    for COLUMN in unrolled(V):
                        store(target + COLUMN * W, vector(T, W)(0), masks[COLUMN])
        for row in range(rows):
            for j in range(0, before, W):
                store(block + (row * stride + j), vector(T, W)(0))  # `before` is a multiple of BLOCK


def cholesky(a: Array, upper: bool) -> Any:
    """Compute `kernels.linalg.decompositions.cholesky` of positive-definite matrices."""
    kind, size = FLOATS(a.dtype), a.shape[-1]
    if kind is None or not a.size:
        return NotImplemented
    source = a if upper else a.mT
    r = contiguous(source)
    if r is a or r.base is not None:
        r = r.copy()
    matrices = r.reshape(-1, size, size)
    width = HOST.vector_bytes // a.itemsize
    failed = numpy.zeros(len(matrices), numpy.int64)
    if size <= BLOCK:
        inverses = numpy.empty((len(matrices), BLOCK), a.dtype)
        launch(
            factor_squares.compiled(T=kind, W=width, V=min(-(-size // width), VECTORS)), len(matrices),
            size * size * (a.itemsize + size // 4),
            address(r), address(r), address(inverses), address(r), address(failed), size, size, size * size, size, 0, size,
        )  # fmt: skip
    else:
        for number, matrix in enumerate(matrices):
            _factor_large(matrix, failed[number:], kind, width)
    if failed.any():
        return NotImplemented
    return contiguous(r.mT).mT if upper else r.mT


def _factor_large(r: Array, failed: Array, kind: Any, width: int) -> None:
    """Factor one matrix in place, block row by block row. Set `failed[0]` if it is not positive-definite."""
    size = len(r)
    square, inverse = numpy.empty((2, BLOCK * BLOCK), r.dtype)
    products = numpy.empty(BLOCK * size, r.dtype)
    for before in range(0, size, BLOCK):
        rows, columns = min(BLOCK, size - before), size - before
        if before:
            above = r[:before, before:]
            numpy.matmul(above[:, :rows].T, above, out=products[: rows * columns].reshape(rows, columns))
        block = address(r) + before * size * r.itemsize
        arrays = address(square), address(inverse), address(products)
        factor_squares.compiled(T=kind, W=width, V=VECTORS)(
            block, *arrays, address(failed), size, BLOCK, 0, rows, before, columns, 0, 1
        )
        if failed[0]:
            return
        solve_block(
            kind, width, block + (before + rows) * r.itemsize, square, inverse, address(products) + rows * r.itemsize,
            size, columns, rows, columns - rows, before,
        )  # fmt: skip
