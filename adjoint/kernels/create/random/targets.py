"""Arrays that samplers fill: their permitted types, PyTorch's errors for other types, and their memory order."""

from typing import Any

import numpy
from numpy import ndarray

from ....dtypes import from_numpy
from ...runtime.floating import BFLOAT16, is_floating, refuse, unwarned
from ...runtime.narrow_array import is_narrow


def require_floating(kernel: str, dtype: "numpy.dtype[Any]") -> None:
    """Raise NotImplementedError unless `dtype` is a real floating-point type."""
    if not is_floating(dtype) or is_narrow(dtype):
        raise refuse(kernel, dtype)


def real_dtype(dtype: "numpy.dtype[Any]") -> "numpy.dtype[Any]":
    """Return the type of the parts of a complex type. A real type is returned unchanged."""
    return from_numpy(dtype).to_real().numpy


def as_real(x: ndarray) -> ndarray:
    """Return a view of a complex array with a last dimension of 2 for the real part and the imaginary part."""
    return x[..., None].view(real_dtype(x.dtype))


def memory_order(array: ndarray) -> list[int]:
    """Return the dimensions in the order in which the memory of `array` is traversed from front to back."""
    strides = array.strides
    return sorted(range(array.ndim), key=lambda dim: -strides[dim])


def store(out: ndarray, values: ndarray) -> ndarray:
    """Write one-dimensional `values` into `out` in the order of its memory, rounded to its type, and return `out`."""
    if out.itemsize == 2 or values.dtype.kind not in "bui":  # otherwise the assignment rounds in the same way
        values = round_to(values, out.dtype)
    target = out if out.flags.c_contiguous else out.transpose(memory_order(out))
    target[...] = values.reshape(target.shape)
    return out


def round_to(values: ndarray, dtype: "numpy.dtype[Any]") -> ndarray:
    """Return `values` as `dtype`. Half-precision types are converted through float32, as in PyTorch."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "bui" and dtype.kind in "bui":
        return values.astype(dtype)
    if dtype.itemsize == 2 and (dtype.kind == "f" or dtype == BFLOAT16):
        values = values.astype(numpy.float32, copy=False)
    with unwarned():
        return values.astype(dtype)
