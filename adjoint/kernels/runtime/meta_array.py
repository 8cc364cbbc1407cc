"""Arrays with a shape, strides and a dtype, but no readable elements: stand-ins, and arrays on the device `meta`.

The memory of arrays on `meta` is reserved but never written to, so the operating system never provides it. This memory
reads as zeros.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from ..._runtime.platform import mmap


def _refuse(self: Unread, *args: Any, **keywords: Any) -> Any:
    raise self.error(self.refusal)


_LIKE = frozenset((numpy.empty_like, numpy.zeros_like, numpy.ones_like, numpy.may_share_memory, numpy.shares_memory))
_VIEWS = frozenset((numpy.broadcast_to, numpy.expand_dims, numpy.moveaxis, numpy.swapaxes, numpy.transpose))


class Unread(numpy.ndarray[Any, Any]):
    """An array that represents other arrays with its shape, dtype and strides. Its views are such arrays too."""

    error: type[Exception] = RuntimeError
    refusal = (
        "Either your tensor may have escaped from inside a function being vmapped, and outside of the vmap nothing says which "
        "batch it is an example of; or the elements of one example of a batch were to be read, which differ."
    )

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if function in _LIKE:
            return function(*(arg.view(numpy.ndarray) if isinstance(arg, Unread) else arg for arg in args), **keywords)
        if function in _VIEWS:
            return super().__array_function__(function, types, args, keywords)
        return _refuse(self)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Return a meta array with another dtype."""
        return numpy.empty_like(self, dtype).view(Unread)

    __array_ufunc__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = _refuse
    all = any = argmax = argmin = copy = cumsum = dot = fill = item = max = min = nonzero = prod = sort = _refuse
    sum = take = tobytes = tolist = _refuse


class Released(Unread):
    """The array of a tensor whose memory has been released. It still has a shape and a dtype."""

    refusal = "Cannot access data pointer of Tensor that doesn't have storage"


class Meta(Unread):
    """An array on the device `meta`. Its views are on this device too."""

    error = NotImplementedError
    refusal = "Cannot copy out of meta tensor; no data!"

    def copy(self, order: Any = "K") -> Any:
        """Return another meta array of the same shape and dtype."""
        return parked(self)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Return a meta array of the same shape and another dtype."""
        return parked(self, dtype)

    def __deepcopy__(self, memo: Any) -> Meta:
        return parked(self)

    def __reduce__(self) -> Any:
        steps = tuple(step // self.itemsize for step in self.strides)
        return remade, (self.shape, self.dtype, steps)


def in_place_of(array: numpy.ndarray[Any, Any]) -> Meta:
    """Return a meta array of the shape, the strides and the dtype of `array`."""
    if type(array) is Meta:
        return array
    if array.flags.forc or min(array.strides) <= 0:
        return parked(array)
    span = array.itemsize + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
    return numpy.ndarray(array.shape, array.dtype, reserved([span], "b"), 0, array.strides).view(Meta)


def parked(array: numpy.ndarray[Any, Any], dtype: Any = None) -> Meta:
    """Return a meta array with the shape and the memory order of `array`. `dtype`: another dtype, if any."""
    return in_order(array.shape, array.dtype if dtype is None else dtype, slowest_first(array.strides))


def slowest_first(strides: Sequence[int]) -> list[int]:
    """Return the dimensions, sorted by their strides."""
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def in_order(shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Meta:
    """Return a meta array. `order`: its dimensions in memory, the slowest first."""
    if order is None:
        return reserved(shape, dtype).view(Meta)
    memory = reserved([shape[dim] for dim in order], dtype)
    return memory.transpose(sorted(range(len(order)), key=list(order).__getitem__)).view(Meta)


def reserved(shape: Sequence[int], dtype: Any) -> numpy.ndarray[Any, Any]:
    """Return zeros. If there are many, they can only be read. They take addresses, but no memory, if the platform has `mmap`."""
    dtype = numpy.dtype(dtype)
    count = prod(shape)
    if count * dtype.itemsize <= 1 << 16 or not mmap:  # zeroing takes less time than mapping
        return numpy.zeros(shape, dtype)
    windows = sys.platform == "win32"
    flags = (
        {"access": mmap.ACCESS_READ}
        if windows
        else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ}
    )
    try:
        memory = mmap.mmap(-1, count * dtype.itemsize, **flags)
    except (OSError, OverflowError, ValueError):
        raise MemoryError(f"{count * dtype.itemsize} bytes") from None
    return numpy.frombuffer(memory, dtype, count).reshape(shape)


def remade(shape: tuple[int, ...], dtype: Any, steps: tuple[int, ...]) -> Meta:
    """Return a meta array with this shape and dtype, and with the memory order of these strides."""
    return in_order(shape, dtype, slowest_first(steps))


def zeros(array: Any) -> Any:
    """Return the ordinary array that stands for a meta array. Other values are returned unchanged."""
    return array.view(numpy.ndarray) if type(array) is Meta else array


def check_copy(array: Any) -> None:
    """Raise an error if `array` has no elements to read."""
    if type(array) is Meta:
        raise Meta.error(Meta.refusal)


def check_item(array: Any) -> None:
    """Raise an error, as `check_copy` does, if the element of `array` cannot be read."""
    if type(array) is Meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")


def check_numpy(array: Any) -> None:
    """Raise an error, as `check_copy` does, if `array` cannot be converted to NumPy."""
    if type(array) is Meta:
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
