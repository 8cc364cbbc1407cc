"""The partial inverse of maximum pooling: values put back where they were the largest, among zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..runtime.floating import HALVES, refuse, type_name

Array = numpy.ndarray[Any, Any]


def max_unpool(self: Array, indices: Array, output_size: tuple[int, ...]) -> Array:
    """`(N, C, *)` or `(C, *)` at flat indices of images of a size; of several values for one place, the last."""
    dims = len(output_size)
    function = f"max_unpool{dims}d"
    if indices.dtype != numpy.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {type_name(indices.dtype)}")
    if self.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {self.ndim} "
            "dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    for dim in range(self.ndim - dims - (self.ndim == dims + 1), self.ndim):
        if dim > 0 and self.shape[dim] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got {list(self.shape)} with dimension {dim} being empty."
            )
    if self.dtype.kind != "f" and self.dtype not in HALVES:
        raise refuse(f"{function}", self)
    planes, area = math.prod(self.shape[:-dims]), math.prod(output_size)
    outside = (indices < 0) | (indices >= area)
    if outside.any():
        raise RuntimeError(
            f"Found an invalid max index: {indices[outside].flat[0]} (output volumes are of size "
            f"{'x'.join(map(str, output_size))})"
        )
    result = numpy.zeros((planes, area), self.dtype)
    count = math.prod(self.shape[-dims:])
    numpy.put_along_axis(result, indices.reshape(planes, count), self.reshape(planes, count), 1)
    return result.reshape(*self.shape[:-dims], *output_size)
