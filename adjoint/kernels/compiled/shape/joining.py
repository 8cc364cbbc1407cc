"""Arrays joined along one dimension: the result is written from its first element to its last, by several threads."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.calls import addresses
from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import Int, Pointer, Static, T, address, cast_pointer, i64, loops, minimum, u8
from ....codegen.llvm.launch import launch
from ..memory.copying import WORDS, copy_row


@loops(plain=True)
def join_rows(
    out: Pointer[T], table: Pointer[Pointer[u8]], ends: Pointer[i64], parts: Int, W: Static, start: Int, stop: Int
) -> None:
    """The elements from `start` to `stop` of rows that consist of a row of each part, which end at `ends[part + 1]`."""
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
    """The arrays one after the other along `axis`; else they are alike. NotImplemented if there is no loop for them."""
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
            _joining(word, HOST.vector_bytes // first.itemsize), result.size, 2 * first.itemsize,
            address(result), address(addresses(arrays)), address(ends), len(arrays),
        )  # fmt: skip
    return result


@functools.lru_cache(4)
def _joining(word: Any, width: int) -> Any:
    return join_rows.compiled(T=word, W=width)
