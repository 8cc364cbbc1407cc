"""Elementwise arithmetic of two tensors, or a tensor and a number, with Python's operators for it.

PyTorch has one function, and one node, for a number as operand and another for a tensor where the derivative by the
number would cost something. Those are declared one by one, and a function of the public name chooses.
"""

from __future__ import annotations

import numpy

from ... import dtypes
from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array, Number
from ...dispatch.arguments import invalid_arguments
from ...dispatch.constants import NUMBERS
from ...dispatch.decorators import binary, operator, public, tensors
from ...dispatch.slow_path import not_known
from ...kernels.math import arithmetic as kernels
from ...tensor import Tensor


def is_number(value):
    """Whether `value` is what PyTorch takes as a number."""
    return isinstance(value, (int, float, complex, numpy.number, numpy.bool_))


def conjugate(number):
    """The complex conjugate of a Python number."""
    return number.conjugate() if isinstance(number, complex) else number


def overloads(name, of_tensors, by_number, of_number=None):
    """What chooses the operator of a function by its two operands, and raises for what none takes."""

    def choose(input, other):
        if isinstance(input, Tensor):
            if isinstance(other, Tensor):
                return of_tensors
            if is_number(other):
                return by_number
        elif of_number is not None and isinstance(other, Tensor) and is_number(input):
            return of_number
        raise invalid_arguments(name, input, other)

    return choose


# --- sums and differences -------------------------------------------------------------------------------------


@operator(
    promote="common",
    kernel=Kernel(kernels.add, small=numpy.add, inplace=kernels.add_),
    inplace=True,
    dunder="__add__",
    reflected="__radd__",
    number_first=True,
    formerly=("alpha",),
    tangent="elementwise",
)
class add:
    """`input + alpha * other`, elementwise, broadcast together.

    >>> import adjoint as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    def grad_self(grad):
        return grad

    def grad_other(grad, alpha):
        return grad if alpha == 1 else grad * conjugate(alpha)


@operator(kernel=kernels.by_number(numpy.add), namespace=None, method=False, node="AddBackward1", tangent="elementwise")
class add_number:
    """`input + other`, elementwise, where `other` is a number: what PyTorch's own composed functions use."""

    def forward(self: Array, other): ...

    def grad_self(grad):
        return grad


@operator(
    kernel=kernels.by_number(numpy.subtract), namespace=None, method=False, node="SubBackward1", tangent="elementwise"
)
class sub_number:
    """`input - other`, elementwise, where `other` is a number, in functions that PyTorch composes."""

    def forward(self: Array, other): ...

    def grad_self(grad):
        return grad


def _is_bool(value):
    return value.dtype is dtypes.bool if isinstance(value, Tensor) else isinstance(value, bool)


def no_bool(self, other, *_):
    """Raise if one of two operands to be subtracted is of bools."""
    if _is_bool(self) and _is_bool(other):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if _is_bool(self) or _is_bool(other):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@operator(
    promote="common",
    kernel=Kernel(kernels.sub, small=numpy.subtract, inplace=kernels.sub_),
    inplace=True,
    dunder="__sub__",
    alias=("subtract",),
    check=no_bool,
    number_first=True,
    formerly=("alpha",),
    tangent="elementwise",
)
class sub:
    """`input - alpha * other`, elementwise, broadcast together."""

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    def grad_self(grad):
        return grad

    def grad_other(grad, alpha):
        return -grad if alpha == 1 else grad * -conjugate(alpha)


@operator(
    promote="common",
    kernel=Kernel(kernels.rsub, small=kernels.subtracted_from),
    elementwise=("other", "self"),
    namespace=None,
    method=(),
    node="RsubBackward0",
    out=False,
    check=no_bool,
    called="rsub",
    tangent="elementwise",
)
class rsub_tensor:
    """`other - alpha * input`, elementwise, broadcast together."""

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    def grad_self(grad, alpha):
        return -grad if alpha == 1 else grad * -conjugate(alpha)

    def grad_other(grad):
        return grad


@operator(
    promote="common",
    kernel=Kernel(kernels.rsub, small=kernels.subtracted_from),
    namespace=None,
    method=(),
    node="RsubBackward1",
    out=False,
    check=no_bool,
    called="rsub",
    tangent="elementwise",
)
class rsub_number:
    """`other - alpha * input`, elementwise, where `other` is a number."""

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    def grad_self(grad, alpha):
        return -grad if alpha == 1 else grad * -conjugate(alpha)


_rsub = overloads("rsub", rsub_tensor, rsub_number)


@public(numpy_names=True)
def rsub(input, other, *, alpha=1):
    """`other - alpha * input`, elementwise, broadcast together."""
    return _rsub(input, other)(input, other, alpha=alpha)


@public(namespace=None, method=("__rsub__",))
def reflected_sub(input, other):
    """`other - input`."""
    if type(other) in NUMBERS:
        return rsub_number(input, other)
    if not isinstance(input, Tensor):
        return not_known()
    return rsub(input, other) if isinstance(other, Tensor) or is_number(other) else not_known()


# --- products and quotients -----------------------------------------------------------------------------------


@binary(numpy.multiply, dunder="__mul__", reflected="__rmul__", alias=("multiply",), number_first=True)
class mul:
    """`input * other`, elementwise, broadcast together.

    >>> import adjoint as torch
    >>> torch.tensor([1.0, 2.0]) * torch.tensor([3.0, 4.0])
    tensor([3., 8.])
    """

    def grad_self(grad, other):
        return grad * other.conj()

    def grad_other(grad, self):
        return grad * self.conj()


