"""The order in memory of an elementwise result: that of the first operand which says anything about it, as in PyTorch.

NumPy agrees where all operands do; where they contradict each other, it falls back to row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]

__all__ = ["laid_out"]


def laid_out(result: Array, operands: Sequence[Any]) -> Array:
    """`result`, a fresh array computed from `operands` (those that are arrays), in the order in memory that PyTorch gives it."""
    shape = result.shape
    if len(shape) < 2 or not result.size:
        return result
    arrays = [item for item in operands if isinstance(item, numpy.ndarray) and item.ndim]
    if result.flags.c_contiguous and all(item.flags.c_contiguous for item in arrays):
        return result
    dims = _fastest_first([_steps_over(shape, item) for item in arrays], shape)
    step = result.itemsize
    for dim in dims:
        if shape[dim] != 1 and result.strides[dim] != step:
            break
        step *= shape[dim]
    else:
        return result
    slowest_first = dims[::-1]
    memory = numpy.empty([shape[dim] for dim in slowest_first], result.dtype)
    target = memory.transpose([slowest_first.index(dim) for dim in range(len(shape))])
    target[...] = result
    return target


def _steps_over(shape: tuple[int, ...], array: Array) -> list[int]:
    """The strides of `array` broadcast to `shape`; 0 where an element is repeated."""
    steps = [0] * (len(shape) - array.ndim)
    for size, step, wanted in zip(array.shape, array.strides, shape[len(steps) :], strict=True):
        steps.append(0 if size == 1 and wanted != 1 else step)
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
    """Whether dimension `one` has larger strides than `two` in the first operand that tells; None if there is none."""
    for steps in all_steps:
        if not steps[one] or not steps[two]:
            continue
        if steps[one] != steps[two]:
            return steps[one] > steps[two]
        if shape[one] > shape[two]:
            return True
    return None
