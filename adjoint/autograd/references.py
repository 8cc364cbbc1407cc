"""Whether the memory of an array is referred to by one array alone; copies of gradients."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy
from numpy import ndarray

from ..codegen.acceleration import THREADED
from ..kernels.memory.copying import copy_elements
from ..kernels.runtime.sparse_array import SparseArray


def owns_memory(array: Any) -> bool:
    """Whether no other object can refer to the memory of `array`: it owns its memory, or is the only reference to the owner."""
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
    """A copy of `grad`, with the strides of `array` where those leave no gaps."""
    is_row_major = array.flags.c_contiguous or grad.shape != array.shape  # or the leaf has another shape now
    if type(grad) is SparseArray or (is_row_major and grad.size < THREADED):
        return grad.copy()
    copy = numpy.empty(grad.shape, grad.dtype) if is_row_major else numpy.empty_like(array, grad.dtype, subok=False)
    copy_elements(copy, grad)
    return copy
