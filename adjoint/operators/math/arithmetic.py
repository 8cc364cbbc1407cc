"""Elementwise arithmetic of two tensors, or of a tensor and a number, and Python's operators for it.

For some functions, PyTorch has separate functions and nodes for a tensor and for a number. These operators are declared
separately, and a function with the public name selects the operator.
"""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ..._runtime.tracebacks import shorten
from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Number
from ...dispatch.arguments import invalid_arguments, is_number
from ...dispatch.constants import NUMBERS
from ...dispatch.decorators import binary, internal, operator, public
from ...dispatch.python_operators import not_known
from ...dispatch.signatures import alone, with_number
from ...kernels.math import arithmetic as kernels
from ...tensor import Tensor
from ..declaring.formulas import same
from ..declaring.overloads import pair


def conjugate(value):
    """The complex conjugate of a Python number, an array or a tensor."""
    if isinstance(value, (complex, int, float)):
        return value.conjugate()
    return value.conj()


def _with_number(kernel, name, **options):
    """Declare an operator for a number as second operand, in functions that PyTorch composes of operators."""
    node = f"{name.capitalize()}Backward1"
    return internal(
        kernels.by_number(kernel), node=node, tangent="elementwise", aten_name=name, aten="Scalar", **options
    )


# --- sums and differences -------------------------------------------------------------------------------------


