"""The NumPy interpreter of expressions for large arrays. It computes tiles that stay in the cache, on several threads.

Operands may have any memory layout and are broadcast. They are traversed together in the memory order of the result,
with as few dimensions as possible. A tile also uses scratch memory, which each thread keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray
from numpy.lib.stride_tricks import as_strided

from ..kernels.runtime.layout import memory_for
from ..kernels.runtime.parallel import TILE_BYTES, parallel_rows, scratch

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
    tile: Callable[..., Any],
    inputs: list[ndarray],
    scalars: Sequence[Any],
    outs: list[ndarray],
    registers: Sequence[Dtype],
    compute: Dtype,
) -> None:
    """Call `tile(*inputs, *scalars, *outs, *registers)` for tiles that together cover the arrays.

    Arrays whose dtype is not that of the computation (`compute`, or bool for some outputs) are converted tile by tile.
    """
    shape, operands = walked(inputs, outs)
    n_inputs = len(inputs)
    half = inputs[0].dtype != compute
    itemsize = compute.itemsize if half else 0
    element = sum(item.itemsize + itemsize for item in operands)

    def work(where: Any) -> None:
        parts = [item[where] for item in operands]
        size = parts[-1].shape
        kept = [scratch(f"tile {number}", size, dtype) for number, dtype in enumerate(registers)]
        if not half:
            tile(*parts[:n_inputs], *scalars, *parts[n_inputs:], *kept)
            return
        wide = []
        for number, part in enumerate(parts):
            if part.dtype == inputs[0].dtype:
                memory = scratch(f"wide {number}", size, compute)
                if number < n_inputs:
                    numpy.copyto(memory, part, casting="unsafe")
                part = memory
            wide.append(part)
        tile(*wide[:n_inputs], *scalars, *wide[n_inputs:], *kept)
        for part, memory in zip(parts[n_inputs:], wide[n_inputs:], strict=True):
            if memory is not part:
                numpy.copyto(part, memory, casting="unsafe")

    inner = math.prod(shape[1:])
    if inner * element <= TILE_BYTES:
        parallel_rows(lambda start, stop: work(slice(start, stop)), shape[0], inner * element)
        return
    _run_blocks(work, shape, element)


def _run_blocks(work: Callable[[Any], None], shape: tuple[int, ...], element: int) -> None:
    """Split the first dimension whose rows fit in a tile, because rows of earlier dimensions are too large."""
    split = 1
    while math.prod(shape[split + 1 :]) * element > TILE_BYTES:
        split += 1
    inner = math.prod(shape[split + 1 :]) * element
    chunk = max(1, TILE_BYTES // inner)
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
