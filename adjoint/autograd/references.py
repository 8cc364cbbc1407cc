"""Checking whether only one array uses a block of memory, and copying gradients."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.memory.copying import copy_elements, expanded
from ..kernels.memory.storage import is_dense
from ..kernels.runtime.costs import THREADED
from ..kernels.runtime.sparse_array import SparseArray


def owns_memory(array: Any) -> bool:
    """Return whether no other object can refer to the memory of `array`: it is the owner, or has the only reference to it."""
    base = array.base
    if base is None:
        return True
    return type(base) is ndarray and base.base is None and base.size == array.size and getrefcount(base) <= _ONLY_BASE


def _references_of_base(view: Any) -> int:
    base = view.base
    return getrefcount(base)


_ONLY_BASE = _references_of_base(numpy.empty((2, 1)).T)
"""The value of `sys.getrefcount` for the base of a single view that is held in a local variable."""


def laid_out_like(grad: Any, array: Any) -> Any:
    """Return a copy of `grad`. The copy has the strides of `array` if these strides leave no gaps."""
    if grad.shape != array.shape:
        return _with_earlier_shape(grad, array)
    is_row_major = array.flags.c_contiguous or not is_dense(array)
    if type(grad) is SparseArray or (is_row_major and grad.size < THREADED):
        return grad.copy()
    copy = numpy.empty(grad.shape, grad.dtype) if is_row_major else numpy.empty_like(array, grad.dtype, subok=False)
    copy_elements(copy, grad)
    return copy


def _with_earlier_shape(grad: Any, array: Any) -> Any:
    """Return a copy of `grad`, which has an earlier shape of a leaf, in that shape or broadcast, as in PyTorch."""
    if type(grad) is SparseArray:
        return grad.copy()
    pairs = zip(grad.shape, grad.strides, array.strides, strict=False)
    fits = all(size == 1 or one * array.itemsize == other * grad.itemsize for size, one, other in pairs)
    if fits or not is_dense(array):
        return grad.copy()
    source = expanded(grad, array)
    copy = numpy.empty_like(array, grad.dtype, subok=False)
    numpy.copyto(copy, source)
    return copy
