"""Elementwise arithmetic that NumPy lacks or defines differently: division of integers, powers, and fused multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy._core.multiarray import count_nonzero  # without a look for other array types

from ... import dtypes
from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import large_with_number, of_any_size, of_kinds
from ...codegen.elementary import elementary
from ...codegen.kernel import FLOATS, SMALL, Kernel
from ...codegen.plans import compiled
from ...codegen.pointwise import of_operation, pointwise
from ...codegen.tracing import xp
from ..index.masking import common_dtype
from ..memory.copying import convert, expanded, widen
from ..runtime.costs import LARGE
from ..runtime.floating import FLOAT32, FLOAT64, HALVES, Array, c_name, compute_dtype, is_floating, refuse
from ..runtime.layout import row_major
from ..runtime.scalar import ONE, TWO, ZERO, scalar_array, typed


def in_float32(function: Callable[..., Array], *, at_once: Any = None) -> Kernel:
    """Return a kernel of `function`, a function of arrays of one dtype. Half types are computed in float32 and rounded once.

    `at_once`: a function that computes arrays of half types without conversions if `alpha` is 1.
    """

    def kernel(self: Array, *others: Any, **options: Any) -> Array:
        dtype = self.dtype
        if dtype.itemsize != 2 or dtype not in HALVES:
            return function(self, *others, **options)
        if at_once is not None and type(alpha := options.get("alpha", 1)) is not bool and alpha == 1:
            return numpy.asarray(at_once(self, *others))
        if "alpha" in options:
            options["alpha"] = rounded_number(options["alpha"], dtype)
        widened = [widen(other) if isinstance(other, numpy.ndarray) else other for other in others]
        return numpy.asarray(function(widen(self), *widened, **options)).astype(dtype)

    kernel.__name__ = kernel.__qualname__ = function.__name__
    kernel.__doc__ = function.__doc__
    kernel.reads_lazy = at_once is not None  # type: ignore[attr-defined]
    return Kernel(kernel, small=function, dtypes=FLOATS)


def rounded_number(number: Any, dtype: Any) -> Any:
    """Return a number as an element of the half type `dtype`, as PyTorch passes factors and exponents."""
    return scalar_array(number, dtypes.from_numpy(dtype)).item() if type(number) in (int, float) else number


def by_number(ufunc: Any) -> Callable[..., Array]:
    """Apply `ufunc` to an array and a number, which counts less in promotion. Half types are computed in float32."""
    large = large_with_number(ufunc)

    def kernel(self: Array, other: Any) -> Array:
        if large is not None and self.size >= large.elements and (self.dtype.kind in "fc" or self.dtype in HALVES):
            return large.direct(self, other)
        if self.dtype.kind in "fc" and (self.dtype.kind == "c" or not isinstance(other, complex)):
            return ufunc(self, other)
        dtype = common_dtype(numpy.asarray(self), other)  # formulas may pass a NumPy scalar
        if dtype.kind in "iub" and ufunc is numpy.true_divide:
            dtype = dtypes.get_default_dtype().numpy
        computed = compute_dtype(dtype)
        return numpy.asarray(ufunc(self.astype(computed), computed.type(other))).astype(dtype, copy=False)

    return kernel


# --- sums and differences -------------------------------------------------------------------------------------


def scaled(other: Array, alpha: Any) -> Array:
    """Return `alpha * other` in the dtype of `other`."""
    if type(alpha) is float and other.dtype.char in "fd":
        return other * alpha
    kind = other.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return other if alpha == 1 else other * typed(alpha, other.dtype)


@pointwise("add_cpu")
def _add_multiple(self: Array, other: Array, alpha: float) -> Any:
    return self + other * alpha


def _are_large(self: Array, other: Array) -> bool:
    return self.dtype is other.dtype and self.dtype.char in "fd" and LOOPS.takes(max(self.size, other.size), LARGE)


def _sum(ufunc: Any, at_once: Any, sign: int, name: str) -> tuple[Kernel, Callable[..., None]]:
    """Return the kernel that computes `self + sign * alpha * other`, and the function that does so in place."""

    def kernel(self: Array, other: Array, *, alpha: Any = 1) -> Array:
        if alpha != 1 and _are_large(self, other) and type(alpha) in (int, float):
            return numpy.asarray(_add_multiple.general(self, other, sign * alpha))
        found: Array = at_once(self, scaled(other, alpha))
        return found

    def in_place(self: Array, other: Array, *, alpha: Any = 1) -> None:
        if alpha != 1 and _are_large(self, other) and type(alpha) in (int, float):
            _add_multiple.inplace(self, other, sign * alpha)
        elif self.dtype.char in "fd":
            ufunc(self, scaled(other, alpha), out=self)
        else:
            self[...] = expanded(whole(self, other, alpha=alpha), self)

    kernel.__name__, in_place.__name__ = name, f"{name}_"
    whole = in_float32(kernel, at_once=at_once)
    return whole, in_place


add, add_ = _sum(numpy.add, of_any_size(numpy.add), 1, "add")
sub, sub_ = _sum(numpy.subtract, of_any_size(numpy.subtract), -1, "sub")


def subtracted_from(self: Array, other: Array) -> Array:
    """Return `other - self`."""
    return numpy.subtract(other, self)


@in_float32
def rsub(self: Array, other: Array, *, alpha: Any = 1) -> Array:
    """Return `other - alpha * self`."""
    return other - scaled(self, alpha)


# --- quotients and remainders ---------------------------------------------------------------------------------


def _of_integers(self: Array, other: Array, expression: Kernel, ufunc: Callable[..., Array]) -> Array:
    """Return the value of an expression for many integers, or of a ufunc for a few."""
    if count_nonzero(other) < other.size and self.size:
        raise RuntimeError("ZeroDivisionError")
    if self.dtype is other.dtype and LOOPS.takes(self.size, LARGE):
        return numpy.asarray(expression.general(self, other))
    return numpy.asarray(ufunc(self, other))


@pointwise("div_floor_cpu", "iu")
def _floor_divide_of_integers(self: Array, other: Array) -> Any:
    return xp.floor_divide(self, other)


@pointwise("div_trunc_cpu", "iu")
def _trunc_divide_of_integers(self: Array, other: Array) -> Any:
    upward = xp.where(other < 0, other + 1, other - 1)
    return xp.floor_divide(self + xp.where((self < 0) ^ (other < 0), upward, 0), other)


def div_rounded(self: Array, other: Array, rounding_mode: str) -> Array:
    """Return the quotient rounded towards zero (`"trunc"`) or down (`"floor"`)."""
    if rounding_mode == "trunc":
        return trunc_divide(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@pointwise("div_trunc_cpu")
def _trunc_divide_of_floats(self: Array, other: Array) -> Any:
    return xp.trunc(self / other)


def trunc_divide(self: Array, other: Array) -> Any:
    """Return the quotient rounded towards zero."""
    kind = self.dtype.kind if self.dtype is other.dtype else numpy.result_type(self, other).kind
    if kind not in "iu":
        return _trunc_divide_of_floats.general(self, other)
    truncating = lambda self, other: numpy.floor_divide(self - numpy.fmod(self, other), other)
    return _of_integers(self, other, _trunc_divide_of_integers, truncating)


@pointwise("div_floor_cpu")
def _floor_divide_of_floats(self: Array, other: Array) -> Any:
    left = xp.fmod(self, other)
    quotient = (self - left) / other
    quotient = xp.where((left != 0) & ((other < 0) ^ (left < 0)), quotient - 1, quotient)
    down = xp.floor(quotient)
    down = xp.where(quotient - down > 0.5, down + 1, down)
    down = xp.where(quotient == 0, xp.copysign(0, self / other), down)
    return xp.where(other == 0, self / other, down)


@compiled(_floor_divide_of_floats, least=LARGE, small=numpy.floor_divide)
@in_float32
def floor_divide(self: Array, other: Array) -> Array:
    """Return the quotient rounded down."""
    kind = self.dtype.kind if self.dtype is other.dtype else numpy.result_type(self, other).kind
    if kind in "bc":
        raise refuse("div_floor_cpu", self)
    if kind in "iu":
        return _of_integers(self, other, _floor_divide_of_integers, numpy.floor_divide)
    return numpy.floor_divide(self, other)


@pointwise("remainder_cpu", "fiu")
def _remainder(self: Array, other: Array) -> Any:
    left = xp.fmod(self, other)
    return xp.where((left != 0) & ((other < 0) ^ (left < 0)), left + other, left)


@compiled(_remainder, least=LARGE, small=_remainder.general)
@in_float32
def remainder(self: Array, other: Array) -> Array:
    """Return the remainder of the division that rounds down, with the sign of `other`, or of `self` if it is zero."""
    if self.dtype.kind in "bc":
        raise refuse("remainder_cpu", self)
    if self.dtype.kind in "iu":
        return _of_integers(self, other, _remainder, numpy.remainder)
    result = numpy.asarray(numpy.remainder(self, other))
    if result.dtype.kind == "f" and not result.all():
        numpy.copysign(result, self, out=result, where=result == 0)
    return result


@pointwise("fmod_cpu", "fiu")
def _fmod(self: Array, other: Array) -> Any:
    return xp.fmod(self, other)


@compiled(_fmod, least=LARGE, small=numpy.fmod)
@in_float32
def fmod(self: Array, other: Array) -> Array:
    """Return the remainder of the division that rounds towards zero. The remainder has the sign of `self`."""
    if self.dtype.kind in "bc":
        raise refuse("fmod_cpu", self)
    if self.dtype.kind in "iu":
        return _of_integers(self, other, _fmod, numpy.fmod)
    return numpy.fmod(self, other)


# --- fused ----------------------------------------------------------------------------------------------------


@pointwise("addcmul_cpu_out", "fciu")
def addcmul(self: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Any:
    """Return `self + value * tensor1 * tensor2`."""
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * value)


@pointwise("addcdiv_cpu_out", "fc")
def addcdiv(self: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Any:
    """Return `self + value * tensor1 / tensor2`."""
    return self + (tensor1 if value == 1 else tensor1 * value) / tensor2


def lerp(self: Array, end: Array, weight: Any, out: Array | None = None) -> Array:
    """Return `self + weight * (end - self)`, computed from the nearer end. `weight` is an array or a number."""
    if end.dtype is self.dtype and type(weight) is float:
        return _between(self, end, weight, out)
    if isinstance(weight, numpy.ndarray) and not weight.ndim and self.ndim and weight.dtype.kind != "c":
        weight = weight.astype(self.dtype)
    for name, other in (("end", end), ("weight", weight)):
        if isinstance(other, numpy.ndarray) and other.dtype != self.dtype:
            kinds = [c_name(array.dtype) for array in (self, other)]
            raise RuntimeError(f"expected dtype {kinds[0]} for `{name}` but got dtype {kinds[1]}")
    return (_between_arrays if isinstance(weight, numpy.ndarray) else _between)(self, end, weight, out)


def lerp_(self: Array, end: Array, weight: Any) -> None:
    """Execute `self += weight * (end - self)`."""
    result = lerp(self, end, weight, self)
    if result is not self:
        self[...] = expanded(result, self)


@pointwise("lerp_kernel_scalar", "fc")
def _between(self: Array, end: Array, weight: float) -> Any:
    """Compute `lerp` with one weight."""
    if abs(weight) < 0.5:
        return self + weight * (end - self)
    return end - (end - self) * (1 - weight)


@pointwise("lerp_kernel_tensor", "fc")
def _between_arrays(self: Array, end: Array, weight: Array) -> Any:
    """Compute `lerp` with an array of weights."""
    step = end - self
    return xp.where(xp.absolute(weight) < 0.5, self + weight * step, end - step * (1 - weight))


hypot = in_float32(of_kinds(numpy.hypot, "fV", "hypot_cpu"))
atan2 = in_float32(of_kinds(numpy.arctan2, "fV", "atan2_cpu"))
copysign = in_float32(of_kinds(numpy.copysign, "fV", "copysign_cpu"))
_nextafter = of_kinds(numpy.nextafter, "fV", "nextafter_cpu")


@compiled("math.neighbours.nextafter", least=LARGE)
def nextafter(self: Array, other: Array) -> Array:
    """Return the next number after `self` in the direction of `other`."""
    result: Array = _nextafter(self, other)
    return result


_LCM, _ABSOLUTE = of_any_size(numpy.lcm), of_any_size(numpy.absolute)


def _lcm(self: Array, other: Array) -> Array:
    """Compute `numpy.lcm` without the sign that results from an overflow."""
    result: Array = _ABSOLUTE(_LCM(self, other))
    return result


gcd = of_kinds(numpy.gcd, "iu", "gcd_cpu")
lcm = of_kinds(_lcm, "iu", "lcm_cpu", "lcm")


def ldexp(self: Array, other: Array) -> Array:
    """Return `self * 2 ** other`. The result is exact if a floating-point number is scaled by an integer power."""
    if is_floating(self.dtype) and other.dtype.kind == "b":
        raise refuse("ldexp_cpu_exp", other)
    if is_floating(self.dtype) and other.dtype.kind in "iu":
        if self.dtype.char in "fd" and LOOPS.takes(max(self.size, other.size), LARGE):
            exponent = convert(other, self.dtype)
            out = exponent if exponent.strides == self.strides and exponent.shape == self.shape else None
            return numpy.asarray(_scaled_by_loops.expression.run((self, exponent), (), out))
        return _scaled(self, other.astype(numpy.int64, copy=False))
    powers = numpy.power(TWO[common_dtype(other, 2.0)], other.astype(common_dtype(other, 2.0)))
    whole = self.dtype.kind == "c" and other.dtype.kind in "iub"
    dtype = common_dtype(self, other if whole else numpy.asarray(powers))
    return self.astype(dtype) * powers.astype(dtype)


def frexp(self: Array) -> tuple[Array, Array]:
    """Return mantissas of magnitude 0.5 to 1 and int32 exponents of 2 (0 for NaN and inf) whose product is `self`."""
    if not is_floating(self.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = map(numpy.asarray, numpy.frexp(widen(self)))
    numpy.copyto(exponent, 0, where=~numpy.isfinite(mantissa))
    return mantissa.astype(self.dtype, copy=False), exponent.astype(numpy.int32, copy=False)


@elementary("ldexp")
def _ldexp(self: Array, exponent: Array) -> Any:
    """Compute `ldexp` in float64, which represents all float32 numbers, and round once."""
    return numpy.ldexp(self, exponent.astype(numpy.int64))


_scaled_by_loops = of_operation("ldexp", "ldexp_cpu", arity=2)
"""Compute `ldexp` for exponents that are floating-point numbers."""


@in_float32
def _scaled(self: Array, exponent: Array) -> Array:
    return numpy.asarray(numpy.ldexp(self, exponent))


@pointwise("logaddexp_cpu")
def _logaddexp_of_floats(self: Array, other: Array) -> Any:
    larger, distance = xp.maximum(self, other), xp.abs(self - other)
    return xp.where(self == other, self + math.log(2), larger + xp.log1p(xp.exp(-distance)))


def _logaddexp(self: Array, other: Array) -> Array:
    """Return `log(exp(self) + exp(other))` without overflow."""
    if self.dtype.kind == "c":
        return _complex_logaddexp(self, other)
    return _logaddexp_of_floats.general(self, other)


logaddexp = Kernel(
    _logaddexp,
    small=_logaddexp_of_floats.small,
    dtypes=FLOATS,
    quiet=SMALL,
    expression=_logaddexp_of_floats.expression,
)


def _complex_logaddexp(self: Array, other: Array) -> Array:
    first = self.real >= other.real
    larger, smaller = numpy.where(first, self, other), numpy.where(first, other, self)
    result = larger + numpy.log1p(numpy.exp(smaller - larger))
    alike = numpy.isinf(self.real) & (self.real == other.real)
    both = numpy.log(numpy.exp(self) + numpy.exp(other))
    return numpy.where(alike, numpy.where(self.real > 0, both, self), result)


@pointwise("logaddexp2_cpu")
def logaddexp2(self: Array, other: Array) -> Any:
    """Return `log2(2 ** self + 2 ** other)` without overflow."""
    larger = xp.where(self > other, self, other)
    sum = larger + xp.log1p(xp.exp2(-xp.abs(self - other))) * (1 / math.log(2))
    return xp.where(self == other, self + 1, sum)


# --- powers ----------------------------------------------------------------------------------------------------


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
    if common.kind == "c" and exponent == 2 and self.dtype is common:
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
