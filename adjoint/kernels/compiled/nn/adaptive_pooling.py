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
from ....codegen.llvm.vectors import first_lanes
from ....codegen.plans import Memory, Plan
from ...nn.windows import Bounds, divided, divided_elements, window_sizes

Sizes = tuple[int, ...]

SIZES = Struct("length:3 count:3")


@loops(explicit=True, plain=True)
def largest(
    values: Pointer[T], indices: Pointer[i64], x: Pointer[T], corners: Pointer[i64], steps: Pointer[i64], size: Int, count: Int,
    elements: Int, corner_step: Int, start: Int, stop: Int, W: Static, ALIKE: Static,
) -> None:  # fmt: skip
    """The largest element of each of `count` windows of planes `start` to `stop`, and its index: the first one, or the last NaN.

    A window has this many `elements`, from its corner on at `steps`, a row for each element. Planes are `size` apart and their
    corners `corner_step`. `ALIKE`: all windows have the same steps.
    """
    for p in range(start, stop):
        plane = x + p * size
        for k in range(0, count, W):
            inside = first_lanes(count - k, W)
            corner = load(corners + (p * corner_step + k), W, inside)
            chosen = corner
            best = gather(plane, corner, inside)
            for e in range(elements):
                here = corner + (broadcast(steps[e], W) if ALIKE else load(steps + (e * count + k), W, inside))
                met = gather(plane, here, inside)
                better = (met > best) | (met != met)
                best = where(better, met, best)
                chosen = where(better, here, chosen)
            store(values + (p * count + k), best, inside)
            store(indices + (p * count + k), chosen, inside)


def _largest_plan(
    shape: Sizes, dtype: numpy.dtype[Any], planes: int, size: int, corner_step: int, elements: int, alike: bool
) -> Plan:
    """The plan of `largest` for results of a shape, given an array, corners and steps."""
    function, count = (
        largest.compiled(T=type_of(dtype), W=HOST.vector_bytes // 8, ALIKE=alike),
        math.prod(shape) // planes,
    )

    def into(out: Sequence[ndarray], x: ndarray, corners: ndarray, steps: ndarray) -> None:
        arrays = map(address, (*out, x, corners, steps))
        launch(function, planes, 8 * elements * count, *arrays, size, count, elements, corner_step)

    return Plan([Memory(shape, dtype), Memory(shape, numpy.dtype(numpy.int64))], into=into)


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
    size, elements = math.prod(lengths), divided_elements(lengths, output_size)
    corners, steps = elements[0], elements - elements[0]
    plan = _largest_plan(
        (*input.shape[:-dims], *output_size), input.dtype, input.size // size, size, 0, len(steps), False
    )
    return Plan(plan.results, into=lambda out, x, _: plan.into(out, x, corners, steps))


def largest_at(values: ndarray, corners: ndarray, offsets: ndarray) -> Any:
    """The plan of `kernels.nn.pooling._largest_at`."""
    if values.dtype.char not in "fd" or not corners.size:
        return NotImplemented
    planes, windows = len(corners), corners[0].size
    return _largest_plan(corners.shape, values.dtype, planes, 0, windows, len(offsets), True)


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
    """The plan of the sums of windows over their divisors, or of the transpose.

    A plane is as much `work` as moving this many numbers.
    """
    dims, counts = len(bounds), tuple([len(starts) for starts, _ in bounds])
    shape = input_shape if spread else (*input_shape[: len(input_shape) - dims], *counts)
    of_each = numpy.broadcast_to(divisors, counts).astype(x.dtype, order="C")
    function = averages.compiled(T=type_of(x.dtype), SPREAD=spread)
    tables = *_table(input_shape[-dims:], bounds), of_each
    planes, plane_bytes = math.prod(shape[:-dims]), work * x.itemsize

    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        launch(function, planes, plane_bytes, *map(address, (*out, x, *tables)))

    return Plan([Memory(shape, x.dtype)], into=into)
