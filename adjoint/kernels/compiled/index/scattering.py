"""Writing and adding where indices point. What goes to one place is added in the order of the indices, whatever the threads.

Each thread has a part of the places to itself: some of the matrices, some of the columns, or a range of the rows, of which
it finds its own among all indices.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import I, Int, Pointer, Static, T, address, i64, load, loops, store, type_of
from ....codegen.llvm.launch import PARALLEL_BYTES
from ...runtime.parallel import get_num_threads, parallel_rows
from ..memory.copying import WORDS

_PARTS = 64
"""From so many columns on, threads share them."""


@loops
def put_element(target: Pointer[T], value: T, ADD: Static) -> None:
    """Write a value to a place, or add it there."""
    target[0] = target[0] + value if ADD else value


@loops
def scatter_elements(
    target: Pointer[T], index: Pointer[I], source: Pointer[T], outer: Int, count: Int, inner: Int, length: Int, source_step: Int,
    ALONG: Static, SHARED: Static, ADD: Static, SPLIT: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """`target[o, index[o, k, i], i] = source[o, k, i]`, or `+=`; `source_step` is 0 where one number is written.

    `ALONG`: `inner` is 1. `SHARED`: `index[k]` is for all `o` and `i`.
    `SPLIT`: what `start` and `stop` limit: "outer", "inner", or the "rows" that are written to.
    """
    for o in range(start if SPLIT == "outer" else 0, stop if SPLIT == "outer" else outer):
        first = target + o * length * inner
        if ALONG:
            line = o * count
            for k in range(count):
                place = i64(index[k if SHARED else line + k])
                if SPLIT != "rows" or (place >= start and place < stop):
                    put_element(first + place, source[(line + k) * source_step], ADD)
        else:
            for k in range(count):
                line = (o * count + k) * inner
                for i in range(start if SPLIT == "inner" else 0, stop if SPLIT == "inner" else inner):
                    place = i64(index[k if SHARED else line + i])
                    if SPLIT != "rows" or (place >= start and place < stop):
                        put_element(first + (place * inner + i), source[(line + i) * source_step], ADD)


@loops
def add_row(target: Pointer[T], source: Pointer[T], n: Int, W: Static) -> None:
    """Add `n` elements."""
    i = 0
    while i + W <= n:
        store(target + i, load(target + i, W) + load(source + i, W))
        i += W
    while i < n:
        target[i] = target[i] + source[i]
        i += 1


@loops
def add_rows(
    target: Pointer[T], index: Pointer[i64], rows: Pointer[T], count: Int, width: Int, SPLIT: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """`target[index[k]] += rows[k]`; `start` and `stop` limit the "columns", or the "rows" that are added to."""
    for k in range(count):
        place = index[k]
        if SPLIT == "columns":
            add_row(target + (place * width + start), rows + (k * width + start), stop - start, W)
        elif place >= start and place < stop:
            add_row(target + place * width, rows + k * width, width, W)


def _share(function: Any, n: int, work: int, *arguments: Any) -> None:
    """Call `function(*arguments, start, stop)` for as many ranges of `range(n)` as there are threads."""
    if work < PARALLEL_BYTES or get_num_threads() == 1:
        function(*arguments, 0, n)
        return
    # Whole lines of the cache belong to one thread.
    part = -(-n // get_num_threads() // 16) * 16
    parallel_rows(
        lambda start, stop: function(*arguments, start, stop),
        n,
        max(1, work // n),
        tile_rows=max(part, 1),
        parallel_bytes=PARALLEL_BYTES,
    )


@functools.lru_cache(256)
def _scattering(kind: Any, index: Any, along: bool, shared: bool, add: bool, split: str) -> Any:
    return scatter_elements.compiled(T=kind, I=type_of(index), ALONG=along, SHARED=shared, ADD=add, SPLIT=split)


@functools.lru_cache(64)
def _adding(kind: Any, split: str, width: int) -> Any:
    return add_rows.compiled(T=kind, SPLIT=split, W=width)


def scatter(x: ndarray, dim: int, index: ndarray, source: ndarray, add: bool) -> Any:
    """Write `source` (an array like `index`, or of no dimensions) to `x` along `dim`, or add it; indices are in bounds.

    An `index` of one dimension names slices. NotImplemented if there is no loop for it, and then nothing has been written.
    """
    kind = type_of(x.dtype) if add else WORDS.get(x.itemsize)
    shared = index.ndim == 1 < x.ndim
    if kind is None or (add and kind.storage_only) or (add and x.dtype.kind == "b") or not x.ndim or not index.size:
        return NotImplemented
    shape = source.shape if shared else index.shape
    alike = len(shape) == x.ndim and x.shape[:dim] == shape[:dim] and x.shape[dim + 1 :] == shape[dim + 1 :]
    if (
        not alike
        or numpy.may_share_memory(x, source)
        or not all(array.flags.c_contiguous for array in (x, index, source))
    ):
        return NotImplemented
    outer, inner, length = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :]), x.shape[dim]
    threads = get_num_threads()
    split, n = "rows", length
    if outer >= 4 * threads:
        split, n = "outer", outer
    elif inner >= _PARTS * threads:
        split, n = "inner", inner
    function = _scattering(kind, index.dtype, inner == 1, shared, add, split)
    _share(
        function, n, outer * shape[dim] * inner * (x.itemsize + index.itemsize),
        address(x), address(index), address(source), outer, shape[dim], inner, length, int(source.size > 1),
    )  # fmt: skip
    return x


def add_rows_at(target: ndarray, index: ndarray, rows: ndarray) -> Any:
    """`target[index[k]] += rows[k]` for matrices; indices are in bounds. NotImplemented if there is no loop for it."""
    kind = type_of(target.dtype)
    if kind is None or kind.storage_only or target.dtype.kind == "b" or rows.dtype != target.dtype or not rows.size:
        return NotImplemented
    if target.shape[1] == 1:
        return scatter(target.reshape(-1), 0, index, rows.reshape(-1), True)
    if index.dtype.char != "l" or not all(a.flags.c_contiguous for a in (target, index, rows)):
        return NotImplemented
    length, width = target.shape
    split, n = ("columns", width) if width >= 16 * get_num_threads() else ("rows", length)
    function = _adding(kind, split, max(2, HOST.vector_bytes // target.itemsize))
    _share(
        function, n, rows.size * 2 * rows.itemsize,
        address(target), address(index), address(rows), len(index), width,
    )  # fmt: skip
    return target
