"""The NumPy interpreter of expressions for large arrays. It computes tiles that stay in the cache, on several threads.

Operands may have any memory layout and are broadcast. They are traversed together in the memory order of the result,
with as few dimensions as possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray
from numpy.lib.stride_tricks import as_strided

from ..kernels.runtime.costs import SECOND_CACHE
from ..kernels.runtime.layout import memory_for
from ..kernels.runtime.parallel import parallel_rows

Dtype = numpy.dtype[Any]


def result_like(arrays: Sequence[ndarray], dtype: Dtype, contiguous: bool) -> ndarray:
    """Allocate memory for an elementwise result, in the order of the operands unless it must be `contiguous`."""
    shape = arrays[0].shape
    if all(array.shape == shape and array.flags.c_contiguous for array in arrays):
        return numpy.empty(shape, dtype)
    if contiguous:
        return numpy.empty(numpy.broadcast_shapes(*[array.shape for array in arrays]), dtype)
    return memory_for(arrays, dtype)


def run_tiles(
    function: Callable[..., Any], inputs: list[ndarray], scalars: Sequence[Any], outs: list[ndarray], compute: Dtype
) -> None:
    """Write `function(*inputs, *scalars)` tile by tile. Inputs of a half type are converted to `compute`."""
    shape, operands = walked(inputs, outs)
    count, dtype = len(inputs), inputs[0].dtype
    half = dtype is not compute
    element = sum(item.itemsize + (compute.itemsize if half else 0) for item in operands)

    def work(where: Any) -> None:
        parts = [item[where] for item in operands]
        given = parts[:count]
        if half:
            given = [part.astype(compute) if part.dtype == dtype else part for part in given]
        results = function(*given, *scalars)
        for part, result in zip(parts[count:], results if type(results) is tuple else (results,), strict=True):
            numpy.copyto(part, result, casting="unsafe")

    inner = math.prod(shape[1:])
    if inner * element <= SECOND_CACHE:
        parallel_rows(lambda start, stop: work(slice(start, stop)), shape[0], inner * element, tile_bytes=SECOND_CACHE)
        return
    _run_blocks(work, shape, element)


def _run_blocks(work: Callable[[Any], None], shape: tuple[int, ...], element: int) -> None:
    """Split the first dimension whose rows fit in a tile, because rows of earlier dimensions are too large."""
    split = 1
    while math.prod(shape[split + 1 :]) * element > SECOND_CACHE:
        split += 1
    inner = math.prod(shape[split + 1 :]) * element
    chunk = max(1, SECOND_CACHE // inner)
    outer, chunks = shape[:split], -(-shape[split] // chunk)

    def blocks(start: int, stop: int) -> None:
        for number in range(start, stop):
            index, part = divmod(number, chunks)
            work((*numpy.unravel_index(index, outer), slice(part * chunk, (part + 1) * chunk)))

    parallel_rows(blocks, math.prod(outer) * chunks, min(chunk, shape[split]) * inner)


def walked(inputs: list[ndarray], outs: list[ndarray]) -> tuple[tuple[int, ...], list[ndarray]]:
    """Return all arrays as views with one shape: the shape of the outputs in memory order, with as few dimensions as possible."""
    target = outs[0]
    shape = target.shape
    arrays = [*inputs, *outs]
    if all(array.shape == shape and array.flags.c_contiguous for array in arrays):
        return (target.size,), [array.reshape(-1) for array in arrays]
    order = sorted(range(target.ndim), key=lambda dim: -abs(target.strides[dim]))
    views = [numpy.broadcast_to(array, shape).transpose(order) if array.shape != shape else array.transpose(order)
             for array in arrays]  # fmt: skip
    if outs[0].flags.writeable:
        views[len(inputs)] = target.transpose(order)
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in views]
    for dim, length in enumerate(views[0].shape):
        if length == 1:
            continue
        if lengths and all(
            step[-1] == view.strides[dim] * length for step, view in zip(steps, views, strict=True)
        ):  # the two adjacent dimensions can be merged
            lengths[-1] *= length
            for step, view in zip(steps, views, strict=True):
                step[-1] = view.strides[dim]
            continue
        lengths.append(length)
        for step, view in zip(steps, views, strict=True):
            step.append(view.strides[dim])
    if not lengths:
        lengths, steps = [1], [[0] for _ in views]
    merged = [
        as_strided(view, lengths, step, writeable=number >= len(inputs))
        for number, (view, step) in enumerate(zip(views, steps, strict=True))
    ]
    return tuple(lengths), merged
