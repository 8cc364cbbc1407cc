"""Products of vectors that are not products of matrices."""

from __future__ import annotations

from typing import Any

import numpy

from .broadcast import broadcast_shapes
from .dimensions import normalize_dim
from .precision import type_name

Array = numpy.ndarray[Any, Any]


def cross(self: Array, other: Array, dim: int = -1) -> Array:
    """The cross products of vectors of three elements along `dim`; the other dimensions broadcast.

    Raises:
        RuntimeError: for other sizes along `dim`, and for arrays of different numbers of dimensions or dtypes.
    """
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = normalize_dim(dim, self.ndim)
    if self.ndim == 0 or self.shape[axis] != 3 or other.shape[axis] != 3:
        sizes = [item.shape[axis] if item.ndim else 1 for item in (self, other)]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    shape = broadcast_shapes(self.shape, other.shape)
    if self.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found {type_name(other.dtype)}")
    x, y, z = numpy.moveaxis(self, axis, 0)
    u, v, w = numpy.moveaxis(other, axis, 0)
    result = numpy.empty(shape, self.dtype)
    parts = numpy.moveaxis(result, axis, 0)
    parts[0] = y * w - z * v
    parts[1] = z * u - x * w
    parts[2] = x * v - y * u
    return result