@operator(
    kernel=kernels.by_number(numpy.multiply), namespace=None, method=False, node="MulBackward1", tangent="elementwise"
)
class mul_number:
    """`input * other`, elementwise, where `other` is a number: what PyTorch's own composed functions use."""

    def forward(self: Array, other): ...

    def grad_self(grad, other, xp):
        return xp.mul_number(grad, conjugate(other))


@operator(
    kernel=kernels.by_number(numpy.true_divide),
    namespace=None,
    method=False,
    node="DivBackward1",
    tangent="elementwise",
)
class div_number:
    """`input / other`, elementwise, where `other` is a number: what PyTorch's own composed functions use."""

    def forward(self: Array, other): ...

    def grad_self(grad, other, xp):
        return xp.div_number(grad, conjugate(other))


@binary(
    numpy.true_divide,
    promote="float",
    namespace=None,
    method=(),
    dunder="__truediv__",
    number_first=True,
    node="DivBackward0",
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


@public(name="div", method=True, alias=("divide",), on_arrays=numpy.true_divide, numpy_names=True)
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
)
class floor_divide_by_number:
    """`input / other`, elementwise, rounded down, where `other` is a number. PyTorch defines no derivative."""

    def grad_self(grad):
        raise RuntimeError("derivative for aten::floor_divide is not implemented")


_floor_divide = overloads("floor_divide", floor_divide_by_tensor, floor_divide_by_number, floor_divide_by_tensor)


@public(method=True, numpy_names=True)
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


@binary(
    kernels.remainder,
    namespace=None,
    method=(),
    node="RemainderBackward1",
    called="remainder",
)
class remainder_by_tensor:
    """What is left of the division rounded down, elementwise."""

    def grad_self(grad):
        return grad

    def grad_other(grad, self, other, xp):
        return -grad * xp.div_rounded(self, other, "floor")


@binary(
    kernels.remainder,
    namespace=None,
    method=(),
    node="RemainderBackward0",
    called="remainder",
)
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


@public(method=True, numpy_names=True)
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
)
class fmod_by_number:
    """What is left of the division by a number rounded towards zero, elementwise."""

    def grad_self(grad):
        return grad


_fmod = overloads("fmod", fmod_by_tensor, fmod_by_number)


@public(method=True, numpy_names=True)
def fmod(input, other, *, out=None):
    """What is left of `input / other` rounded towards zero, elementwise; it has the sign of `input`."""
    return _fmod(input, other)(input, other, out=out)


@public(method=True, namespace=None)
def fmod_(input, other):
    """`fmod` in place."""
    return _fmod(input, other).inplace(input, other)


# --- fused ----------------------------------------------------------------------------------------------------


@operator(
    promote="common", kernel=kernels.addcmul, inplace=True, numbers=False, formerly=("value",), tangent="elementwise"
)
class addcmul:
    """`input + value * tensor1 * tensor2`, elementwise, broadcast together."""

    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1): ...

    def grad_self(grad):
        return grad

    def grad_tensor1(grad, tensor2, value):
        return grad * (tensor2 if value == 1 else tensor2 * value).conj()

    def grad_tensor2(grad, tensor1, value):
        return grad * (tensor1 if value == 1 else tensor1 * value).conj()


def _not_only_integers(self, tensor1, tensor2, value=1):
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


@operator(
    promote="common",
    kernel=kernels.addcdiv,
    inplace=True,
    numbers=False,
    check=_not_only_integers,
    formerly=("value",),
    tangent="elementwise",
)
class addcdiv:
    """`input + value * tensor1 / tensor2`, elementwise, broadcast together."""

    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1): ...

    def grad_self(grad):
        return grad

    def grad_tensor1(grad, tensor2, value):
        return grad * (value / tensor2).conj()

    def grad_tensor2(grad, tensor1, tensor2, value):
        return -grad * (value * tensor1 / (tensor2 * tensor2)).conj()


@operator(
    elementwise=True,
    kernel=kernels.lerp,
    namespace=None,
    method=(),
    inplace=True,
    node="LerpBackward0",
    called="lerp",
    tangent="elementwise",
)
class lerp_by_number:
    """`input + weight * (end - input)`, elementwise, where `weight` is a number."""

    def forward(self: Array, end: Array, weight): ...

    def grad_self(grad, weight):
        return grad * (1 - conjugate(weight))

    def grad_end(grad, weight):
        return grad * conjugate(weight)


@operator(
    elementwise=True,
    kernel=kernels.lerp,
    namespace=None,
    method=(),
    inplace=True,
    node="LerpBackward1",
    same_out=True,
    called="lerp",
    tangent="elementwise",
)
class lerp_by_tensor:
    """`input + weight * (end - input)`, elementwise, broadcast together."""

    def forward(self: Array, end: Array, weight: Array): ...

    def grad_self(grad, weight):
        return grad * (1 - weight).conj()

    def grad_end(grad, weight):
        return grad * weight.conj()

    def grad_weight(grad, self, end):
        return grad * (end - self).conj()


def _lerp_operator(input, end, weight):
    if isinstance(weight, Tensor):
        return lerp_by_tensor
    if is_number(weight):
        return lerp_by_number
    raise invalid_arguments("lerp", input, end, weight)


@public(method=True, numpy_names=True)
def lerp(input, end, weight, *, out=None):
    """`input + weight * (end - input)`, elementwise: from `input` at 0 to `end` at 1.

    >>> import adjoint as torch
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.5)
    tensor([ 5., 15.])
    """
    if type(weight) is float and out is None:
        return lerp_by_number(input, end, weight)
    return _lerp_operator(input, end, weight)(input, end, weight, out=out)


@public(method=True, namespace=None)
def lerp_(input, end, weight):
    """`lerp` in place."""
    return _lerp_operator(input, end, weight).inplace(input, end, weight)
