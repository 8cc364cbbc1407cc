"""Splitting an array into its memory, offset, size and strides. The module depends on neither files nor tensors."""

from typing import Any

import numpy

from ..kernels.memory.storage import element_strides, owner
from ..kernels.runtime.addresses import address

__all__ = ["split_array"]

Array = numpy.ndarray[Any, Any]


def split_array(array: Array) -> tuple[Array, int, tuple[int, ...], tuple[int, ...]]:
    """Return the array that owns the memory of `array`, and the offset, size and stride of `array` in it, in elements.

    `strided(root, size, stride, offset, array.dtype)` restores `array`. An array with negative strides is copied first,
    because no tensor has negative strides.
    """
    root = owner(array)
    distance = address(array) - address(root) if array.size else 0
    on_grid = all(step % array.itemsize == 0 and step >= 0 for step in array.strides)
    if distance < 0 or distance % array.itemsize or (array.size and not on_grid):
        return split_array(array.copy())
    return root, distance // array.itemsize, array.shape, element_strides(array)
