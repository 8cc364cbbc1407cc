"""Functions of the elements of two tensors, broadcast together: angles, distances, logarithms of sums, divisors."""

from __future__ import annotations

import math

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array
from ...dispatch.decorators import binary, operator, publish, tensors
from ...dispatch.numpy_names import taking_numpy_names
from ...dispatch.signatures import number_either_way, with_number
from ...kernels.math import arithmetic as kernels
from ...kernels.math import special
from ...kernels.reduce import moments
from ...kernels.runtime.costs import LARGE
from ..declaring.formulas import zero
from ..declaring.overloads import overloads
from ..reduce.moments import norm_gradient
from .arithmetic import no_bool


@binary(Kernel(kernels.atan2, small=numpy.arctan2), promote="float", alias=("arctan2",), numbers=False, vmap_name="")
class atan2:
    """The angle of the point with y-coordinate `input` and x-coordinate `other`, elementwise."""

    def grad_self(grad, self, other, xp):
        self, other = xp.wide(self), xp.wide(other)
        return xp.zero_where(grad * other / (self * self + other * other), (self == 0) & (other == 0))

    def grad_other(grad, self, other, xp):
        self, other = xp.wide(self), xp.wide(other)
        return xp.zero_where(-grad * self / (self * self + other * other), (self == 0) & (other == 0))


@binary(Kernel(kernels.hypot, small=numpy.hypot, dtypes=FLOATS), numbers=False)
class hypot:
    """`sqrt(input ** 2 + other ** 2)`, elementwise, without overflow."""

    def grad_self(grad, self, result):
        return grad * (self / result)

    def grad_other(grad, other, result):
        return grad * (other / result)


@binary(Kernel(kernels.nextafter, small=numpy.nextafter, dtypes=FLOATS, limit=LARGE - 1), numbers=False)
class nextafter:
    """The next floating-point number after `input` in the direction of `other`, elementwise."""

    def grad_self(grad, self, other, xp):
        return xp.zero_where(grad, self == other)

    def grad_other(grad, self, other, xp):
        return xp.zeros_like(grad)


@operator(kernel=moments.distance, promote="common", out=False, elementwise=False, check=no_bool, narrow="halves")
class dist:
    """The `p`-norm of `input - other`. The operands are broadcast together.

    >>> import adjoint as torch
    >>> torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """

    def forward(self: Array, other: Array, p=2): ...

    def grad_self(grad, self, other, p, result, xp):
        return norm_gradient(grad, xp.wide(self) - xp.wide(other), xp.wide(result), p, None, False, xp)

    def grad_other(grad, self, other, p, result, xp):
        return -norm_gradient(grad, xp.wide(self) - xp.wide(other), xp.wide(result), p, None, False, xp)

    def batch(op, batch, first, second, p):
        if not first._array.ndim or first._array.shape != second._array.shape or not first._array.size:
            return None
        return tensors.linalg_vector_norm((batch.expanded(first) - batch.expanded(second)).flatten(1), p, (1,))


# --- signs ----------------------------------------------------------------------------------------------------


@overloads(
    Kernel(kernels.copysign, small=numpy.copysign),
    promote="float",
    by_tensor={"node": "CopysignBackward0", "aten": "Tensor", "vmap_name": ""},
    by_number={"node": "CopysignBackward1", "aten": "Scalar"},
    forms=with_number,
)
class copysign:
    """`input` with the sign of `other`, elementwise. Zeros have signs too."""

    def grad_self(grad, self, result, xp):
        return xp.zero_where(grad * (result / self), self == 0)

    grad_other = zero


# --- exponentials and logarithms ------------------------------------------------------------------------------


@operator(kernel=kernels.ldexp, inplace=True, elementwise=True, public_inplace=True)
class ldexp:
    """`input * 2 ** other`, elementwise."""

    def forward(self: Array, other: Array): ...

    def grad_self(grad, other, xp):
        return grad * xp.number_pow(2.0, xp.wide(other)).conj()

    def grad_other(grad, self, other, xp):
        return grad * (xp.wide(self) * xp.number_pow(2.0, xp.wide(other)) * math.log(2)).conj()


@operator(
    kernel=kernels.frexp,
    outputs=("mantissa", "exponent"),
    returns="frexp",
    same_out="torch.frexp() expects {result} to have {wanted_c} dtype but got {given_c}",
    batch="leading",
)
class frexp:
    """Mantissas of magnitude 0.5 to 1, and exponents of 2. `input` is `mantissa * 2 ** exponent`.

    >>> import adjoint as torch
    >>> torch.frexp(torch.tensor([5.0])).exponent
    tensor([3], dtype=torch.int32)
    """

    nondifferentiable = ("exponent",)

    def grad_self(grads, exponent, xp):
        return None if grads[0] is None else xp.ldexp(grads[0], -exponent)


@binary(kernels.logaddexp, numbers=False, inplace=False)
class logaddexp:
    """`log(exp(input) + exp(other))`, elementwise, without overflow."""

    def grad_self(grad, self, other, xp):
        return grad * xp.sigmoid(self - other).conj()

    def grad_other(grad, self, other, xp):
        return grad * xp.sigmoid(other - self).conj()


@binary(kernels.logaddexp2, numbers=False, inplace=False)
class logaddexp2:
    """`log2(2 ** input + 2 ** other)`, elementwise, without overflow."""

    def grad_self(grad, self, other, xp):
        return grad * xp.sigmoid((self - other) * math.log(2)).conj()

    def grad_other(grad, self, other, xp):
        return grad * xp.sigmoid((other - self) * math.log(2)).conj()


@overloads(
    special.xlogy,
    promote="float",
    by_tensor={"node": "XlogyBackward0", "aten": "Tensor"},
    by_number={"node": "XlogyBackward2", "aten": "Scalar_Other"},
    of_number={"node": "XlogyBackward1"},
    forms=lambda op: number_either_way(op, out=True),
    public_inplace=True,
)
class xlogy:
    """`input * log(other)`, elementwise. The result is 0 where `input` is 0 and `other` is not NaN."""

    def grad_self(grad, self, other, xp):
        return xp.zero_where(grad * xp.log(other), (self == 0) & (other <= 0))

    def grad_other(grad, self, other):
        return grad * self / other


@overloads(
    special.xlog1py,
    promote="float",
    by_tensor={"node": "SpecialXlog1PyBackward0", "aten": "Tensor"},
    by_number={"node": "SpecialXlog1PyBackward2", "aten": "Scalar_Other"},
    of_number={"node": "SpecialXlog1PyBackward1"},
    namespace="special",
    method=False,
    aten_name="special_xlog1py",
)
class xlog1py:
    """`input * log(1 + other)`, elementwise. The result is 0 where `input` is 0 and `other` is not NaN."""

    def grad_self(grad, self, other, xp):
        return xp.zero_where(grad * xp.log1p(other), (self == 0) & (other <= -1))

    def grad_other(grad, self, other):
        return grad * self / (other + 1)


publish("special", xlogy=taking_numpy_names(xlogy))


# --- integers -------------------------------------------------------------------------------------------------


@binary(kernels.gcd, numbers=False, public_inplace=True, vmap_name="")
class gcd:
    """The greatest common divisor, elementwise."""


@binary(kernels.lcm, numbers=False, public_inplace=True, vmap_name="")
class lcm:
    """The least common multiple, elementwise."""
