"""Elementwise functions of one array that NumPy lacks, or whose rules for dtypes differ from NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.compiled_ufuncs import of_any_size, of_kinds
from ...codegen.kernel import FLOATS, Kernel
from ...codegen.plans import compiled
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ...dtypes import limits_of
from ..memory.copying import clone, widen
from ..runtime.costs import LARGE
from ..runtime.floating import Array, refuse
from ..runtime.scalar import ZERO, Number

_PI = Number(math.pi)


# --- exponentials ---------------------------------------------------------------------------------------------


@pointwise("sigmoid_cpu", "fc")
def sigmoid(self: Array) -> Any:
    """Return `1 / (1 + exp(-self))`."""
    return 1 / (1 + xp.exp(-self))


@pointwise("sigmoid_backward_cpu", "fc")
def sigmoid_backward(grad: Array, result: Array) -> Any:
    """Return `grad * (1 - result) * result`."""
    return ((1 - result) * result).conj() * grad


@pointwise("tanh_backward_cpu", "fc")
def tanh_backward(grad: Array, result: Array) -> Any:
    """Return `grad * (1 - result ** 2)`."""
    return (1 - result * result).conj() * grad


@pointwise("rsqrt_cpu", "fc")
def rsqrt(self: Array) -> Any:
    """Return `1 / sqrt(self)`."""
    return xp.rsqrt(self)


@pointwise("logit_cpu")
def logit(self: Array, eps: float | None = None) -> Any:
    """Return `log(self / (1 - self))`. If `eps` is given, `self` is first clamped to `[eps, 1 - eps]`."""
    if eps is not None:
        low = xp.element(eps)
        self = xp.where(self < low, low, xp.where(self > 1 - low, 1 - low, self))
    return xp.log(self / (1 - self))


@pointwise("logit_backward_cpu")
def logit_backward(grad: Array, self: Array, eps: float | None = None) -> Any:
    """Return the derivative of `logit` times `grad`: 0 where `self` was clamped or, without `eps`, NaN outside [0, 1]."""
    slope = grad / (self * (1 - self))
    if eps is None:
        return xp.where((self >= 0) & (self <= 1), slope, math.nan)
    low = xp.element(eps)
    return xp.where((self >= low) & (self <= 1 - low), slope, 0)


def _log1p(self: Array) -> Any:
    """Return `log(1 + self)`, accurate near 0. NumPy rounds `1 + self` if it is complex."""
    if self.dtype.kind != "c":
        return of_any_size(numpy.log1p)(self)
    real, imag = self.real.astype(numpy.float64), self.imag.astype(numpy.float64)
    near = 0.5 * numpy.log1p(real * (2 + real) + imag * imag)
    larger = numpy.array(self)
    larger.real += 1  # the sum of complex numbers would lose the sign of an imaginary -0, which chooses the branch
    result = numpy.asarray(numpy.log(larger))
    numpy.copyto(result.real, near, where=numpy.maximum(abs(real), abs(imag)) < 0.5)
    return result


def _log1p_over(self: Array) -> None:
    """`_log1p` in place."""
    if self.dtype.kind == "c":
        self[...] = _log1p(self)
    else:
        of_any_size(numpy.log1p)(self, out=self)


log1p = Kernel(_log1p, small=numpy.log1p, dtypes=FLOATS, limit=LARGE - 1, inplace=_log1p_over)


@pointwise("sinc_cpu", "fc")
def sinc(self: Array) -> Any:
    """Return `sin(pi * self) / (pi * self)`, which is 1 at 0."""
    angle = self * math.pi
    return xp.where(self == 0, 1, xp.sin(angle) / angle)


def derivative_of_sinc(self: Array, order: int) -> Array:
    """Return the `order`-th derivative of `sinc`, from the series near 0, and from the derivatives of `x * sinc(x)` elsewhere."""
    angle = numpy.asarray(widen(self) * math.pi)
    result = numpy.asarray(numpy.sin(angle) / angle)
    for n in range(1, order + 1):
        result = numpy.asarray((numpy.sin(angle + n * math.pi / 2) - n * result) / angle)
    near = numpy.abs(angle) < 2 + order
    small, first = angle[near], (order + 1) // 2
    total = numpy.zeros_like(small)
    for k in range(first + 20, first - 1, -1):
        total = total * (small * small) + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order))
    result[near] = total * small if order % 2 else total
    return (result * math.pi**order).astype(self.dtype)


# --- angles ---------------------------------------------------------------------------------------------------


def _real_only(name: str) -> Callable[[Array], Exception]:
    def refusing(array: Array) -> Exception:
        if array.dtype.kind == "c":
            return RuntimeError(f"{name} is not supported for complex tensors.")
        return refuse(f"{name}_cpu", array)

    return refusing


@pointwise(_real_only("deg2rad"))
def deg2rad(self: Array) -> Any:
    """Degrees as radians."""
    return self * (math.pi / 180)


@pointwise(_real_only("rad2deg"))
def rad2deg(self: Array) -> Any:
    """Radians as degrees."""
    return self * (180 / math.pi)


@pointwise("angle_cpu")
def _angle_of_floats(self: Array) -> Any:
    return xp.where(xp.isnan(self), self, xp.where(self < 0, math.pi, 0))


@compiled(_angle_of_floats, least=LARGE)
def angle(self: Array) -> Array:
    """Return the argument of complex numbers. For real numbers it is 0, or pi if they are negative. NaN remains NaN."""
    if self.dtype.kind == "c":
        return numpy.arctan2(self.imag, self.real, order="C")
    angles = numpy.where(self < ZERO[self.dtype], _PI[self.dtype], ZERO[self.dtype])
    return numpy.where(numpy.isnan(self), self, angles)


def conj(self: Array) -> Array:
    """Return the complex conjugates. A real array is returned unchanged."""
    return numpy.conjugate(self) if self.dtype.kind in "cW" else self  # W: complex32


# --- rounding -------------------------------------------------------------------------------------------------


def _rounding(name: str, ufunc: Any) -> Any:
    def kernel(self: Array) -> Array:
        if self.dtype.kind in "iu":
            return clone(self)
        if self.dtype.kind == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        if self.dtype.kind == "b":
            raise refuse(f"{name}_vml_cpu", self)
        return ufunc(self)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of floating-point numbers; integers as they are."
    return kernel


floor = _rounding("floor", numpy.floor)
ceil = _rounding("ceil", numpy.ceil)
trunc = _rounding("trunc", numpy.trunc)
rint = _rounding("round", numpy.rint)


@pointwise("round_cpu")
def round_decimals(self: Array, decimals: int) -> Any:
    """Return `self` rounded to `decimals` decimal places (before the point, if negative). Halves are rounded to even."""
    scale = 10.0 ** abs(decimals)
    return xp.rint(self * scale) / scale if decimals >= 0 else xp.rint(self / scale) * scale


@pointwise("frac_cpu")
def frac(self: Array) -> Any:
    """Return `self` without its integer part. The remainder has the sign of `self`."""
    return self - xp.trunc(self)


# --- signs ----------------------------------------------------------------------------------------------------


def _refuse_negation(array: Array) -> Exception:
    return RuntimeError(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead."
    )


absolute = of_kinds(numpy.absolute, "iufcVW", "abs_cpu")
neg = of_kinds(numpy.negative, "iufcVW", _refuse_negation)


@pointwise("sign_cpu")
def _sign_of_floats(self: Array) -> Any:
    return xp.where(self > 0, 1, xp.where(self < 0, -1, 0))


def _signs_of_floats(self: Array) -> Array:
    """Return `numpy.sign` of floating-point numbers, but 0 for NaN."""
    signs: Array = numpy.sign(self)
    if self.size and signs.item(signs.argmax()) != 1.0:  # the first nan counts as the largest
        return numpy.where(signs == signs, signs, ZERO[self.dtype])
    return signs


@compiled(_sign_of_floats, least=LARGE, small=_signs_of_floats)
def sign(self: Array) -> Array:
    """Return -1, 0 or 1. The result is 0 for NaN."""
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if self.dtype.kind == "b":
        return clone(self)
    if self.dtype.kind in "iu":
        return numpy.sign(self)
    if self.dtype.kind == "f":
        return _signs_of_floats(self)
    zero = ZERO[self.dtype]
    return (self > zero).astype(self.dtype) - (self < zero).astype(self.dtype)


def _sgn(self: Array) -> Array:
    """Return the sign. For a complex number, it is the number of magnitude 1 in the same direction, or 0 for 0."""
    if self.dtype.kind != "c":
        return sign(self)
    magnitude = numpy.absolute(self)
    quotient = numpy.empty_like(self)
    numpy.divide(self.real, magnitude, out=quotient.real)  # by parts: NumPy's complex quotient squares the divisor
    numpy.divide(self.imag, magnitude, out=quotient.imag)
    return numpy.where(magnitude == 0, ZERO[self.dtype], quotient)


sgn = Kernel(_sgn, small=sign.small, dtypes=FLOATS, limit=sign.limit)


# --- properties -----------------------------------------------------------------------------------------------


def _property(name: str, ufunc: Any) -> Any:
    def kernel(self: Array) -> Array:
        return numpy.zeros_like(self, bool) if self.dtype.kind in "iub" else ufunc(self)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = f"`numpy.{ufunc.__name__}`, False for integers."
    return kernel


isnan = _property("isnan", numpy.isnan)
isinf = _property("isinf", numpy.isinf)


def isfinite(self: Array) -> Array:
    """Return whether elements are neither infinite nor NaN."""
    return numpy.ones_like(self, bool) if self.dtype.kind in "iub" else numpy.isfinite(self)


def isposinf(self: Array) -> Array:
    """Return whether elements are infinite and positive."""
    if self.dtype.kind == "c":
        raise RuntimeError("isposinf does not support complex inputs.")
    return numpy.asarray(self == math.inf)


def isneginf(self: Array) -> Array:
    """Return whether elements are infinite and negative."""
    if self.dtype.kind == "c":
        raise RuntimeError("isneginf does not support complex inputs.")
    return numpy.asarray(self == -math.inf)


def isreal(self: Array) -> Array:
    """Return whether the imaginary part is 0."""
    return self.imag == 0 if self.dtype.kind == "c" else numpy.ones_like(self, bool)


def signbit(self: Array) -> Array:
    """Return whether the sign bit is set, for zeros and NaNs too."""
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return self < ZERO[self.dtype] if self.dtype.kind in "iub" else numpy.signbit(self)


@pointwise("nan_to_num")
def _finite(self: Array, nan: float, posinf: float, neginf: float) -> Any:
    return xp.where(xp.isnan(self), nan, xp.where(self == math.inf, posinf, xp.where(self == -math.inf, neginf, self)))


def nan_to_num(
    self: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace NaNs and infinities by finite numbers: by default 0, and the dtype's extremes.

    Both parts of complex numbers are replaced.
    """
    if self.dtype.kind in "iub":
        return clone(self)
    if self.dtype.kind == "c":
        result = numpy.asarray(numpy.positive(self))
        result.real = nan_to_num(self.real, nan, posinf, neginf)
        result.imag = nan_to_num(self.imag, nan, posinf, neginf)
        return result
    limits = limits_of(self.dtype)
    highest = float(limits.max) if posinf is None else posinf
    return _finite.general(self, nan or 0.0, highest, float(limits.min) if neginf is None else neginf)
