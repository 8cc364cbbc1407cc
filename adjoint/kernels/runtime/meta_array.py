"""Arrays with a shape, strides and a dtype, and elements that nobody may read: stand-ins, and those on the device `meta`.

Memory of those on `meta` is reserved and never written to, so that the operating system never provides it. It reads as zeros,
with which the shapes of results are found.
"""

from __future__ import annotations

from typing import Any

import numpy


def _refuse(self: Unread, *args: Any, **keywords: Any) -> Any:
    raise self.error(self.refusal)


_LIKE = frozenset((numpy.empty_like, numpy.zeros_like, numpy.ones_like, numpy.may_share_memory, numpy.shares_memory))
_VIEWS = frozenset((numpy.broadcast_to, numpy.expand_dims, numpy.moveaxis, numpy.swapaxes, numpy.transpose))


class Unread(numpy.ndarray[Any, Any]):
    """An array that stands for others of its shape, dtype and strides; views of it do too."""

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
    """The array of a tensor whose memory has been given back: its shape and dtype are left."""

    refusal = "Cannot access data pointer of Tensor that doesn't have storage"


class Meta(Unread):
    """An array on the device `meta`; views of it are too."""

    error = NotImplementedError
    refusal = "Cannot copy out of meta tensor; no data!"

    def copy(self, order: Any = "K") -> Any:
        """Another one of the same shape and dtype."""
        return parked(self)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Another one of the same shape and another dtype."""
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
    """Zeros in unwritten memory, of the shape and the order of dimensions of `array`, and of its dtype if no other is given."""
    order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
    memory = numpy.zeros([array.shape[dim] for dim in order], array.dtype if dtype is None else dtype)
    return memory.transpose(sorted(range(array.ndim), key=order.__getitem__))


def remade(shape: tuple[int, ...], dtype: Any, steps: tuple[int, ...]) -> Meta:
    """Return a meta array of a shape, a dtype, and the order of dimensions that strides tell."""
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
    """Raise the same for one element."""
    if type(array) is Meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")


def check_numpy(array: Any) -> None:
    """Raise the same error for an array."""
    if type(array) is Meta:
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
