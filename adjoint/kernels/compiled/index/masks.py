"""Elements where a mask is true: taken out one behind another, and put back."""

from __future__ import annotations

from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import Int, Pointer, Static, T, address, i64, loops, minimum, u8
from ....codegen.llvm.launch import launch
from ..memory.copying import WORDS

_CHUNK = 1 << 14
"""Elements whose true ones are counted first, so that threads know where to write."""


@loops
def compress_chunks(
    out: Pointer[T], x: Pointer[T], mask: Pointer[u8], ends: Pointer[i64], start: Int, stop: Int
) -> None:
    """The elements of chunks where the mask is true; those of chunk `c` end before `ends[c + 1]`.

    Each element is written, and written over by the next if it is not wanted: a branch would be guessed wrong too often.
    """
    for chunk in range(start, stop):
        place = ends[chunk]
        end = ends[chunk + 1]
        i = chunk * _CHUNK
        while place < end:
            out[place] = x[i]
            place += i64(mask[i])
            i += 1


@loops
def expand_chunks(
    out: Pointer[T], source: Pointer[T], mask: Pointer[u8], ends: Pointer[i64], n: Int, total: Int, KEEP: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Elements of the source where the mask is true, elsewhere zero, or what was there if `KEEP`."""
    for chunk in range(start, stop):
        place = ends[chunk]
        for i in range(chunk * _CHUNK, minimum(n, (chunk + 1) * _CHUNK)):
            value = source[minimum(place, total - 1)]
            out[i] = value if mask[i] != 0 else (out[i] if KEEP else T(0))
            place += i64(mask[i])


def _ends(mask: ndarray) -> ndarray:
    """How many elements of a flat mask are true before each chunk, and in all."""
    whole = mask.size // _CHUNK
    ends = numpy.zeros(whole + 2, numpy.int64)
    numpy.add.reduce(mask[: whole * _CHUNK].reshape(whole, _CHUNK), 1, numpy.int64, out=ends[1:-1])
    ends[-1] = numpy.count_nonzero(mask[whole * _CHUNK :])
    return ends.cumsum()


def select(x: ndarray, mask: ndarray) -> Any:
    """The elements of `x` where a mask of its shape is true. NotImplemented if there is no loop for it."""
    word = WORDS.get(x.itemsize)
    if word is None or x.shape != mask.shape or not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return NotImplemented
    ends = _ends(mask.reshape(-1))
    out = numpy.empty(int(ends[-1]), x.dtype)
    function = compress_chunks.compiled(T=word)
    launch(
        function, len(ends) - 1, _CHUNK * (2 * x.itemsize + 1), address(out), address(x), address(mask), address(ends)
    )
    return out


def place(x: ndarray | None, mask: ndarray, source: ndarray) -> Any:
    """Write the elements of `source`, in order, to `x` where the mask is true; without `x`, to zeros.

    There are enough of them. NotImplemented if there is no loop for it, and then nothing has been written.
    """
    word = WORDS.get(source.itemsize)
    arrays = (mask, source) if x is None else (x, mask, source)
    if word is None or not source.size or not all(array.flags.c_contiguous for array in arrays):
        return NotImplemented
    if x is not None and (x.shape != mask.shape or x.dtype != source.dtype):
        return NotImplemented
    ends = _ends(mask.reshape(-1))
    out = numpy.empty(mask.shape, source.dtype) if x is None else x
    function = expand_chunks.compiled(T=word, KEEP=x is not None)
    launch(
        function, len(ends) - 1, _CHUNK * (2 * source.itemsize + 1),
        address(out), address(source), address(mask), address(ends), mask.size, source.size,
    )  # fmt: skip
    return out
