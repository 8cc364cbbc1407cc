"""Functions applied to each element of one tensor: exponentials, trigonometry, rounding, signs."""

from __future__ import annotations

import math

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array, Float
from ...dispatch.decorators import internal, operator, public, publish, unary
from ...dispatch.out import FOUND
from ...kernels.math import pointwise as kernels
from ...kernels.runtime import lazy_conj
from ...kernels.runtime.sparse_array import SparseArray
from ..declaring.formulas import same, zero


def is_complex(value):
    """Return whether a tensor or an array is complex."""
    return getattr(value, "_array", value).dtype.kind in "cW"


# --- exponentials and logarithms ------------------------------------------------------------------------------


@unary(numpy.exp)
class exp:
    """`e` to the power `input`, elementwise.

    >>> import adjoint as torch
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

    def grad_self(grad, result):
        return grad * result.conj()


@unary(numpy.exp2)
class exp2:
    """2 to the power `input`, elementwise."""

    def grad_self(grad, result):
        return grad * result.conj() * math.log(2)


@unary(numpy.expm1, sparse="values")
class expm1:
    """`exp(input) - 1`, elementwise, accurate near 0."""

    def grad_self(grad, result):
        return grad * (result.conj() + 1)


@unary(numpy.log)
class log:
    """The natural logarithm, elementwise.

    >>> import adjoint as torch
    >>> torch.log(torch.tensor([1.0, 0.0]))
    tensor([0., -inf])
    """

    def grad_self(grad, self):
        return grad / self.conj()


@unary(numpy.log2)
class log2:
    """The logarithm to the base 2, elementwise."""

    def grad_self(grad, self):
        return grad / (self.conj() * math.log(2))


@unary(numpy.log10)
class log10:
    """The logarithm to the base 10, elementwise."""

    def grad_self(grad, self):
        return grad / (self.conj() * math.log(10))


@unary(kernels.log1p, node="Log1PBackward0", sparse="values")
class log1p:
    """`log(1 + input)`, elementwise, accurate near 0."""

    def grad_self(grad, self):
        return grad / (self + 1).conj()


@unary(kernels.sigmoid)
class sigmoid:
    """`1 / (1 + exp(-input))`, elementwise.

    >>> import adjoint as torch
    >>> torch.sigmoid(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def grad_self(grad, result, xp):
        return xp.sigmoid_backward(grad, result)


@internal(kernels.sigmoid_backward, tangent="elementwise")
class sigmoid_backward:
    """The derivative of `sigmoid`, computed from its result, times `grad_output`."""

    def forward(grad_output: Array, output: Array): ...

    def grad_grad_output(grad, output, xp):
        return xp.sigmoid_backward(grad, output.conj())

    def grad_output(grad, grad_output, output):
        return grad.conj() * grad_output * (1 - 2 * output.conj())


@operator(kernel=kernels.logit, promote="float", inplace=True, tangent="elementwise", public_inplace=True)
class logit:
    """`log(input / (1 - input))`, elementwise. If `eps` is given, `input` is first clamped to `[eps, 1 - eps]`."""

    def forward(self: Array, eps: Float = None): ...

    def grad_self(grad, self, eps, xp):
        return xp.logit_backward(grad, self, eps)


@internal(kernels.logit_backward, batch="elementwise")
class logit_backward:
    """The derivative of `logit` times `grad_output`."""

    def forward(grad_output: Array, self: Array, eps=None): ...

    def grad_grad_output(grad, self, eps, xp):
        return xp.logit_backward(grad, self, eps)

    def grad_self(grad, grad_output, self, eps, xp):
        return xp.logit_backward(grad * grad_output, self, eps) * (2 * self - 1) / (self * (1 - self))


# --- powers ---------------------------------------------------------------------------------------------------


@unary(numpy.sqrt, sparse="values")
class sqrt:
    """The square root, elementwise."""

    def grad_self(grad, result):
        return grad / (2 * result.conj())


@unary(kernels.rsqrt)
class rsqrt:
    """`1 / sqrt(input)`, elementwise."""

    def grad_self(grad, result):
        return grad * (result * result * result).conj() * -0.5


@unary(numpy.reciprocal)
class reciprocal:
    """`1 / input`, elementwise."""

    def grad_self(grad, result):
        return -grad * (result * result).conj()


# --- trigonometry ---------------------------------------------------------------------------------------------


@unary(numpy.sin, sparse="values")
class sin:
    """The sine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.cos(self).conj()


@unary(numpy.cos)
class cos:
    """The cosine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * -xp.sin(self).conj()


@unary(numpy.tan, sparse="values")
class tan:
    """The tangent, elementwise."""

    def grad_self(grad, result):
        return grad * (1 + result * result).conj()


@unary(numpy.arcsin, alias=("arcsin",), sparse="values")
class asin:
    """The inverse of the sine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.rsqrt(1 - self * self).conj()


@unary(numpy.arccos, alias=("arccos",))
class acos:
    """The inverse of the cosine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * -xp.rsqrt(1 - self * self).conj()


@unary(numpy.arctan, alias=("arctan",), sparse="values")
class atan:
    """The inverse of the tangent, elementwise."""

    def grad_self(grad, self):
        return grad / (self * self + 1).conj()


@unary(numpy.sinh, sparse="values")
class sinh:
    """The hyperbolic sine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.cosh(self).conj()


@unary(numpy.cosh)
class cosh:
    """The hyperbolic cosine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.sinh(self).conj()


@unary(numpy.tanh, sparse="values")
class tanh:
    """The hyperbolic tangent, elementwise."""

    def grad_self(grad, result, xp):
        return xp.tanh_backward(grad, result)


@internal(kernels.tanh_backward, tangent="elementwise")
class tanh_backward:
    """The derivative of `tanh`, computed from its result, times `grad_output`."""

    def forward(grad_output: Array, output: Array): ...

    def grad_grad_output(grad, output, xp):
        return xp.tanh_backward(grad, output.conj())

    def grad_output(grad, grad_output, output):
        return grad.conj() * grad_output * -2 * output.conj()


@unary(numpy.arcsinh, alias=("arcsinh",), node="AsinhBackward0, AsinhBackward1", sparse="values")
class asinh:
    """The inverse of the hyperbolic sine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.rsqrt(self * self + 1).conj()


@unary(numpy.arccosh, alias=("arccosh",), node="AcoshBackward0, AcoshBackward1")
class acosh:
    """The inverse of the hyperbolic cosine, elementwise."""

    def grad_self(grad, self, xp):
        return grad * (xp.rsqrt(self - 1) * xp.rsqrt(self + 1)).conj()


@unary(numpy.arctanh, alias=("arctanh",), node="AtanhBackward0, AtanhBackward1", sparse="values")
class atanh:
    """The inverse of the hyperbolic tangent, elementwise."""

    def grad_self(grad, self):
        return grad / (1 - self * self).conj()


@unary(kernels.sinc)
class sinc:
    """`sin(pi * input) / (pi * input)`, elementwise, and 1 at 0."""

    def grad_self(grad, self, xp):
        return grad * xp.derivative_of_sinc(self, 1).conj()


@internal(kernels.derivative_of_sinc, tangent="elementwise")
class derivative_of_sinc:
    """The `order`-th derivative of `sinc`, elementwise."""

    def forward(self: Array, order): ...

    def grad_self(grad, self, order, xp):
        return grad * xp.derivative_of_sinc(self, order + 1).conj()


@unary(kernels.deg2rad, node="Deg2RadBackward0", sparse="values")
class deg2rad:
    """The angle in radians for an angle in degrees, elementwise."""

    def grad_self(grad):
        return grad * (math.pi / 180)


@unary(kernels.rad2deg, node="Rad2DegBackward0", sparse="values")
class rad2deg:
    """The angle in degrees for an angle in radians, elementwise."""

    def grad_self(grad):
        return grad * (180 / math.pi)


@unary(kernels.angle, inplace=False, sparse="values")
class angle:
    """The argument of complex numbers, elementwise. For real numbers, the result is pi if they are negative, and 0 otherwise."""

    def grad_self(grad, self, xp):
        if not is_complex(self):
            return xp.zeros_like(grad)
        magnitude = xp.abs(self)
        return xp.zero_where(grad * (self / (magnitude * magnitude)) * 1j, self == 0)


@public(method=True, on_arrays=kernels.conj, numpy_names=True, methods_retried=False)
def conj(input):
    """The complex conjugate, elementwise. A real tensor is returned unchanged."""
    if input._array.dtype.kind not in "cW":
        return input
    return conj_physical(input) if isinstance(input._array, SparseArray) else conjugate(input)


@internal(lazy_conj.conjugate, view=True, node="ConjBackward0", batch="elementwise", aten_name="_conj")
class conjugate:
    """The complex conjugate as a view, elementwise."""

    def grad_self(grad):
        return grad.conj()


@operator(view=True, kernel=lazy_conj.negative, batch="elementwise")
class _neg_view:
    """`-input` as a view."""

    def grad_self(grad):
        return -grad


@operator(
    kernel=kernels.conj,
    namespace=None,
    method=("conj_physical",),
    node="ConjPhysicalBackward0, ConjPhysicalBackward1",
    inplace=True,
    same_out=True,
    out="underived",
    tangent="linear",
    batch="elementwise",
    sparse="values",
    narrow="reads",
)
class conj_physical:
    """The complex conjugate, elementwise."""

    def grad_self(grad):
        return grad.conj()


@public(name="conj_physical", method=True, numpy_names=True)
def conj_physical_function(input, *, out=None):
    """The complex conjugate, elementwise. A real tensor is returned unchanged."""
    return input if out is None and not is_complex(input) else conj_physical(input, out=out)


# --- signs ----------------------------------------------------------------------------------------------------


def _check_magnitude(result, dtype, inputs):
    """Check the dtype of `out=`: that of the input, or any real dtype for the magnitudes of complex numbers."""
    own = inputs[0].dtype
    if dtype is not own and (dtype.is_complex or not own.is_complex):
        raise RuntimeError(FOUND.format(given=dtype.scalar_type, wanted=own.scalar_type))


@unary(
    Kernel(kernels.absolute, small=numpy.absolute, dtypes=FLOATS),
    promote=None,
    alias=("absolute",),
    dunder="__abs__",
    same_out=_check_magnitude,
    public_inplace=("abs",),
    sparse="values",
    narrow="computes",
)
class abs:
    """The magnitude, elementwise. The magnitude of a complex number is real. The derivative at 0 is 0.

    >>> import adjoint as torch
    >>> torch.abs(torch.tensor([-1.5, 3 + 4j]))
    tensor([1.5000, 5.0000])
    """

    def grad_self(grad, self, xp):
        return grad * xp.sgn(self)


@public(namespace=None, method=("abs_", "absolute_"))
def abs_(input):
    """The magnitude in place. Raise an error for complex numbers, whose magnitude is real."""
    if is_complex(input):
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs.inplace(input)


publish("torch", abs_=abs_)


@unary(
    Kernel(kernels.neg, small=numpy.negative, dtypes=FLOATS),
    promote=None,
    dunder="__neg__",
    alias=("negative",),
    same_out=True,
    sparse="values",
    narrow="halves",
)
class neg:
    """`-input`, elementwise."""

    def grad_self(grad):
        return -grad


@unary(kernels.sign, promote=None, same_out=True, public_inplace=False, sparse="values")
class sign:
    """-1, 0 or 1, elementwise, and 0 for nan."""

    grad_self = zero


@unary(kernels.sgn, promote=None, same_out=True, public_inplace=False, sparse="values", narrow="halves")
class sgn:
    """The sign. For a complex number, the result is the number of magnitude 1 in the same direction."""

    def grad_self(grad, self, result, xp):
        if not is_complex(self):
            return xp.zeros_like(grad)
        along = xp.real(grad.conj() * result)
        zero, magnitude = self == 0, xp.abs(self)
        divisor = xp.where(zero, xp.ones_like(magnitude), magnitude)  # so that derivatives at 0 are not NaN
        return xp.zero_where((grad - along * result) / divisor, zero)


@public(method=("positive", "__pos__"), numpy_names=True)
def positive(input):
    """The tensor itself."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# --- rounding: constant between the steps, so the derivative is 0 ---------------------------------------------


@unary(Kernel(kernels.floor, small=numpy.floor, dtypes=FLOATS), promote=None, same_out=True, sparse="values")
class floor:
    """The largest integer that is not greater than the element."""

    grad_self = zero


@unary(Kernel(kernels.ceil, small=numpy.ceil, dtypes=FLOATS), promote=None, same_out=True, sparse="values")
class ceil:
    """The smallest integer that is not less than the element."""

    grad_self = zero


@unary(
    Kernel(kernels.trunc, small=numpy.trunc, dtypes=FLOATS),
    promote=None,
    alias=("fix",),
    same_out=True,
    sparse="values",
)
class trunc:
    """The integer part, elementwise."""

    grad_self = zero


@unary(kernels.frac, promote=None, same_out=True, sparse="values")
class frac:
    """The fractional part, elementwise. The result has the sign of `input`."""

    grad_self = same


@internal(
    Kernel(kernels.rint, small=numpy.rint, dtypes=FLOATS),
    inplace=True,
    node="RoundBackward0",
    same_out=True,
    function_name="round",
    batch="elementwise",
    sparse="values",
)
class round_to_integer:
    """The nearest integer, elementwise. Halves round to the even integer."""

    grad_self = zero


@internal(
    kernels.round_decimals,
    inplace=True,
    node="RoundBackward1",
    same_out=True,
    function_name="round",
    batch="elementwise",
)
class round_to_decimals:
    """The nearest number of `decimals` decimal places, elementwise."""

    def forward(self: Array, decimals): ...

    grad_self = zero


@public(method=True, numpy_names=True)
def round(input, *, decimals=None, out=None):
    """The nearest integer, or number with `decimals` decimal places, elementwise.

    Halves round to the even digit.

    >>> import adjoint as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.34]))
    tensor([0., 2., 2.])
    """
    return round_to_integer(input, out=out) if decimals is None else round_to_decimals(input, decimals, out=out)


@public(method=True)
def round_(input, *, decimals=None):
    """`round` in place."""
    return round_to_integer.inplace(input) if decimals is None else round_to_decimals.inplace(input, decimals)


publish("torch", conj_physical_=conj_physical.inplace)
publish("special", expit=sigmoid, exp2=exp2, expm1=expm1, log1p=log1p, logit=logit, sinc=sinc, round=round)
