"""Compiled pooling over windows that divide the input into a given number, from tables of their bounds.

The plans of the forms in `kernels.nn.pooling`. A single window is left to the reductions, maxima over windows of one
length to `max_pool`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import *
from ....codegen.llvm.launch import launch
from ....codegen.plans import Memory, Plan
from ...nn.windows import divided

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
    result: Pointer[T], x: Pointer[T], sizes: Pointer[i64], bounds: Pointer[i64], start: Int, stop: Int
) -> None:
    """The mean of each window of planes `start` to `stop`."""
    windows = fields(sizes, SIZES)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    rows, columns = bounds + 2 * count_d, bounds + 2 * (count_d + count_h)
    to = start * count_d * count_h * count_w
    for p in range(start, stop):
        plane = x + p * length_d * length_h * length_w
        for i in range(count_d):
            for j in range(count_h):
                for k in range(count_w):
                    total = T(0)
                    for z in range(bounds[2 * i], bounds[2 * i + 1]):
                        for y in range(rows[2 * j], rows[2 * j + 1]):
                            line = (z * length_h + y) * length_w
                            for at in range(line + columns[2 * k], line + columns[2 * k + 1]):
                                total += plane[at]
                    count = (
                        (bounds[2 * i + 1] - bounds[2 * i])
                        * (rows[2 * j + 1] - rows[2 * j])
                        * (columns[2 * k + 1] - columns[2 * k])
                    )
                    result[to] = total / T(count)
                    to += 1


@loops(explicit=True, plain=True)
def spread_averages(
    result: Pointer[T], grad: Pointer[T], sizes: Pointer[i64], bounds: Pointer[i64], start: Int, stop: Int
) -> None:
    """The transpose of `averages`: each gradient's share added to the elements of its window."""
    windows = fields(sizes, SIZES)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    rows, columns = bounds + 2 * count_d, bounds + 2 * (count_d + count_h)
    at_grad = start * count_d * count_h * count_w
    size = length_d * length_h * length_w
    for p in range(start, stop):
        plane = result + p * size
        for i in range(size):
            plane[i] = 0
        for i in range(count_d):
            for j in range(count_h):
                for k in range(count_w):
                    count = (
                        (bounds[2 * i + 1] - bounds[2 * i])
                        * (rows[2 * j + 1] - rows[2 * j])
                        * (columns[2 * k + 1] - columns[2 * k])
                    )
                    share = grad[at_grad] / T(count)
                    at_grad += 1
                    for z in range(bounds[2 * i], bounds[2 * i + 1]):
                        for y in range(rows[2 * j], rows[2 * j + 1]):
                            line = (z * length_h + y) * length_w
                            for at in range(line + columns[2 * k], line + columns[2 * k + 1]):
                                plane[at] += share


@functools.lru_cache(64)
def _tables(lengths: Sizes, counts: Sizes) -> tuple[ndarray, ndarray]:
    """Return lengths and counts, and the bounds of windows. Missing dimensions come first."""
    missing = (1,) * (3 - len(lengths))
    lengths, counts = missing + lengths, missing + counts
    bounds = [bound for length, count in zip(lengths, counts, strict=True) for bound in divided(length, count)]
    return numpy.array(SIZES.pack(length=lengths, count=counts), numpy.int64), numpy.array(bounds, numpy.int64)


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
    return _plan(function, memory, input, input.size // size, 4 * size, lengths, tuple(output_size))


def adaptive_avg_pool(input: ndarray, output_size: Sizes) -> Any:
    """The plan of the mean of windows that divide the input into `output_size`."""
    dims = len(output_size)
    lengths = input.shape[-dims:]
    if not _fits(input) or not _several(lengths, output_size):
        return NotImplemented
    memory, size = Memory((*input.shape[:-dims], *output_size), input.dtype), math.prod(lengths)
    function = averages.compiled(T=type_of(input.dtype))
    return _plan(function, (memory,), input, input.size // size, 4 * size, lengths, tuple(output_size))


def adaptive_avg_pool_backward(grad: ndarray, input_shape: Sizes, dims: int) -> Any:
    """The plan of the gradient of the input of `adaptive_avg_pool`."""
    lengths, counts = tuple(input_shape[-dims:]), grad.shape[-dims:]
    if not _fits(grad) or not _several(lengths, counts) or 0 in input_shape:
        return NotImplemented
    planes, size = math.prod(input_shape[:-dims]), math.prod(lengths)
    function = spread_averages.compiled(T=type_of(grad.dtype))
    return _plan(function, (Memory(tuple(input_shape), grad.dtype),), grad, planes, 6 * size, lengths, counts)


def _plan(
    function: Any, results: tuple[Memory, ...], x: ndarray, planes: int, work: int, lengths: Sizes, counts: Sizes
) -> Plan:
    """The plan of a function that walks so many `planes`, each as much `work` as moving so many numbers."""
    sizes, bounds = _tables(lengths, counts)
    plane_bytes = work * x.itemsize

    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        launch(function, planes, plane_bytes, *map(address, out), address(x), address(sizes), address(bounds))

    return Plan(results, into=into)
