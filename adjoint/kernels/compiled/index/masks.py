"""Copy the elements that a mask selects to consecutive memory."""

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
