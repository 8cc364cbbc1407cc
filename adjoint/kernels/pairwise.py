"""Functions of two numbers, elementwise, that NumPy lacks or defines for other dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .arithmetic import in_float32
from .constants import TWO
from .masking import common_dtype
from .pointwise import refuse
from .precision import is_floating, widen

Array = numpy.ndarray[Any, Any]
Kernel = Callable[[Array, Array], Array]


def _floating_only(name: str, ufunc: Any) -> Kernel:
    def kernel(self: Array, other: Array) -> Array:
        if not is_floating(self.dtype):
            raise refuse(name, self)
        return ufunc(self, other)

    kernel.__name__ = kernel.__qualname__ = ufunc.__name__
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of floating-point numbers."
    return in_float32(kernel) if ufunc is not numpy.nextafter else kernel


hypot = _floating_only("hypot_cpu", numpy.hypot)
nextafter = _floating_only("nextafter_cpu", numpy.nextafter)
atan2 = _floating_only("atan2_cpu", numpy.arctan2)
copysign = _floating_only("copysign_cpu", numpy.copysign)


def _integers_only(name: str, ufunc: Any) -> Kernel:
    def kernel(self: Array, other: Array) -> Array:
        if self.dtype.kind not in "iu":
            raise refuse(name, self)
        return ufunc(self, other)

    kernel.__name__ = kernel.__qualname__ = ufunc.__name__
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of integers."
    return kernel


gcd = _integers_only("gcd_cpu", numpy.gcd)
lcm = _integers_only("lcm_cpu", numpy.lcm)


def ldexp(self: Array, other: Array) -> Array:
    """`self * 2 ** other`, exactly where a floating-point number is scaled by an integer power."""
    if is_floating(self.dtype) and other.dtype.kind == "b":
        raise refuse("ldexp_cpu_exp", other)
    if is_floating(self.dtype) and other.dtype.kind in "iu":
        return _scaled(self, other.astype(numpy.int64, copy=False))
    powers = numpy.power(TWO[common_dtype(other, 2.0)], other.astype(common_dtype(other, 2.0)))
    whole = self.dtype.kind == "c" and other.dtype.kind in "iub"
    dtype = common_dtype(self, other if whole else numpy.asarray(powers))
    return self.astype(dtype) * powers.astype(dtype)


def frexp(self: Array) -> tuple[Array, Array]:
    """Mantissas of magnitude 0.5 to 1 and int32 exponents of 2 that multiply to `self`; exponent 0 for what is not finite."""
    if not is_floating(self.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = numpy.frexp(widen(self))
    exponent = numpy.where(numpy.isfinite(mantissa), exponent, 0).astype(numpy.int32, order="K", copy=False)
    return numpy.asarray(mantissa).astype(self.dtype, copy=False), exponent


@in_float32
def _scaled(self: Array, exponent: Array) -> Array:
    return numpy.asarray(numpy.ldexp(self, exponent))


@in_float32
def logaddexp(self: Array, other: Array) -> Array:
    """`log(exp(self) + exp(other))`, without overflow."""
    if self.dtype.kind == "c":
        return _complex_logaddexp(self, other)
    if self.dtype.kind != "f":
        raise refuse("logaddexp_cpu", self)
    return numpy.logaddexp(self, other)


def _complex_logaddexp(self: Array, other: Array) -> Array:
    first = self.real >= other.real
    larger, smaller = numpy.where(first, self, other), numpy.where(first, other, self)
    result = larger + numpy.log1p(numpy.exp(smaller - larger))
    alike = numpy.isinf(self.real) & (self.real == other.real)
    both = numpy.log(numpy.exp(self) + numpy.exp(other))
    return numpy.where(alike, numpy.where(self.real > 0, both, self), result)


@in_float32
def logaddexp2(self: Array, other: Array) -> Array:
    """`log2(2 ** self + 2 ** other)`, without overflow."""
    if self.dtype.kind == "c":
        scale = numpy.asarray(math.log(2), self.real.dtype)
        return _complex_logaddexp(self * scale, other * scale) / scale
    if self.dtype.kind != "f":
        raise refuse("logaddexp2_cpu", self)
    return numpy.logaddexp2(self, other)
