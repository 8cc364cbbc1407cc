"""Quotients and remainders of two tensors, or a tensor and a number, with Python's operators for them."""

from __future__ import annotations

import numpy

from ... import dtypes
from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array
from ...dispatch.constants import NUMBERS
from ...dispatch.decorators import binary, operator, public, tensors
from ...dispatch.signatures import OUT
from ...dispatch.slow_path import not_known
from ...kernels.math import arithmetic as kernels
from ...tensor import Tensor
from .arithmetic import NUMBER_EITHER_WAY, WITH_NUMBER, is_number, overloads


@binary(
    numpy.true_divide,
    promote="float",
    namespace=None,
    method=(),
    dunder="__truediv__",
    number_first=True,
    node="DivBackward0",
    aten="Tensor",
    vmap_name="inplace arithmetic",
)
class div:
    """`input / other`, elementwise, broadcast together."""

    def grad_self(grad, other):
        return grad / other.conj()

    def grad_other(grad, self, other):
        return -grad * ((self / other) / other).conj()


@operator(
    promote="common",
    kernel=kernels.div_rounded,
    namespace=None,
    method=(),
    inplace=True,
    number_first=True,
    node="DivBackward2",
    called="div",
    aten="Tensor",
    vmap_name="inplace arithmetic",
)
class div_rounded:
    """`input / other`, elementwise, rounded: constant between the steps, so the derivative is 0."""

    def forward(self: Array, other: Array, rounding_mode): ...

    def grad_self(grad, other, rounding_mode, xp):
        return xp.zeros_like(grad)

    def grad_other(grad, self, other, rounding_mode, xp):
        return xp.zeros_like(grad)


def _checked_rounding(input, other, rounding_mode):
    if not isinstance(rounding_mode, str):
        got = f"Tensor, {'Tensor, ' if isinstance(other, Tensor) else ''}rounding_mode={type(rounding_mode).__name__}"
        raise TypeError(f"div() received an invalid combination of arguments - got ({got})")
    return rounding_mode


@public(
    name="div",
    method=True,
    alias=("divide",),
    on_arrays=numpy.true_divide,
    numpy_names=True,
    forms=(
        f"Tensor input, Tensor other, {OUT}",
        f"Tensor input, Tensor other, *, str rounding_mode, {OUT[3:]}",
        "Tensor input, Number other, *, str rounding_mode",
    ),
)
def divide(input, other, *, rounding_mode=None, out=None):
    """`input / other`, elementwise, broadcast together; `rounding_mode` is None, `"trunc"` or `"floor"`.

    Integers give the default floating-point dtype, unless the quotient is rounded.

    >>> import adjoint as torch
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    if rounding_mode is None:
        return div(input, other, out=out)
    return div_rounded(input, other, _checked_rounding(input, other, rounding_mode), out=out)


@public(name="div_", method=True, alias=("divide_",), namespace=None)
def divide_(input, other, *, rounding_mode=None):
    """`div` in place."""
    if rounding_mode is None:
        return div.inplace(input, other)
    return div_rounded.inplace(input, other, _checked_rounding(input, other, rounding_mode))


@public(method=("true_divide", "__div__"), numpy_names=True)
def true_divide(input, other, *, out=None):
    """`input / other`, elementwise, broadcast together."""
    return div(input, other, out=out)


@public(method=("true_divide_", "__idiv__"), namespace=None)
def true_divide_(input, other):
    """`true_divide` in place."""
    return div.inplace(input, other)


@public(method=("__rtruediv__", "__rdiv__"), namespace=None)
def rtruediv(input, other):
    """`other / input`, as PyTorch computes it: by the reciprocal."""
    if not is_number(other) and not isinstance(other, (Tensor, numpy.ndarray)):
        return not_known()
    return input.reciprocal() * other


@binary(
    Kernel(kernels.floor_divide, small=numpy.floor_divide, takes=FLOATS),
    namespace=None,
    method=(),
    number_first=True,
    node="NotImplemented",
    called="floor_divide",
    aten_inplace="Tensor",
)
class floor_divide_by_tensor:
    """`input / other`, elementwise, rounded down. PyTorch defines no derivative."""

    def grad_self(grad):
        raise RuntimeError("derivative for aten::floor_divide is not implemented")

    def grad_other(grad):
        raise RuntimeError("derivative for aten::floor_divide is not implemented")


@binary(
    Kernel(kernels.floor_divide, small=numpy.floor_divide, takes=FLOATS),
    namespace=None,
    method=(),
    node="NotImplemented",
    called="floor_divide",
    aten_inplace="Tensor",
)
class floor_divide_by_number:
    """`input / other`, elementwise, rounded down, where `other` is a number. PyTorch defines no derivative."""

    def grad_self(grad):
        raise RuntimeError("derivative for aten::floor_divide is not implemented")


_floor_divide = overloads("floor_divide", floor_divide_by_tensor, floor_divide_by_number, floor_divide_by_tensor)


@public(method=True, numpy_names=True, forms=(f"Tensor input, Tensor other, {OUT}", "Tensor input, Number other"))
def floor_divide(input, other, *, out=None):
    """`input / other`, elementwise, rounded down. PyTorch defines no derivative.

    >>> import adjoint as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    if is_number(input) and is_number(other):
        input = tensors.scalar_tensor(input, dtype=dtypes.scalar_dtype(input))
    return _floor_divide(input, other)(input, other, out=out)


