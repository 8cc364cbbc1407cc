"""Arrays and the storages behind them: bytes plus (dtype, offset, size, stride) make an array, and the other way round.

Sizes, strides and offsets may come from an untrusted file: whatever reaches outside its storage raises before memory is
touched. Nothing here knows files or tensors.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from ..kernels.memory.storage import address, element_strides, owner
from ..kernels.runtime.lazy_conj import bits_of, toggled
from ..kernels.runtime.meta_array import Meta

__all__ = ["reduce_array", "split_array", "storage_bytes", "view_array", "view_bytes"]

Array = numpy.ndarray[Any, Any]

_MAX_DIMS = 64  # NumPy's limit


def view_bytes(
    storage: Array, dtype: "numpy.dtype[Any]", offset: int, size: Sequence[int], stride: Sequence[int]
) -> Array:
    """A view of the bytes `storage` (uint8, one dimension) as elements of `dtype`.

    `offset` and `stride` count elements, not bytes. The view shares memory with `storage` and may overlap itself (a
    stride of 0).

    Raises:
        RuntimeError: if the view would reach outside the storage, or sizes, strides and offset make no sense.
        TypeError: if they are not integers.
    """
    _check_integers(offset, size, stride)
    itemsize = dtype.itemsize
    if prod(length for length in size if length) * itemsize >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if any(step * itemsize >= 2**63 for step in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if 0 in size:
        return numpy.ndarray(tuple(size), dtype, buffer=storage)
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    needed = (last + 1) * itemsize
    if needed > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {storage.nbytes}"
        )
    steps = tuple(step * itemsize for step in stride)
    view: Array = numpy.ndarray(tuple(size), dtype, buffer=storage, offset=offset * itemsize, strides=steps)
    return view


def _check_integers(offset: int, size: Sequence[int], stride: Sequence[int]) -> None:
    for value in (offset, *size, *stride):
        if type(value) is not int:
            raise TypeError(f"storage offset, sizes and strides must be int, not {type(value).__name__}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if len(size) > _MAX_DIMS:
        raise RuntimeError(f"tensors of more than {_MAX_DIMS} dimensions are not supported, got {len(size)}")
    if min((*size, *stride), default=0) < 0:
        raise RuntimeError(f"sizes and strides must be non-negative, got {list(size)} and {list(stride)}")


def storage_bytes(root: Array) -> Array:
    """The memory from the first to the last byte of `root`, an array that owns its memory, as a view of uint8."""
    if root.flags.c_contiguous:
        return root.reshape(-1).view(numpy.uint8)
    low, high = numpy.lib.array_utils.byte_bounds(root)
    length = (high - low) // root.itemsize
    return numpy.lib.stride_tricks.as_strided(root, (length,), (root.itemsize,)).view(numpy.uint8)


def split_array(array: Array) -> tuple[Array, int, tuple[int, ...], tuple[int, ...]]:
    """The array that owns the memory of `array`, and where `array` lies in it: offset, size and stride in elements.

    `view_bytes(storage_bytes(root), array.dtype, offset, size, stride)` is `array` again. An array with negative
    strides, which no tensor has, is copied first.
    """
    root = owner(array)
    distance = address(array) - address(root) if array.size else 0
    on_grid = all(step % array.itemsize == 0 and step >= 0 for step in array.strides)
    if distance < 0 or distance % array.itemsize or (array.size and not on_grid) or min(root.strides, default=0) < 0:
        return split_array(array.copy())
    return root, distance // array.itemsize, array.shape, element_strides(array)


def reduce_array(array: Array) -> tuple[Callable[..., Array], tuple[Any, ...]]:
    """A function and its arguments that make `array` again, with its strides, for use in `__reduce__`.

    The owner of the memory is among the arguments: arrays that share it and are pickled together share it again.
    """
    if isinstance(array, Meta):
        return array.__reduce__()
    root, offset, size, stride = split_array(array)
    if not root.flags.forc:
        root = storage_bytes(root)  # ndarray's own pickle keeps no other memory order than C and Fortran
    return view_array, (root, array.dtype, offset, size, stride, bits_of(array))


def view_array(
    root: Array, dtype: "numpy.dtype[Any]", offset: int, size: Sequence[int], stride: Sequence[int], bits: int = 0
) -> Array:
    """Undo `reduce_array`: a view of the memory of `root`, of which `bits` are pending."""
    return toggled(view_bytes(storage_bytes(root), dtype, offset, size, stride), bits)
