"""Quotients and remainders of two tensors, or of a tensor and a number, and Python's operators for them."""

from __future__ import annotations

import numpy

from ... import dtypes
from ..._runtime.tracebacks import shorten
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments, is_number
from ...dispatch.decorators import add_method, binary, internal, public, publish, tensors
from ...dispatch.python_operators import not_known
from ...dispatch.signatures import OUT, number_either_way, with_number
from ...kernels.math import arithmetic as kernels
from ...tensor import Tensor
from ..declaring.formulas import same, underived
from ..declaring.overloads import overloads


@binary(
    numpy.true_divide,
    promote="float",
    namespace=None,
    dunder="__truediv__",
    numbers="first wide",
    aten="Tensor",
    vmap_name="inplace arithmetic",
    sparse="arithmetic.div",
)
class div:
    """`input / other`, elementwise. The operands are broadcast together."""

    def grad_self(grad, other):
        return grad / other.conj()

    def grad_other(grad, self, other):
        return -grad * ((self / other) / other).conj()


@internal(
    kernels.div_rounded,
    promote="common",
    sparse="arithmetic.div_rounded",
    inplace=True,
    numbers="first wide",
    node="DivBackward2",
    function_name="div",
    aten="Tensor",
    vmap_name="inplace arithmetic",
)
class div_rounded:
    """`input / other`, rounded, elementwise. The result is piecewise constant, so the derivative is 0."""

    def forward(self: Array, other: Array, rounding_mode): ...

    def grad_self(grad, other, rounding_mode, xp):
        return xp.zeros_like(grad)

    def grad_other(grad, self, other, rounding_mode, xp):
        return xp.zeros_like(grad)


def _checked_rounding(input, other, rounding_mode):
    if not isinstance(rounding_mode, str):
        raise invalid_arguments("div", input, other)
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
    """`input / other`, elementwise. The operands are broadcast together.

    `rounding_mode` is None, `"trunc"` or `"floor"`.

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


publish("torch", true_divide=div)
for _name in ("true_divide", "__div__"):
    add_method(_name, div)
for _name in ("true_divide_", "__idiv__"):
    add_method(_name, div.inplace)


@public(method=("__rtruediv__", "__rdiv__"), namespace=None)
def rtruediv(input, other):
    """`other / input`, computed with the reciprocal, as in PyTorch."""
    try:
        if not is_number(other) and not isinstance(other, (Tensor, numpy.ndarray)):
            return not_known()
        return input.reciprocal() * other
    except Exception as error:
        shorten(error)
        raise


def _floor_divide_of_numbers(input, other, out):
    return floor_divide(tensors.scalar_tensor(input, dtype=dtypes.scalar_dtype(input)), other, out=out)


_FLOORED = {
    "node": "NotImplemented",
    "aten": "default, Tensor",
    "sparse": "arithmetic.div_rounded",
}


@overloads(
    kernels.floor_divide,
    by_tensor={**_FLOORED, "numbers": "first wide"},
    by_number={**_FLOORED, "numbers": "wide"},
    of_numbers=_floor_divide_of_numbers,
    dunder="__floordiv__",
    reflected="__rfloordiv__",
    forms=(f"Tensor input, Tensor other, {OUT}", "Tensor input, Number other"),
)
class floor_divide:
    """`input / other` rounded down, elementwise.

    PyTorch defines no derivative.

    >>> import adjoint as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """

    grad_self = grad_other = underived("floor_divide")


# --- remainders -----------------------------------------------------------------------------------------------


@binary(
    kernels.remainder, namespace=None, numbers="first", inplace=False, node="NotImplemented", function_name="remainder"
)
class remainder_of_number:
    """The remainder of a number divided by the elements of a tensor. PyTorch defines no derivative."""

    grad_other = underived("remainder")


@overloads(
    kernels.remainder,
    by_tensor={"node": "RemainderBackward1", "aten": "Tensor"},
    by_number={"node": "RemainderBackward0", "aten": "Scalar"},
    of_number=remainder_of_number,
    dunder="__mod__",
    reflected="__rmod__",
    forms=number_either_way,
)
class remainder:
    """The remainder of the division rounded down, elementwise.

    The result has the sign of `other`.

    >>> import adjoint as torch
    >>> torch.remainder(torch.tensor([-3, 3]), 2)
    tensor([1, 1])
    """

    grad_self = same

    def grad_other(grad, self, other, xp):
        return -grad * xp.div_rounded(self, other, "floor")


@overloads(
    kernels.fmod,
    by_tensor={"node": "FmodBackward1", "aten": "Tensor"},
    by_number={"node": "FmodBackward0", "aten": "Scalar"},
    forms=with_number,
)
class fmod:
    """The remainder of the division rounded towards zero, elementwise. The result has the sign of `input`."""

    grad_self = same

    def grad_other(grad, self, other, xp):
        return -grad * xp.div_rounded(self, other, "trunc")
