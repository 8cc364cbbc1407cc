"""Join arrays along one dimension. Several threads write the result from its first element to its last.

The triangles of matrices are written row by row.
"""

from __future__ import annotations

import itertools

from ....codegen.llvm.calls import addresses
from ....codegen.llvm.kernels import *
from ..memory.copying import WORDS, copy_row


@loops(plain=True)
def join_rows(
    out: Pointer[T], table: Pointer[Pointer[u8]], ends: Pointer[i64], parts: Int, W: Static, start: Int, stop: Int
) -> None:
    """Write the elements from `start` to `stop` of rows.

    Each row consists of a row of each part, which ends at `ends[part + 1]`.
    """
    total = ends[parts]
    row = start // total
    column = start - row * total
    part = i64(0)
    while ends[part + 1] <= column:
        part += 1
    position = start + 0
    while position < stop:
        length = ends[part + 1] - ends[part]
        count = minimum(stop - position, ends[part + 1] - column)
        source = cast_pointer(table[part], T) + (row * length + column - ends[part])
        copy_row(out + position, source, count, 1, 1, "rows", W)
        position += count
        column += count
        part += 1
        if part == parts:
            part = i64(0)
            column = i64(0)
            row += 1


def joined(arrays: list[ndarray], axis: int) -> Any:
    """Return the arrays joined along `axis`.

    They are equal in the other dimensions. Return NotImplemented if there is no loop for them.
    """
    first = arrays[0]
    word = WORDS.get(first.itemsize)
    if word is None or not all(array.flags.c_contiguous for array in arrays):
        return NotImplemented
    sizes = [array.shape[axis] for array in arrays]
    result = numpy.empty((*first.shape[:axis], sum(sizes), *first.shape[axis + 1 :]), first.dtype)
    if result.size:
        inner = math.prod(first.shape[axis + 1 :])
        ends = numpy.array([0, *itertools.accumulate([size * inner for size in sizes])])
        launch(
            join_rows.compiled(T=word, W=HOST.vector_bytes // first.itemsize), result.size, 2 * first.itemsize,
            address(result), address(addresses(arrays)), address(ends), len(arrays),
        )  # fmt: skip
    return result


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
