"""Compiled pooling over windows that divide the input into a given number, from tables of their bounds.

The plans of the forms in `kernels.nn.pooling`. A single window is left to the reductions, maxima over windows of one
length to `max_pool`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import *
from ....codegen.llvm.launch import launch
from ....codegen.plans import Memory, Plan
from ...nn.windows import Bounds, divided, window_sizes

Sizes = tuple[int, ...]

SIZES = Struct("length:3 count:3")

_COLUMNS = 512
"""The number of columns of an image whose largest elements are found together."""


@loops
def largest_of_columns(
    best: Pointer[T], chosen: Pointer[i32], plane: Pointer[T], sizes: Pointer[i64], bounds: Pointer[i64], rows: Pointer[i64],
    at: Int, end: Int, W: Static,
) -> None:  # fmt: skip
    """For columns `at` to `end` the largest element of some rows, and its index: the first one, or the last NaN."""
    _, length_h, length_w = fields(sizes, SIZES).length
    first = (bounds[0] * length_h + rows[0]) * length_w
    for j in range(at, end, W):
        inside = lanes(i32, W) < i32(end - j)
        value = vector(T, W)(-math.inf)
        line = vector(i32, W)(i32(first))
        for z in range(bounds[0], bounds[1]):
            for y in range(rows[0], rows[1]):
                start = (z * length_h + y) * length_w
                met = load(plane + (start + j), W, inside)
                better = (met > value) | (met != met)
                value = where(better, met, value)
                line = where(better, vector(i32, W)(i32(start)), line)
        store(best + (j - at), value)
        store(chosen + (j - at), line + (lanes(i32, W) + i32(j)))


@loops(explicit=True, plain=True)
def largest(
    values: Pointer[T],
    indices: Pointer[i64],
    x: Pointer[T],
    sizes: Pointer[i64],
    bounds: Pointer[i64],
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """The largest element of each window of planes `start` to `stop` and its index: the first one, or the last NaN."""
    windows = fields(sizes, SIZES)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    rows, columns = bounds + 2 * count_d, bounds + 2 * (count_d + count_h)
    best, chosen = local(T, _COLUMNS), local(i32, _COLUMNS)
    to = start * count_d * count_h * count_w
    for p in range(start, stop):
        plane = x + p * length_d * length_h * length_w
        for i in range(count_d):
            for j in range(count_h):
                known = i64(0)
                begin = i64(0)
                for k in range(count_w):
                    at = columns[2 * k]
                    largest_yet = T(-math.inf)
                    index = i32((bounds[2 * i] * length_h + rows[2 * j]) * length_w + at)
                    while at < columns[2 * k + 1]:
                        if at >= known:
                            begin = at
                            known = minimum(at + _COLUMNS, length_w)
                            largest_of_columns(best, chosen, plane, sizes, bounds + 2 * i, rows + 2 * j, at, known, W)
                        end = minimum(columns[2 * k + 1], known)
                        for c in range(at - begin, end - begin):
                            met = best[c]
                            place = chosen[c]
                            better = (met > largest_yet) | ((met == largest_yet) & (place < index))
                            if met != met:
                                better = (largest_yet == largest_yet) | (place > index)
                            largest_yet = met if better else largest_yet
                            index = place if better else index
                        at = end
                    values[to] = largest_yet
                    indices[to] = i64(index)
                    to += 1


@loops(explicit=True, plain=True)
def averages(
    result: Pointer[T],
    x: Pointer[T],
    sizes: Pointer[i64],
    bounds: Pointer[i64],
    divisors: Pointer[T],
    start: Int,
    stop: Int,
    SPREAD: Static,
) -> None:
    """The sums of the windows of planes `start` to `stop` over their divisors.

    `SPREAD`: the transpose, each number of `x` over its divisor added to the elements of its window.
    """
    windows = fields(sizes, SIZES)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    rows, columns = bounds + 2 * count_d, bounds + 2 * (count_d + count_h)
    size, count = length_d * length_h * length_w, count_d * count_h * count_w
    for p in range(start, stop):
        plane = (result if SPREAD else x) + p * size
        pooled = (x if SPREAD else result) + p * count
        place = i64(0)
        if SPREAD:
            for i in range(size):
                plane[i] = 0
        for i in range(count_d):
            for j in range(count_h):
                for k in range(count_w):
                    total = pooled[place] / divisors[place] if SPREAD else T(0)
                    for z in range(bounds[2 * i], bounds[2 * i + 1]):
                        for y in range(rows[2 * j], rows[2 * j + 1]):
                            line = (z * length_h + y) * length_w
                            for at in range(line + columns[2 * k], line + columns[2 * k + 1]):
                                if SPREAD:
                                    plane[at] += total
                                else:
                                    total += plane[at]
                    if not SPREAD:
                        pooled[place] = total / divisors[place]
                    place += 1


def _table(lengths: Sizes, bounds: Sequence[Bounds]) -> tuple[ndarray, ndarray]:
    """Lengths and counts, and the bounds of windows. Missing dimensions come first."""
    missing = 3 - len(lengths)
    counts = [len(starts) for starts, _ in bounds]
    sizes = SIZES.pack(length=[1] * missing + list(lengths), count=[1] * missing + counts)
    pairs = [numpy.stack(along, 1).reshape(-1) for along in bounds]
    return numpy.array(sizes, numpy.int64), numpy.concatenate([numpy.array([0, 1] * missing, numpy.int64), *pairs])


def _several(lengths: Sizes, counts: Sizes) -> bool:
    """Return whether there are several windows with more than one element."""
    return min(counts) > 0 and max(counts) > 1 and tuple(lengths) != tuple(counts)


def _fits(x: ndarray) -> bool:
    return bool(x.dtype.char in "fd" and x.dtype.isnative and x.flags.c_contiguous and x.size)


def adaptive_max_pool(input: ndarray, output_size: Sizes) -> Any:
    """The plan of the largest element, and its index, of windows that divide the input into `output_size`."""
    dims = len(output_size)
    lengths = input.shape[-dims:]
    if not _fits(input) or not _several(lengths, output_size):
        return NotImplemented
    if not any(length % count for length, count in zip(lengths, output_size, strict=True)):
        return NotImplemented
    shape, size = (*input.shape[:-dims], *output_size), math.prod(lengths)
    if size >= 1 << 31:
        return NotImplemented
    function = largest.compiled(T=type_of(input.dtype), W=HOST.vector_bytes // input.itemsize)
    memory = Memory(shape, input.dtype), Memory(shape, numpy.dtype(numpy.int64))
    return _plan(function, memory, input, input.size // size, 4 * size, *_table(lengths, _bounds(lengths, output_size)))


def adaptive_avg_pool(input: ndarray, output_size: Sizes) -> Any:
    """The plan of the mean of windows that divide the input into `output_size`."""
    dims = len(output_size)
    lengths = input.shape[-dims:]
    if not _fits(input) or not _several(lengths, output_size):
        return NotImplemented
    bounds, size = _bounds(lengths, output_size), math.prod(lengths)
    return mean_plan(input, input.shape, 4 * size, bounds, window_sizes(lengths, output_size), spread=False)


def adaptive_avg_pool_backward(grad: ndarray, input_shape: Sizes, dims: int) -> Any:
    """The plan of the gradient of the input of `adaptive_avg_pool`."""
    lengths, counts = tuple(input_shape[-dims:]), grad.shape[-dims:]
    if not _fits(grad) or not _several(lengths, counts) or 0 in input_shape:
        return NotImplemented
    bounds, size = _bounds(lengths, counts), math.prod(lengths)
    return mean_plan(grad, tuple(input_shape), 6 * size, bounds, window_sizes(lengths, counts), spread=True)


def _bounds(lengths: Sizes, counts: Sizes) -> list[Bounds]:
    return [divided(*each) for each in zip(lengths, counts, strict=True)]


def mean_plan(
    x: ndarray, input_shape: Sizes, work: int, bounds: Sequence[Bounds], divisors: ndarray, *, spread: bool
) -> Plan:
    """The plan of the sums of windows over their divisors, or of the transpose; `work`: see `_plan`."""
    dims, counts = len(bounds), tuple([len(starts) for starts, _ in bounds])
    shape = input_shape if spread else (*input_shape[: len(input_shape) - dims], *counts)
    of_each = numpy.broadcast_to(divisors, counts).astype(x.dtype, order="C")
    function = averages.compiled(T=type_of(x.dtype), SPREAD=spread)
    tables = *_table(input_shape[-dims:], bounds), of_each
    return _plan(function, (Memory(shape, x.dtype),), x, math.prod(shape[:-dims]), work, *tables)


def _plan(function: Any, results: tuple[Memory, ...], x: ndarray, planes: int, work: int, *tables: ndarray) -> Plan:
    """The plan of a function that walks so many `planes`, each as much `work` as moving so many numbers."""
    plane_bytes = work * x.itemsize

    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        launch(function, planes, plane_bytes, *map(address, out), address(x), *map(address, tables))

    return Plan(results, into=into)
