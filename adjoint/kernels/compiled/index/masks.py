"""Copy the elements that a mask selects to consecutive memory, and copy them back."""

from __future__ import annotations

from ....codegen.llvm.kernels import *

_CHUNK = 1 << 14
"""The number of elements whose true values are counted first, so that threads know where to write."""


@loops(explicit=True, plain=True, T=BITS)
def compress_chunks(
    out: Pointer[T], x: Pointer[T], mask: Pointer[u8], ends: Pointer[i64], start: Int, stop: Int
) -> None:
    """Write the elements of chunk `c` where the mask is true before `ends[c + 1]`.

    Each element is written, and the next one may overwrite it, because a branch would be mispredicted too often.
    """
    for chunk in range(start, stop):
        place = ends[chunk]
        end = ends[chunk + 1]
        i = chunk * _CHUNK
        while place < end:
            out[place] = x[i]
            place += i64(mask[i])
            i += 1


@loops(explicit=True, plain=True, T=BITS)
def expand_chunks(
    out: Pointer[T], source: Pointer[T], mask: Pointer[u8], ends: Pointer[i64], n: Int, total: Int, KEEP: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Write elements of the source where the mask is true. Elsewhere write zero, or keep the content if `KEEP`."""
    for chunk in range(start, stop):
        place = ends[chunk]
        for i in range(chunk * _CHUNK, minimum(n, (chunk + 1) * _CHUNK)):
            value = source[minimum(place, total - 1)]
            out[i] = value if mask[i] != 0 else (out[i] if KEEP else T(0))
            place += i64(mask[i])


@loops(plain=True)
def find_chunks(
    out: Pointer[i64], mask: Pointer[u8], ends: Pointer[i64], columns: Int, total: Int, start: Int, stop: Int
) -> None:
    """Return the row and the column of each true element of a mask, in row-major order."""
    for chunk in range(start, stop):
        place = ends[chunk]
        end = ends[chunk + 1]
        i = chunk * _CHUNK
        row = i // columns
        column = i - row * columns
        while place < end:
            out[place] = row
            out[total + place] = column
            place += i64(mask[i])
            i += 1
            column += 1
            if column == columns:
                column = 0
                row += 1


def nonzero(x: ndarray) -> Any:
    """Return the indices of the nonzero elements, with one row for each element."""
    if not x.ndim or not x.flags.c_contiguous or not x.size:
        return NotImplemented
    mask = x if x.dtype.kind == "b" else x != 0
    ends = _ends(mask.reshape(-1))
    total = int(ends[-1])
    places = numpy.empty((max(x.ndim, 2), total), numpy.int64)
    find_chunks.run(len(ends) - 1, _CHUNK * 9, places[-2:], mask, ends, x.shape[-1], total)
    for dim in range(x.ndim - 2, 0, -1):  # the rows of all leading dimensions have been counted together
        numpy.floor_divide(places[dim], x.shape[dim], places[dim - 1])
        places[dim] -= places[dim - 1] * x.shape[dim]
    return places[-x.ndim :].T


def _ends(mask: ndarray) -> ndarray:
    """Return the number of true elements of a flat mask before each chunk, and the total number."""
    whole = mask.size // _CHUNK
    ends = numpy.zeros(whole + 2, numpy.int64)
    numpy.add.reduce(mask[: whole * _CHUNK].reshape(whole, _CHUNK), 1, numpy.int64, out=ends[1:-1])
    ends[-1] = numpy.count_nonzero(mask[whole * _CHUNK :])
    return ends.cumsum()


def select(x: ndarray, mask: ndarray) -> Any:
    """Return the elements of `x` where a mask of its shape is true."""
    if BITS(x.dtype) is None or x.shape != mask.shape or not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return NotImplemented
    ends = _ends(mask.reshape(-1))
    out = numpy.empty(int(ends[-1]), x.dtype)
    return compress_chunks.run(len(ends) - 1, _CHUNK * (2 * x.itemsize + 1), out, x, mask, ends)


def place(x: ndarray | None, mask: ndarray, source: ndarray) -> Any:
    """Write elements of `source`, which has enough, to `x` (or zeros, if it is missing) where the mask is true."""
    arrays = (mask, source) if x is None else (x, mask, source)
    if BITS(source.dtype) is None or not source.size or not all(array.flags.c_contiguous for array in arrays):
        return NotImplemented
    if x is not None and x.shape != mask.shape:
        return NotImplemented
    ends = _ends(mask.reshape(-1))
    out = numpy.empty(mask.shape, source.dtype) if x is None else x
    return expand_chunks.run(
        len(ends) - 1, _CHUNK * (2 * source.itemsize + 1),
        out, source, mask, ends, mask.size, source.size, KEEP=x is not None,
    )  # fmt: skip
