"""Arrays with a shape, strides and a dtype, but no readable elements: stand-ins, and arrays on the device `meta`.

The memory of arrays on `meta` is reserved but never written to, so the operating system never provides it. This memory
reads as zeros, and the shapes of results are computed with these zeros.
"""

from __future__ import annotations

from typing import Any

import numpy


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
        return unwritten(self, dtype).view(Meta)

    def __deepcopy__(self, memo: Any) -> Meta:
        return parked(self)

    def __reduce__(self) -> Any:
        steps = tuple(step // self.itemsize for step in self.strides)
        return remade, (self.shape, self.dtype, steps)


def parked(array: numpy.ndarray[Any, Any]) -> Meta:
    """Return a meta array of the shape, the order of dimensions and the dtype of `array`."""
    return unwritten(array).view(Meta)


def in_place_of(array: numpy.ndarray[Any, Any]) -> Meta:
    """Return a meta array of the shape, the strides and the dtype of `array`."""
    if array.flags.forc or min(array.strides) <= 0:
        return parked(array)
    span = array.itemsize + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
    return numpy.ndarray(array.shape, array.dtype, numpy.zeros(span, "b"), 0, array.strides).view(Meta)


def unwritten(array: numpy.ndarray[Any, Any], dtype: Any = None) -> numpy.ndarray[Any, Any]:
    """Return zeros in unwritten memory, with the shape and the memory order of `array`. `dtype`: another dtype, if any."""
    order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
    memory = numpy.zeros([array.shape[dim] for dim in order], array.dtype if dtype is None else dtype)
    return memory.transpose(sorted(range(array.ndim), key=order.__getitem__))


def remade(shape: tuple[int, ...], dtype: Any, steps: tuple[int, ...]) -> Meta:
    """Return a meta array with this shape and dtype, and with the memory order of these strides."""
    order = sorted(range(len(shape)), key=lambda dim: -steps[dim])
    back = sorted(range(len(shape)), key=order.__getitem__)
    return parked(numpy.empty([shape[dim] for dim in order], dtype).transpose(back))


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
