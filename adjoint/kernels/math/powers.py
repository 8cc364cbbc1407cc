"""Powers of arrays and numbers, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.costs import LARGE
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..index.masking import common_dtype
from ..runtime.floating import FLOAT32, FLOAT64, HALVES, Array
from ..runtime.layout import row_major
from ..runtime.scalar import ONE, ZERO, scalar_array
from .arithmetic import by_number, in_float32, rounded_number


@in_float32
def power(self: Array, exponent: Array) -> Array:
    """Return `self` to the power `exponent`. Negative powers of integers are rounded towards zero."""
    if self.dtype.kind == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if self.dtype.kind == "i" and (exponent < 0).any():
        whole = numpy.power(self, numpy.maximum(exponent, ZERO[self.dtype]))
        unit = numpy.where(
            numpy.abs(self) == 1, numpy.where(exponent % 2 == 0, ONE[self.dtype], self), ZERO[self.dtype]
        )
        return numpy.where(exponent < 0, unit, whole)
    return numpy.power(self, exponent)


def power_of_numbers(self: Array, exponent: Any) -> Array:
    """Return `self` to the power of a number."""
    self = numpy.asarray(self)
    dtype = self.dtype
    if dtype in HALVES:
        exponent = rounded_number(exponent, dtype)
    if (dtype is FLOAT32 or dtype is FLOAT64) and type(exponent) is not complex:
        return numpy.square(self) if exponent == 2 and self.size < LARGE else _to_number(self, exponent)
    common = common_dtype(self, exponent)
    if common.kind == "b":
        return self | (not exponent)
    if common.kind in "iu":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if exponent == 2:  # in a fifth of the time of `numpy.power`
            return numpy.square(self.astype(common, copy=False))
        exponent = scalar_array(exponent, dtypes.from_numpy(common))
        return numpy.power(self.astype(common), exponent)
    if common.kind == "c" and exponent == 2 and self.dtype is common and self.size >= LARGE:
        return numpy.asarray(of_any_size(numpy.square)(self))
    return _to_number(self.astype(common, copy=False), exponent)


@pointwise("pow", "fc")
def _to_number(self: Array, exponent: float) -> Any:
    """Return `self` to the power of a number. Some powers are computed as products, quotients and roots."""
    if exponent == 2:
        return xp.square(self)
    if exponent == 0.5:
        return xp.sqrt(self)
    if exponent == 3:
        return self * self * self
    if exponent == -1:
        return xp.reciprocal(self)
    if exponent == -2:
        return xp.reciprocal(self * self)
    if exponent == -0.5:
        return xp.reciprocal(xp.sqrt(self))
    return xp.power(self, exponent)


def power_backward(grad: Array, self: Array, exponent: Any) -> Array:
    """Return `grad` times the derivative of `self ** exponent`."""
    dtype = grad.dtype
    traced = dtype is FLOAT32 or dtype is FLOAT64 or (dtype.kind == "c" and exponent in (2, 3))
    if traced and grad.size >= LARGE and dtype is self.dtype:
        result: Array = _times_slope(grad, self, exponent)
        return result
    return grad * _scaled_power(power_of_numbers(self, exponent - 1), exponent).conj()


_scaled_power = by_number(numpy.multiply)


@pointwise("pow", "fc")
def _times_slope(grad: Array, self: Array, exponent: float) -> Any:
    """Return `power_backward` of many numbers."""
    if exponent == 2:
        return grad * (self * 2).conj()
    if exponent == 3:
        return grad * (self * self * 3).conj()
    return grad * (xp.power(self, exponent - 1) * exponent)


def number_to_powers(self: Any, exponent: Array) -> Array:
    """Return a number to the powers `exponent`."""
    dtype = common_dtype(self, exponent)
    if dtype.kind in "iub":
        base = scalar_array(self, dtypes.from_numpy(dtype))
    else:
        base = numpy.asarray(self).astype(dtype)
    return row_major(power(base, exponent.astype(dtype, copy=False)))
