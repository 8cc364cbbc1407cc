"""Order, logic, bits and equality up to a tolerance, elementwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..runtime.floating import refuse, unwarned, widen
from ..runtime.layout import laid_out

Array = numpy.ndarray[Any, Any]
Kernel = Callable[[Array, Array], Array]


def _ordering(name: str, ufunc: Any) -> Kernel:
    compute = of_any_size(ufunc)

    def kernel(self: Array, other: Array) -> Array:
        if self.dtype.kind == "c":
            raise refuse(f"{name}_cpu", self)
        return compute(self, other)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = f"`numpy.{ufunc.__name__}`; complex numbers have no order."
    return kernel


lt = _ordering("lt", numpy.less)
le = _ordering("le", numpy.less_equal)
gt = _ordering("gt", numpy.greater)
ge = _ordering("ge", numpy.greater_equal)


_NOT = of_any_size(numpy.logical_not)


def logical_not(self: Array) -> Array:
    """Whether elements are 0."""
    return _NOT(self) if self.dtype.kind != "V" else self == numpy.zeros((), self.dtype)


def _bitwise(name: str, ufunc: Any) -> Kernel:
    compute = of_any_size(ufunc)

    def kernel(self: Array, other: Array) -> Array:
        if self.dtype.kind not in "iub":
            raise refuse(name, self)
        return compute(self, other)

    kernel.__name__ = kernel.__qualname__ = ufunc.__name__
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of integers and bools."
    return kernel


bitwise_and = _bitwise("bitwise_and_cpu", numpy.bitwise_and)
bitwise_or = _bitwise("bitwise_or_cpu", numpy.bitwise_or)
bitwise_xor = _bitwise("bitwise_xor_cpu", numpy.bitwise_xor)


_INVERT = of_any_size(numpy.invert)


def bitwise_not(self: Array) -> Array:
    """The complement of the bits; `not` of bools."""
    if self.dtype.kind not in "iub":
        raise refuse("bitwise_not_cpu", self)
    return _INVERT(self)


def bitwise_left_shift(self: Array, other: Array) -> Array:
    """`self` times 2 to the power `other`; 0 where `other` is negative or beyond the width."""
    if self.dtype.kind not in "iu":
        raise refuse("lshift_cpu", self)
    return _shifted_up(self, other, self.itemsize * 8)


@pointwise("lshift_cpu", "iu")
def _shifted_up(self: Array, other: Array, width: int) -> Any:
    outside = (other < 0) | (other >= width)
    return xp.where(outside, 0, xp.left_shift(self, xp.where(outside, 0, other)))


def bitwise_right_shift(self: Array, other: Array) -> Array:
    """`self` with its bits moved down by `other`, keeping the sign; only the sign is left beyond the width."""
    if self.dtype.kind not in "iu":
        raise refuse("rshift_cpu", self)
    return (_shifted_down if self.dtype.kind == "i" else _moved_down)(self, other, self.itemsize * 8)


@pointwise("rshift_cpu", "i")
def _shifted_down(self: Array, other: Array, width: int) -> Any:
    return xp.right_shift(self, xp.where((other < 0) | (other >= width), width - 1, other))


@pointwise("rshift_cpu", "u")
def _moved_down(self: Array, other: Array, width: int) -> Any:
    outside = (other < 0) | (other >= width)
    return xp.where(outside, 0, xp.right_shift(self, xp.where(outside, 0, other)))


def isclose(first: Array, second: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """Whether elements of two arrays of one dtype differ by no more than `atol + rtol * abs(second)`.

    Infinities must be equal.
    """
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
