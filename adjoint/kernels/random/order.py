"""The order in which random numbers go into an array: that of its memory, whatever its dimensions are called."""

from typing import Any

import numpy
from numpy import ndarray

from ..precision import BFLOAT16


def memory_order(array: ndarray) -> list[int]:
    """The dimensions sorted so that the memory of `array` is walked from front to back."""
    strides = array.strides
    return sorted(range(array.ndim), key=lambda dim: -strides[dim])


def store(out: ndarray, values: ndarray) -> ndarray:
    """Write one-dimensional `values` into `out` in the order of its memory, rounded to its type; returns `out`."""
    values = round_to(values, out.dtype)
    if out.flags.c_contiguous:
        out[...] = values.reshape(out.shape)
        return out
    target = out.transpose(memory_order(out))
    target[...] = values.reshape(target.shape)
    return out


def round_to(values: ndarray, dtype: "numpy.dtype[Any]") -> ndarray:
    """`values` as `dtype`; the half types are reached through float32, as PyTorch's conversions do."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "bui" and dtype.kind in "bui":
        return values.astype(dtype)
    if dtype.itemsize == 2 and (dtype.kind == "f" or dtype == BFLOAT16):
        values = values.astype(numpy.float32, copy=False)
    with numpy.errstate(all="ignore"):
        return values.astype(dtype)