@public(method=("floor_divide_", "__ifloordiv__"), namespace=None)
def floor_divide_(input, other):
    """`floor_divide` in place."""
    return _floor_divide(input, other).inplace(input, other)


@public(method=("__floordiv__",), namespace=None)
def floordiv(input, other):
    """`input // other`."""
    if type(other) in NUMBERS:
        return floor_divide_by_number(input, other)
    return floor_divide(input, other) if isinstance(other, Tensor) or is_number(other) else not_known()


@public(method=("__rfloordiv__",), namespace=None)
def rfloordiv(input, other):
    """`other // input`."""
    return floor_divide(other, input) if isinstance(other, Tensor) or is_number(other) else not_known()


# --- remainders -----------------------------------------------------------------------------------------------


@binary(kernels.remainder, namespace=None, method=(), node="RemainderBackward1", called="remainder", aten="Tensor")
class remainder_by_tensor:
    """What is left of the division rounded down, elementwise."""

    def grad_self(grad):
        return grad

    def grad_other(grad, self, other, xp):
        return -grad * xp.div_rounded(self, other, "floor")


@binary(kernels.remainder, namespace=None, method=(), node="RemainderBackward0", called="remainder", aten="Scalar")
class remainder_by_number:
    """What is left of the division by a number, elementwise."""

    def grad_self(grad):
        return grad


@binary(
    kernels.remainder,
    namespace=None,
    method=(),
    number_first=True,
    inplace=False,
    node="NotImplemented",
    called="remainder",
)
class remainder_of_number:
    """What is left of the division of a number, elementwise. PyTorch defines no derivative."""

    def grad_other(grad):
        raise RuntimeError("derivative for aten::remainder is not implemented")


_remainder = overloads("remainder", remainder_by_tensor, remainder_by_number, remainder_of_number)


@public(method=True, numpy_names=True, forms=NUMBER_EITHER_WAY)
def remainder(input, other, *, out=None):
    """What is left of `input / other` rounded down, elementwise; it has the sign of `other`.

    >>> import adjoint as torch
    >>> torch.remainder(torch.tensor([-3, 3]), 2)
    tensor([1, 1])
    """
    return _remainder(input, other)(input, other, out=out)


@public(method=("remainder_", "__imod__"), namespace=None)
def remainder_(input, other):
    """`remainder` in place."""
    return _remainder(input, other).inplace(input, other)


@public(method=("__mod__",), namespace=None)
def mod(input, other):
    """`input % other`."""
    if type(other) in NUMBERS:
        return remainder_by_number(input, other)
    return remainder(input, other) if isinstance(other, Tensor) or is_number(other) else not_known()


@public(method=("__rmod__",), namespace=None)
def rmod(input, other):
    """`other % input`."""
    return remainder(other, input) if isinstance(other, Tensor) or is_number(other) else not_known()


@binary(
    Kernel(kernels.fmod, small=numpy.fmod, takes=FLOATS),
    namespace=None,
    method=(),
    node="FmodBackward1",
    called="fmod",
    aten="Tensor",
)
class fmod_by_tensor:
    """What is left of the division rounded towards zero, elementwise."""

    def grad_self(grad):
        return grad

    def grad_other(grad, self, other, xp):
        return -grad * xp.div_rounded(self, other, "trunc")


@binary(
    Kernel(kernels.fmod, small=numpy.fmod, takes=FLOATS),
    namespace=None,
    method=(),
    node="FmodBackward0",
    called="fmod",
    aten="Scalar",
)
class fmod_by_number:
    """What is left of the division by a number rounded towards zero, elementwise."""

    def grad_self(grad):
        return grad


_fmod = overloads("fmod", fmod_by_tensor, fmod_by_number)


@public(method=True, numpy_names=True, forms=WITH_NUMBER)
def fmod(input, other, *, out=None):
    """What is left of `input / other` rounded towards zero, elementwise; it has the sign of `input`."""
    return _fmod(input, other)(input, other, out=out)


@public(method=True, namespace=None)
def fmod_(input, other):
    """`fmod` in place."""
    return _fmod(input, other).inplace(input, other)
