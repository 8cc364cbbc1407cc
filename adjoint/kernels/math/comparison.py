"""Elementwise order, logic, bit operations, and equality up to a tolerance."""

from __future__ import annotations

from typing import Any

import numpy

from ...codegen.compiled_ufuncs import of_any_size, of_kinds
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..memory.copying import widen
from ..runtime.floating import Array, refuse, unwarned
from ..runtime.layout import laid_out

_ORDERED = "biufVW"

lt, le, gt, ge = (
    of_kinds(ufunc, _ORDERED, f"{name}_cpu", name)
    for name, ufunc in {
        "lt": numpy.less, "le": numpy.less_equal, "gt": numpy.greater, "ge": numpy.greater_equal,
    }.items()
)  # fmt: skip

_NOT = of_any_size(numpy.logical_not)


def logical_not(self: Array) -> Array:
    """Return whether elements are 0."""
    return _NOT(self) if self.dtype.kind != "V" else self == numpy.zeros((), self.dtype)


bitwise_and = of_kinds(numpy.bitwise_and, "iub", "bitwise_and_cpu")
bitwise_or = of_kinds(numpy.bitwise_or, "iub", "bitwise_or_cpu")
bitwise_xor = of_kinds(numpy.bitwise_xor, "iub", "bitwise_xor_cpu")
bitwise_not = of_kinds(numpy.invert, "iub", "bitwise_not_cpu", "bitwise_not")
_LEFT_SHIFT, _RIGHT_SHIFT = of_any_size(numpy.left_shift), of_any_size(numpy.right_shift)


def bitwise_left_shift(self: Array, other: Array) -> Array:
    """Return `self` times 2 to the power `other`, or 0 where `other` is negative or exceeds the width."""
    if self.dtype.kind not in "iu":
        raise refuse("lshift_cpu", self)
    width = self.itemsize * 8
    if other.ndim == 0 and 0 <= other < width:
        return _LEFT_SHIFT(self, other)
    return _shifted_up(self, other, width)


@pointwise("lshift_cpu", "iu")
def _shifted_up(self: Array, other: Array, width: int) -> Any:
    outside = (other < 0) | (other >= width)
    return xp.where(outside, 0, xp.left_shift(self, xp.where(outside, 0, other)))


def bitwise_right_shift(self: Array, other: Array) -> Array:
    """Return `self` with its bits shifted right by `other`. Only the sign remains if `other` exceeds the width."""
    if self.dtype.kind not in "iu":
        raise refuse("rshift_cpu", self)
    width = self.itemsize * 8
    if other.ndim == 0 and 0 <= other < width:
        return _RIGHT_SHIFT(self, other)
    return (_shifted_down if self.dtype.kind == "i" else _moved_down)(self, other, width)


@pointwise("rshift_cpu", "i")
def _shifted_down(self: Array, other: Array, width: int) -> Any:
    return xp.right_shift(self, xp.where((other < 0) | (other >= width), width - 1, other))


@pointwise("rshift_cpu", "u")
def _moved_down(self: Array, other: Array, width: int) -> Any:
    outside = (other < 0) | (other >= width)
    return xp.where(outside, 0, xp.right_shift(self, xp.where(outside, 0, other)))


def isclose(first: Array, second: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """Return whether elements of one dtype are equal or finite and differ by at most `atol + rtol * abs(second)`."""
    close = laid_out(numpy.asarray(numpy.equal(first, second)), (first, second))
    inexact = first.dtype.kind in "fcVW"
    if equal_nan and inexact:
        close = close | ((first != first) & (second != second))
    if rtol == 0 and atol == 0:
        return numpy.asarray(close)
    first, second = widen(first), widen(second)
    if not inexact:
        first, second = first.astype(numpy.float64), second.astype(numpy.float64)
    real = numpy.abs(second).dtype.type
    with unwarned():
        allowed = real(atol) + numpy.abs(real(rtol) * second)
        difference = numpy.abs(first - second)
        close = close | (numpy.isfinite(difference) & (difference <= allowed))
    return numpy.asarray(close)
