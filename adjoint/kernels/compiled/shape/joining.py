"""The triangles of matrices, which are written row by row."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ..memory.copying import WORDS, copy_row


@loops
def copy_triangles(
    out: Pointer[T],
    x: Pointer[T],
    rows: Int,
    columns: Int,
    diagonal: Int,
    UPPER: Static,
    W: Static,
    start: Int,
    stop: Int,
) -> None:
    """Copy rows of matrices with zeros below the diagonal (above it if not `UPPER`)."""
    for row in range(start, stop):
        edge = minimum(maximum(row % rows + diagonal + (0 if UPPER else 1), 0), columns)
        target = out + row * columns
        source = x + row * columns
        if UPPER:
            copy_row(target + edge, source + edge, columns - edge, 1, 1, "rows", W)
        else:
            copy_row(target, source, edge, 1, 1, "rows", W)
        for i in vectorized(0 if UPPER else edge, edge if UPPER else columns):
            target[i] = T(0)


def triangle(x: ndarray, diagonal: int, upper: bool) -> Any:
    """Return the upper or lower triangle of the last two dimensions.

    Return NotImplemented if there is no loop for the dtype.
    """
    if x.itemsize not in WORDS or not x.flags.c_contiguous or not x.size or abs(diagonal) > 1 << 40:
        return NotImplemented
    rows, columns = x.shape[-2:]
    out = numpy.empty(x.shape, x.dtype)
    function = copy_triangles.compiled(T=WORDS[x.itemsize], UPPER=upper, W=HOST.vector_bytes // x.itemsize)
    lines = math.prod(x.shape[:-1])
    launch(function, lines, 2 * columns * x.itemsize, address(out), address(x), rows, columns, diagonal)
    return out