@operator(
    promote="common",
    kernel=Kernel(kernels.add, small=numpy.add, inplace=kernels.add_),
    inplace=True,
    dunder="__add__",
    reflected="__radd__",
    numbers="first",
    deprecated_order=("alpha",),
    tangent="elementwise",
    aten="Tensor",
    forms=alone,
    sparse="arithmetic.add",
    vmap_name="",
    narrow="halves add_stub",
)
class add:
    """`input + alpha * other`, elementwise. The operands are broadcast together.

    >>> import adjoint as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    grad_self = same

    def grad_other(grad, alpha):
        return grad if alpha == 1 else grad * conjugate(alpha)


@_with_number(numpy.add, "add", narrow="halves add_stub")
class add_number:
    """`input + other`, elementwise, for a number `other`, in functions that PyTorch composes of operators."""

    def forward(self: Array, other): ...

    grad_self = same


@_with_number(numpy.subtract, "sub", narrow="halves add_stub")
class sub_number:
    """`input - other`, elementwise, for a number `other`, in functions that PyTorch composes of operators."""

    def forward(self: Array, other): ...

    grad_self = same


def _is_bool(value):
    return value.dtype is dtypes.bool if isinstance(value, Tensor) else isinstance(value, bool)


def no_bool(self, other, *_):
    """Raise an error if one of two operands of a subtraction is boolean."""
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
    numbers="first",
    deprecated_order=("alpha",),
    tangent="elementwise",
    aten="Tensor",
    vmap_name="inplace arithmetic",
    forms=alone,
    sparse="arithmetic.sub",
    narrow="halves add_stub",
)
class sub:
    """`input - alpha * other`, elementwise. The operands are broadcast together."""

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    grad_self = same

    def grad_other(grad, alpha):
        return -grad if alpha == 1 else grad * -conjugate(alpha)


@pair(
    Kernel(kernels.rsub, small=kernels.subtracted_from),
    promote="common",
    by_tensor={"name": "rsub_tensor", "node": "RsubBackward0", "elementwise": ("other", "self")},
    by_number={"name": "rsub_number", "node": "RsubBackward1"},
    function_name="rsub",
    sparse="arithmetic.rsub",
    out=False,
    check=no_bool,
    tangent="elementwise",
    narrow="halves add_stub",
)
class _rsub:
    """`other - alpha * input`, elementwise. The operands are broadcast together."""

    def forward(self: Array, other: Array, *, alpha: Number = 1): ...

    def grad_self(grad, alpha):
        return -grad if alpha == 1 else grad * -conjugate(alpha)

    grad_other = same


rsub_tensor, rsub_number = _rsub.by_tensor, _rsub.by_number


@public(
    numpy_names=True,
    forms=("Tensor input, Tensor other, *, Number alpha = 1", "Tensor input, Number other, Number alpha = 1"),
)
def rsub(input, other, *, alpha=1):
    """`other - alpha * input`, elementwise. The operands are broadcast together."""
    if not isinstance(input, Tensor) or not (isinstance(other, Tensor) or is_number(other)):
        raise invalid_arguments("rsub", input, other)
    return (rsub_tensor if isinstance(other, Tensor) else rsub_number)(input, other, alpha=alpha)


@public(namespace=None, method=("__rsub__",))
def reflected_sub(input, other):
    """`other - input`."""
    try:
        if type(other) in NUMBERS:
            return rsub_number(input, other)
        if not isinstance(input, Tensor):
            return not_known()
        return rsub(input, other) if isinstance(other, Tensor) or is_number(other) else not_known()
    except Exception as error:
        shorten(error)
        raise


# --- products, and quotients by numbers -----------------------------------------------------------------------------------


@binary(
    numpy.multiply,
    dunder="__mul__",
    reflected="__rmul__",
    alias=("multiply",),
    numbers="first wide",
    aten="Tensor",
    vmap_name="inplace arithmetic",
    sparse="arithmetic.mul",
    narrow="alike",
)
class mul:
    """`input * other`, elementwise. The operands are broadcast together.

    >>> import adjoint as torch
    >>> torch.tensor([1.0, 2.0]) * torch.tensor([3.0, 4.0])
    tensor([3., 8.])
    """

    def grad_self(grad, other):
        return grad * other.conj()

    def grad_other(grad, self):
        return grad * self.conj()


@_with_number(numpy.multiply, "mul", sparse="arithmetic.mul", narrow="halves")
class mul_number:
    """`input * other`, elementwise, for a number `other`, in functions that PyTorch composes of operators."""

    def forward(self: Array, other): ...

    def grad_self(grad, other, xp):
        return xp.mul_number(grad, conjugate(other))


@_with_number(numpy.true_divide, "div")
class div_number:
    """`input / other`, elementwise, for a number `other`, in functions that PyTorch composes of operators."""

    def forward(self: Array, other): ...

    def grad_self(grad, other, xp):
        return xp.div_number(grad, conjugate(other))


# --- fused ----------------------------------------------------------------------------------------------------


def _fused(kernel, **options):
    shared: Any = {"promote": "common", "inplace": True, "numbers": False, "tangent": "elementwise"}
    return operator(kernel=kernel, deprecated_order=("value",), **shared, **options)


@_fused(kernels.addcmul, narrow="halves")
class addcmul:
    """`input + value * tensor1 * tensor2`, elementwise. The tensors are broadcast together."""

    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1): ...

    grad_self = same

    def grad_tensor1(grad, tensor2, value):
        return grad * (tensor2 if value == 1 else tensor2 * value).conj()

    def grad_tensor2(grad, tensor1, value):
        return grad * (tensor1 if value == 1 else tensor1 * value).conj()


def _refuse_integers(self, tensor1, tensor2, value=1):
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


@_fused(kernels.addcdiv, check=_refuse_integers)
class addcdiv:
    """`input + value * tensor1 / tensor2`, elementwise. The tensors are broadcast together."""

    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1): ...

    grad_self = same

    def grad_tensor1(grad, tensor2, value):
        return grad * (value / tensor2).conj()

    def grad_tensor2(grad, tensor1, tensor2, value):
        return -grad * (value * tensor1 / (tensor2 * tensor2)).conj()


@pair(
    Kernel(kernels.lerp, inplace=kernels.lerp_),
    by_tensor={"name": "lerp_by_tensor", "node": "LerpBackward1", "aten": "Tensor", "same_out": True},
    by_number={"name": "lerp_by_number", "node": "LerpBackward0", "aten": "Scalar", "values": {"weight": ""}},
    function_name="lerp",
    inplace=True,
    elementwise=True,
    tangent="elementwise",
)
class _lerp:
    """`input + weight * (end - input)`, elementwise. The operands are broadcast together."""

    def forward(self: Array, end: Array, weight: Array): ...

    def grad_self(grad, weight):
        return grad * conjugate(1 - weight)

    def grad_end(grad, weight):
        return grad * conjugate(weight)

    def grad_weight(grad, self, end):
        return grad * conjugate(end - self)


lerp_by_tensor, lerp_by_number = _lerp.by_tensor, _lerp.by_number


def _lerp_operator(input, end, weight):
    if type(weight) is float:
        return lerp_by_number
    if isinstance(weight, Tensor):
        return lerp_by_tensor
    if is_number(weight):
        return lerp_by_number
    raise invalid_arguments("lerp", input, end, weight)


@public(method=True, numpy_names=True, forms=lambda: with_number(lerp_by_tensor.operator))
def lerp(input, end, weight, *, out=None):
    """`input + weight * (end - input)`, elementwise. Weight 0 gives `input`, and weight 1 gives `end`.

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
