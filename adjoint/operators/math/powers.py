"""Powers: `pow` and related functions. Separate operators compute powers with a number as exponent or as base."""

from __future__ import annotations

import math

import numpy

from ... import dtypes
from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.signatures import OUT
from ...kernels.math import arithmetic as kernels
from ...tensor import Tensor
from ..declaring.overloads import overloads
from .pointwise import is_complex

_FORMS = (
    f"Tensor input, Tensor exponent, {OUT}",
    f"Number self, Tensor exponent, {OUT}",
    f"Tensor input, Number exponent, {OUT}",
)


@public(namespace=None, on_arrays=kernels.power_backward)
def power_backward(grad, self, exponent):
    """`grad` times the derivative of `self ** exponent`."""
    return grad * tensors.mul_number(tensors.pow_number(self, exponent - 1), exponent).conj()


def _power(kernel, **options):
    """Declare one of the operators that `pow` chooses among."""
    return internal(kernel, function_name="pow", tangent="elementwise", **options)


@_power(
    kernels.power_of_numbers, inplace=True, node="PowBackward0", aten="Tensor_Scalar, Scalar", sparse="arithmetic.power"
)
class pow_number:
    """`input` to the power of the number `exponent`, elementwise."""

    def forward(self: Array, exponent): ...

    def grad_self(grad, self, exponent, xp):
        if exponent == 0:
            return xp.zeros_like(grad)
        return xp.power_backward(grad, self, exponent)


def _smallest(value):
    """Return the smallest positive normal number of the dtype of `value`."""
    return float(numpy.finfo(getattr(value, "_array", value).dtype).tiny)


@_power(
    Kernel(kernels.power, small=numpy.power, dtypes=FLOATS),
    promote="common",
    inplace=True,
    node="PowBackward1",
    aten="Tensor_Tensor, Tensor",
)
class pow_tensor:
    """`input` to the power `exponent`, elementwise. The operands are broadcast together."""

    def forward(self: Array, exponent: Array): ...

    def grad_self(grad, self, exponent, xp):
        self, exponent = xp.wide(self), xp.wide(exponent)
        constant = (exponent == 0) & ~(xp.abs(self) > _smallest(self))  # 0 times an infinite power has no derivative
        return grad * (exponent * xp.pow_tensor(self, xp.zero_where(exponent - 1, constant))).conj()

    def grad_exponent(grad, self, exponent, result, xp):
        wide = xp.wide(self)
        if wide is not self:  # a half type: the rounding error of the result would appear in a sum
            self, exponent = wide, xp.wide(exponent)
            result = xp.pow_tensor(self, exponent)
        real = xp.real(exponent) if is_complex(exponent) else exponent
        base = self + 0j if is_complex(result) and not is_complex(self) else self
        base = xp.where((self == 0) & (real >= 0), xp.ones_like(base), base)  # 0 remains 0, in derivatives of any order
        return grad * (result * xp.log(base)).conj()


@_power(kernels.number_to_powers, node="PowBackward2", elementwise=False, aten="Scalar")
class number_pow:
    """The number `input` to the power `exponent`, elementwise."""

    def forward(self, exponent: Array): ...

    def grad_exponent(grad, self, exponent, result, xp):
        if self == 0:
            real = xp.real(exponent) if is_complex(exponent) else exponent
            return grad * (result * xp.zero_where(xp.zeros_like(result) - math.inf, real >= 0)).conj()
        return grad * (result * _logarithm(self, result)).conj()


def _logarithm(number, like):
    """Return the logarithm of `number`, or NaN if the dtype of `like` cannot represent this logarithm."""
    if is_complex(like):
        return complex(numpy.log(complex(number)))
    return math.log(number) if number > 0 else math.nan


@overloads(
    by_tensor=pow_tensor,
    by_number=pow_number,
    of_number=number_pow,
    dunder="__pow__",
    reflected="__rpow__",
    second="exponent",
    forms=_FORMS,
)
class pow:
    """`input` to the power `exponent`, elementwise. Either operand may be a number.

    >>> import adjoint as torch
    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])

    Raises:
        RuntimeError: if integers are raised to a negative integer power.
    """


@public(method=True, numpy_names=True)
def square(input, *, out=None):
    """`input * input`, elementwise."""
    return pow_number(input, 2, out=out)


@public(method=True)
def square_(input):
    """`square` in place."""
    return pow_number.inplace(input, 2)


def _doubled(*values):
    """Return the arguments of `float_power` in double precision."""
    complex_ = any(is_complex(value) if isinstance(value, Tensor) else isinstance(value, complex) for value in values)
    kind = dtypes.complex128 if complex_ else dtypes.float64
    number = complex if complex_ else float
    return kind, [value.to(kind) if isinstance(value, Tensor) else number(value) for value in values]


@public(method=True, numpy_names=True, forms=_FORMS)
def float_power(input, exponent, *, out=None):
    """`input` to the power `exponent` in double precision, elementwise."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise invalid_arguments("float_power", input, exponent)
    kind, (base, exponent) = _doubled(input, exponent)
    if out is not None and out.dtype is not kind:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.scalar_type} but the operation's result requires "
            f"dtype {kind.scalar_type}"
        )
    return pow(base, exponent, out=out)


@public(method=True, namespace=None)
def float_power_(input, exponent):
    """`float_power` in place. The tensor must have double precision."""
    kind, (base, exponent) = _doubled(input, exponent)
    if base is not input:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.scalar_type} but the operation's result requires "
            f"dtype {kind.scalar_type}"
        )
    return pow.inplace(input, exponent)
