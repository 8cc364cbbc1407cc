"""Rounding to the numbers of quantized tensors: the results, and the masks of the elements within the range."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy

from ..runtime.floating import Array, check_floating, compute_dtype, type_name
from ..runtime.shapes import require_dims


def per_tensor(self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """Round to multiples of `scale`, a number or an array of one element. As in PyTorch, the product is rounded to float32."""
    numbers = not isinstance(zero_point, numpy.ndarray)
    _check_range(quant_min, quant_max, not numbers or quant_min <= zero_point <= quant_max)
    for array in () if numbers else (scale, zero_point):
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    check_floating("fake_quantize_tensor_cachemask_kernel_type_handling", self)
    wide = self.astype(compute_dtype(self.dtype), copy=False)
    step = numpy.asarray(scale).astype(numpy.float32).reshape(())
    zero = int(zero_point if numbers else zero_point.item())
    rounded = numpy.rint(wide * (1 / step)) + wide.dtype.type(zero)
    limited = numpy.fmin(numpy.fmax(rounded, numpy.float64(quant_min)), numpy.float64(quant_max))
    result = (limited - zero).astype(numpy.float32) * step
    mask = (rounded >= quant_min) & (rounded <= quant_max)
    return numpy.asarray(result.astype(self.dtype, copy=False)), numpy.asarray(mask)


def per_channel(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    """Round to multiples of one number per index of dimension `axis`. Infinite numbers and NaN become `quant_min`."""
    kinds = type_name(scale.dtype), type_name(zero_point.dtype)
    if kinds[0] not in ("Float", "BFloat16"):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {kinds[0]}")
    if kinds[1] not in ("Int", "Float", "Half"):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {kinds[1]}")
    if scale.ndim != 1 or zero_point.ndim != 1:
        raise RuntimeError(f"{'scale' if scale.ndim != 1 else 'zero point'} should be a 1-D tensor")
    if scale.size != zero_point.size:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    require_dims(self, axis)
    if scale.size != self.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    whole = kinds[1] == "Int"
    _check_range(quant_min, quant_max, not whole or ((zero_point >= quant_min) & (zero_point <= quant_max)).all())
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    check_floating("fake_quantize_channel_cachemask_cpu_type_handling", self)
    shape = (-1,) + (1,) * (self.ndim - axis - 1)
    step, zero = scale.astype(numpy.float32).reshape(shape), zero_point.astype(numpy.float64).reshape(shape)
    wide, inverse = self.astype(compute_dtype(self.dtype), copy=False), 1 / step
    if whole:
        rounded = numpy.rint(wide * inverse) + zero.astype(wide.dtype)
    else:  # PyTorch rounds after the addition. It fuses the addition of float32 with the product.
        exact = numpy.float64 if kinds[1] == "Float" else wide.dtype
        rounded = numpy.rint((wide * inverse.astype(exact) + zero.astype(exact)).astype(numpy.float32))
    whole_numbers = rounded.astype(numpy.float64) + 0.0  # no -0.0
    whole_numbers = numpy.where(abs(whole_numbers) < 2.0**63, whole_numbers, quant_min - 1)
    result = ((whole_numbers.clip(quant_min, quant_max) - zero) * step).astype(wide.dtype)
    return result.astype(self.dtype, copy=False), (whole_numbers >= quant_min) & (whole_numbers <= quant_max)


def _check_range(quant_min: int, quant_max: int, has_zero_points: Any) -> None:
    if index(quant_min) > index(quant_max):
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")  # sic
    if not has_zero_points:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
