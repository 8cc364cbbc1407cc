"""Arrays of which only shape, dtype and strides are to be known: reading their elements is an error."""

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
        "Your tensor may have escaped from inside a function being vmapped: the elements of one example of a batch cannot be "
        "read, and outside of the vmap nothing says which batch it is an example of."
    )

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if function in _LIKE:
            return function(*(arg.view(numpy.ndarray) if isinstance(arg, Unread) else arg for arg in args), **keywords)
        if function in _VIEWS:
            return super().__array_function__(function, types, args, keywords)
        return _refuse(self)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """One that stands for arrays of another dtype."""
        return numpy.empty_like(self, dtype).view(Unread)

    __array_ufunc__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = _refuse
    all = any = argmax = argmin = copy = cumsum = dot = fill = item = max = min = nonzero = prod = sort = _refuse
    sum = take = tobytes = tolist = _refuse


class Released(Unread):
    """The array of a tensor whose memory has been given back: its shape and dtype are left."""

    refusal = "Cannot access data pointer of Tensor that doesn't have storage"
