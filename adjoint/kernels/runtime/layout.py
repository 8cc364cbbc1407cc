"""The order in memory of an elementwise result: that of the first operand which says anything about it, as in PyTorch.

NumPy agrees where all operands do; where they contradict each other, it falls back to row-major order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from ..._runtime.late_bound import LATE

Array = numpy.ndarray[Any, Any]

Window = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape and the strides of an operand."""


def has_channels_last(array: Array) -> bool:
    """Return whether the channels of each place are adjacent in memory. False if sizes of 1 leave the order open."""
    if array.ndim not in (4, 5) or array.flags.c_contiguous:
        return False
    least = 1
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        step = array.strides[dim]
        if step < least or (dim == 0 and least == array.strides[1]):
            return False
        least = step * array.shape[dim]
    return True


def like_images(result: Any, *images: Any) -> Any:
    """Return `result` (or the first of several results) with its channels last in memory, if one of the images has them last."""
    if not any(map(has_channels_last, images)):
        return result
    first = result[0] if isinstance(result, tuple) else result
    if first.ndim == images[0].ndim:
        turned = numpy.moveaxis(first, 1, -1)
        if not turned.flags.c_contiguous:
            turned = _copied(numpy.empty(turned.shape, turned.dtype), turned)
        last = numpy.moveaxis(turned, -1, 1)
        return (last, *result[1:]) if isinstance(result, tuple) else last
    return result


def following_images(kernel: Any) -> Any:
    """Return the kernel with its result laid out as its first array, images, is."""

    @functools.wraps(kernel)
    def form(images: Any, *args: Any, **options: Any) -> Any:
        return like_images(kernel(images, *args, **options), images)

    return form


def row_major(array: Array) -> Array:
    """Return `array` itself if its elements lie row by row in memory, otherwise a copy for which that holds."""
    return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)


def laid_out(result: Array, operands: Sequence[Any]) -> Array:
    """`result`, a fresh array computed from `operands` (those that are arrays), in the order in memory that PyTorch gives it."""
    rank = result.ndim
    if rank < 2:
        return result
    if result.flags.c_contiguous:
        for item in operands:
            if type(item) is not numpy.ndarray or item.flags.c_contiguous:
                continue
            steps = item.strides
            if any(steps) and (rank > 2 or steps[-1] != item.itemsize or steps[0] == steps[-1]):
                break  # one element says nothing; rows without gaps between their elements are in row-major order too
        else:
            return result
    return reordered(result, tuple([(item.shape, item.strides) for item in operands if type(item) is numpy.ndarray]))


def memory_for(operands: Sequence[Array], dtype: numpy.dtype[Any]) -> Array:
    """Memory for an elementwise result of `operands`, in that order."""
    result = numpy.empty(numpy.broadcast_shapes(*[item.shape for item in operands]), dtype)
    windows = tuple([(item.shape, item.strides) for item in operands])
    wanted = _wanted_order(result.shape, result.strides, result.itemsize, windows)
    if wanted is None:
        return result
    sizes, places = wanted
    return numpy.empty(sizes, dtype).transpose(places)


def reordered(result: Array, windows: tuple[Window, ...]) -> Array:
    """Return `result`, or a copy of it, in the order in which operands of these shapes and strides are walked together."""
    wanted = _wanted_order(result.shape, result.strides, result.itemsize, windows)
    if wanted is None:
        return result
    sizes, places = wanted
    return _copied(numpy.empty(sizes, result.dtype).transpose(places), result)


def _copied(target: Array, source: Array) -> Array:
    LATE.copy_elements(target, source)
    return target


@functools.lru_cache(4096)
def _wanted_order(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, windows: tuple[Window, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The sizes of the memory, from the slowest dimension on, and which of them is each of the result's; None if it is so."""
    if 0 in shape:
        return None
    dims = _fastest_first([_steps_over(shape, *window) for window in windows if window[0]], shape)
    step = itemsize
    for dim in dims:
        if shape[dim] != 1 and strides[dim] != step:
            dims.reverse()
            return tuple(shape[dim] for dim in dims), tuple(dims.index(dim) for dim in range(len(dims)))
        step *= shape[dim]
    return None


def _steps_over(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the strides of an array of shape `own` broadcast to `shape`; 0 where an element is repeated."""
    steps = [0] * (len(shape) - len(own))
    for size, step, wanted in zip(own, strides, shape[len(steps) :], strict=True):
        steps.append(0 if size == 1 and wanted != 1 else abs(step))
    return steps


def _fastest_first(all_steps: list[list[int]], shape: tuple[int, ...]) -> list[int]:
    """The dimensions in the order in which to walk them: insertion sort from the last one on, because not every pair compares."""
    dims = list(range(len(shape) - 1, -1, -1))
    for first in range(1, len(dims)):
        moving = first
        for other in range(first - 1, -1, -1):
            order = _is_slower(dims[other], dims[moving], all_steps, shape)
            if order is False:
                break
            if order:
                dims[other], dims[moving] = dims[moving], dims[other]
                moving = other
    return dims


def _is_slower(one: int, two: int, all_steps: list[list[int]], shape: tuple[int, ...]) -> bool | None:
    """Return whether dimension `one` has larger strides than `two` in the first operand that tells; None if there is none."""
    for steps in all_steps:
        if not steps[one] or not steps[two]:
            continue
        if steps[one] != steps[two]:
            return steps[one] > steps[two]
        if shape[one] > shape[two]:
            return True
    return None
