"""Elementwise arithmetic whose rules differ from NumPy's."""

from __future__ import annotations

from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


def add(self: Array, other: Array, *, alpha: Any = 1) -> Array:
    """`self + alpha * other`."""
    return self + (other if alpha == 1 else other * self.dtype.type(alpha))


def sub(self: Array, other: Array, *, alpha: Any = 1) -> Array:
    """`self - alpha * other`."""
    return self - (other if alpha == 1 else other * self.dtype.type(alpha))


def rsub(self: Array, other: Array, *, alpha: Any = 1) -> Array:
    """`other - alpha * self`."""
    return other - (self if alpha == 1 else self * self.dtype.type(alpha))


def div(self: Array, other: Array, *, rounding_mode: str | None = None) -> Array:
    """The quotient: true, rounded towards zero (`"trunc"`), or rounded down (`"floor"`)."""
    if rounding_mode is None:
        return numpy.true_divide(self, other)
    if rounding_mode == "trunc":
        return trunc_divide(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


def trunc_divide(self: Array, other: Array) -> Array:
    """The quotient rounded towards zero, in the dtype of the operands."""
    if self.dtype.kind in "iub":
        check_divisor(other)
        quotient = numpy.floor_divide(self, other)
        if self.dtype.kind == "i":
            inexact = (quotient * other != self) & ((self < 0) != (other < 0))
            quotient = quotient + inexact.astype(quotient.dtype)
        return quotient
    return numpy.trunc(numpy.true_divide(self, other))


def floor_divide(self: Array, other: Array) -> Array:
    """The quotient rounded down, in the dtype of the operands."""
    if self.dtype.kind in "iub":
        check_divisor(other)
        return numpy.floor_divide(self, other)
    with numpy.errstate(all="ignore"):
        quotient = numpy.floor_divide(self, other)
        return numpy.where(other == 0, numpy.true_divide(self, other), quotient)


def remainder(self: Array, other: Array) -> Array:
    """What is left of the division rounded down; it has the sign of `other`."""
    if self.dtype.kind in "iub":
        check_divisor(other)
    return numpy.remainder(self, other)


def fmod(self: Array, other: Array) -> Array:
    """What is left of the division rounded towards zero; it has the sign of `self`."""
    if self.dtype.kind in "iub":
        check_divisor(other)
    return numpy.fmod(self, other)


def check_divisor(other: Array) -> None:
    """Raise for a division of integers by zero."""
    if not numpy.all(other):
        raise RuntimeError("ZeroDivisionError")


def pow(self: Array, exponent: Array) -> Array:  # noqa: A001  (PyTorch's name)
    """`self` to the power `exponent`; integers to a negative power give what dividing 1 gives."""
    if self.dtype.kind in "iu" and exponent.dtype.kind == "i" and (exponent < 0).any():
        whole = numpy.power(self, numpy.maximum(exponent, 0))
        inverse = numpy.where(numpy.abs(self) == 1, numpy.where(exponent % 2 == 0, 1, self), 0)
        return numpy.where(exponent < 0, inverse, whole).astype(self.dtype)
    return numpy.power(self, exponent)
