"""The memory order of an elementwise result. As in PyTorch, it is the order of the first operand whose order is unambiguous.

NumPy gives the same order if all operands agree, but row-major order if they contradict each other.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from ..._runtime.late_bound import LATE
from .meta_array import Unread, reserved

Array = numpy.ndarray[Any, Any]

Window = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape and the strides of an operand."""


def has_channels_last(array: Array) -> bool:
    """Return whether the channels of each position are adjacent in memory. Strides decide where sizes of 1 leave it open."""
    if array.ndim not in (4, 5) or (array.flags.c_contiguous and 1 not in array.shape):
        return False
    least = 1
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        step = array.strides[dim]
        if step < least or (dim == 0 and least == array.strides[1]):
            return False
        least = step * array.shape[dim]
    return True


def like_images(result: Any, *images: Any) -> Any:
    """Return `result` (or the first of several results) with its channels last in memory, if one of the images has this order."""
    for each in images:
        if has_channels_last(each):
            break
    else:
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
    """Return a kernel with a result that has its channels last in memory if the first argument has its channels last."""

    @functools.wraps(kernel)
    def form(images: Any, *args: Any, **options: Any) -> Any:
        result = kernel(images, *args, **options)
        return result if images.flags.c_contiguous else like_images(result, images)

    return form


def fits(out: Any, shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> bool:
    """Return whether `out`, which may be None, is a row-major array of this shape and dtype."""
    return out is not None and out.shape == shape and out.dtype == dtype and out.flags.c_contiguous


def row_major(array: Array) -> Array:
    """Return `array` itself if it is in row-major order, otherwise a row-major copy."""
    if array.flags.c_contiguous:
        return array
    return array.in_row_major() if hasattr(array, "in_row_major") else numpy.ascontiguousarray(array)


def row_major_copy(array: Array) -> Array:
    """Return a row-major copy, which compiled loops make if the array is large."""
    if hasattr(array, "in_row_major"):
        return array.in_row_major()
    return _copied(numpy.empty(array.shape, array.dtype), array)


def are_turned(first: Array, second: Array) -> bool:
    """Return whether a ufunc must compute the transposes of two arrays to give the column-major order of the first."""
    return first.flags.f_contiguous and first.ndim == second.ndim and 1 not in first.shape


def laid_out(result: Array, operands: Sequence[Any]) -> Array:
    """Return `result`, a new array computed from `operands` (some of them arrays), in PyTorch's memory order."""
    rank = result.ndim
    if rank < 2:
        return result
    if result.flags.c_contiguous:
        for item in operands:
            if (type(item) is not numpy.ndarray and not hasattr(item, "in_row_major")) or item.flags.c_contiguous:
                continue  # a number or a row-major array, or the outline of one
            steps = item.strides
            if any(steps) and (rank > 2 or steps[-1] != item.itemsize or steps[0] == steps[-1]):
                break  # one element determines nothing, and contiguous rows mean row-major order too
        else:
            return result
    elif type(operands[0]) is numpy.ndarray and (result.shape, result.strides) == (
        operands[0].shape,
        operands[0].strides,
    ):
        return result
    windows = [
        (item.shape, item.strides) for item in operands if type(item) is numpy.ndarray or hasattr(item, "in_row_major")
    ]
    return reordered(result, tuple(windows))


def memory_for(operands: Sequence[Array], dtype: numpy.dtype[Any]) -> Array:
    """Allocate an elementwise result of `operands` in PyTorch's memory order."""
    result = numpy.empty(numpy.broadcast_shapes(*[item.shape for item in operands]), dtype)
    windows = tuple([(item.shape, item.strides) for item in operands])
    wanted = _wanted_order(result.shape, result.strides, result.itemsize, windows)
    if wanted is None:
        return result
    sizes, places = wanted
    return numpy.empty(sizes, dtype).transpose(places)


def reordered(result: Array, windows: tuple[Window, ...]) -> Array:
    """Return `result`, or a copy of it, in the memory order that operands of these shapes and strides determine."""
    wanted = _wanted_order(result.shape, result.strides, result.itemsize, windows)
    if wanted is None:
        return result
    sizes, places = wanted
    if isinstance(result, Unread):
        return reserved(sizes, result.dtype).transpose(places).view(type(result))
    if hasattr(result, "in_row_major"):
        return _copied(numpy.empty_like(result.reshape(-1)).reshape(sizes).transpose(places), result)
    return _copied(numpy.empty(sizes, result.dtype).transpose(places), result)


def _copied(target: Array, source: Array) -> Array:
    LATE.copy_elements(target, source)
    return target


@functools.lru_cache(4096)
def _wanted_order(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, windows: tuple[Window, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the sizes in memory, slowest first, and the place of each dimension there, or None if it has this order."""
    if 0 in shape:
        return None
    dims = _fastest_first([_broadcast_strides(shape, *window) for window in windows if window[0]], shape)
    step = itemsize
    for dim in dims:
        if shape[dim] != 1 and strides[dim] != step:
            dims.reverse()
            return tuple(shape[dim] for dim in dims), tuple(dims.index(dim) for dim in range(len(dims)))
        step *= shape[dim]
    return None


def _broadcast_strides(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the strides of an array of shape `own` broadcast to `shape`. They are 0 in repeated dimensions."""
    steps = [0] * (len(shape) - len(own))
    for size, step, wanted in zip(own, strides, shape[len(steps) :], strict=True):
        steps.append(0 if size == 1 and wanted != 1 else abs(step))
    return steps


def _fastest_first(all_steps: list[list[int]], shape: tuple[int, ...]) -> list[int]:
    """Return the dimensions, fastest first, by insertion sort from the last dimension on, because not every pair has an order."""
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
    """Return whether dimension `one` has a larger stride than `two` in the first operand with different strides, or None."""
    for steps in all_steps:
        if not steps[one] or not steps[two]:
            continue
        if steps[one] != steps[two]:
            return steps[one] > steps[two]
        if shape[one] > shape[two]:
            return True
    return None
