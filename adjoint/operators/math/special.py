"""Special functions: the error function, the normal distribution, the logarithm of the gamma function, Bessel functions."""

from __future__ import annotations

import math

from ... import dtypes
from ...dispatch.annotations import Array, Int
from ...dispatch.arguments import fits, invalid_arguments, is_of_type, wrong_type
from ...dispatch.calls import call_of
from ...dispatch.decorators import binary, internal, operator, public, publish, unary
from ...dispatch.numpy_names import taking_numpy_names
from ...dispatch.out import stored
from ...dispatch.signatures import number_either_way
from ...kernels.math import incomplete
from ...kernels.math import special as kernels
from ...kernels.runtime.floating import refuse
from ...tensor import Tensor
from ..declaring.formulas import unwritten

# --- the error function and the normal distribution --------------------------------------------------------------------


@unary(kernels.erf, sparse="values")
class erf:
    """The error function, elementwise.

    >>> import adjoint as torch
    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """

    def grad_self(grad, self, xp):
        return grad * xp.exp(self * -self) * (2 / math.sqrt(math.pi))


@unary(kernels.erfc)
class erfc:
    """`1 - erf(input)`, elementwise, without cancellation."""

    def grad_self(grad, self, xp):
        return grad * xp.exp(self * -self) * (-2 / math.sqrt(math.pi))


@unary(kernels.erfinv, public_inplace=False, sparse="values")
class erfinv:
    """The inverse of the error function, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.exp(xp.erfinv(self) ** 2) * (math.sqrt(math.pi) / 2)


@unary(kernels.erfcx, namespace="special", inplace=False, node="SpecialErfcxBackward0", aten_name="special_erfcx")
class erfcx:
    """`exp(input ** 2) * erfc(input)`, elementwise, without overflow."""

    def grad_self(grad, self, result):
        return grad * (2 * self * result - 2 / math.sqrt(math.pi))


@unary(kernels.ndtr, namespace=None, inplace=False, node="SpecialNdtrBackward0", aten_name="special_ndtr")
class normal_distribution:
    """The normal distribution function, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.exp(self * self * -0.5) / math.sqrt(2 * math.pi)


@public(namespace="special", numpy_names=True)
def ndtr(input, *, out=None):
    """The normal distribution function, elementwise.

    >>> import adjoint as torch
    >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """
    return stored("special_ndtr", normal_distribution(input), out, recorded=True)


@unary(
    kernels.log_ndtr, namespace="special", inplace=False, node="SpecialLogNdtrBackward0", aten_name="special_log_ndtr"
)
class log_ndtr:
    """The logarithm of the normal distribution function, elementwise."""

    def grad_self(grad, self, result, xp):
        # The density divided by the distribution function. The derivative of the second form has no quotient of infinities. The
        # first form has no cancellation if the distribution function is small.
        upper, half = self > 1, math.sqrt(0.5)
        one = xp.ones_like(self)
        low, high = xp.where(upper, one, self), xp.where(upper, self, one)
        by_logarithm = xp.exp(high * high * -0.5 - xp.where(upper, result, one)) * half
        return grad * xp.where(upper, by_logarithm, half * 2 / xp.erfcx(low * -half)) / math.sqrt(math.pi)


@unary(kernels.ndtri, namespace="special", inplace=False, node="SpecialNdtriBackward0", aten_name="special_ndtri")
class ndtri:
    """The inverse of the normal distribution function, elementwise."""

    def grad_self(grad, result, xp):
        return grad * xp.exp(result * result * 0.5) * math.sqrt(2 * math.pi)


# --- the gamma function ---------------------------------------------------------------------------------------


@unary(kernels.lgamma, public_inplace=False)
class lgamma:
    """The logarithm of the absolute value of the gamma function, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.digamma(self)


@unary(kernels.digamma, public_inplace=False)
class digamma:
    """The derivative of `lgamma`, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.polygamma_of(self, 1)


@internal(
    lambda self, n: kernels.polygamma(n, self),
    promote="float",
    inplace=True,
    node="PolygammaBackward0, PolygammaBackward1",
    function_name="polygamma",
    batch="elementwise",
)
class polygamma_of:
    """The `n`-th derivative of `digamma`, elementwise."""

    def forward(self: Array, n): ...

    def grad_self(grad, self, n, xp):
        return grad * xp.polygamma_of(self, n + 1)


@public(numpy_names=True)
def polygamma(n, input, *, out=None):
    """The `n`-th derivative of `digamma`, elementwise.

    Raises:
        RuntimeError: if `n` is negative.
    """
    if not is_of_type(n, "Int"):
        raise wrong_type("polygamma", "n", call_of("polygamma").where("n", 0, (n, input)), "Int", n)
    if not isinstance(input, Tensor):
        raise invalid_arguments("polygamma", n, input)
    if not fits(n):
        raise ValueError("Overflow when unpacking long long")
    return polygamma_of(input, n, out=out)


@public(namespace=None, method=("polygamma",))
def polygamma_method(input, n):
    """The `n`-th derivative of `digamma`, elementwise."""
    return polygamma(n, input)


@public(namespace=None, method=True)
def polygamma_(input, n):
    """`polygamma` in place."""
    return polygamma_of.inplace(input, n)


def _check_order(self, p):
    if self.dtype is dtypes.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if p > incomplete.HIGHEST_DIMENSION:
        raise RuntimeError(f"p of {p} is too large: as many terms would be added up")


@operator(
    kernel=incomplete.mvlgamma,
    promote="float",
    elementwise=False,
    inplace=True,
    check=_check_order,
    batch="elementwise",
)
class mvlgamma:
    """The logarithm of the multivariate gamma function of dimension `p`, elementwise."""

    def forward(self: Array, p: Int): ...

    def grad_self(grad, self, p, xp):
        total = xp.digamma(self)
        for k in range(1, p):
            total = total + xp.digamma(self - k / 2)
        return grad * total


@binary(
    kernels.zeta,
    overloaded=True,
    function_name="special_zeta",
    forms=lambda op: number_either_way(op, out=True),
    promote="float",
    namespace="special",
    inplace=False,
    numbers="first",
    node="SpecialZetaBackward0",
)
class zeta:
    """The Hurwitz zeta function, the sum of `(k + other) ** -input` over k from 0, elementwise."""

    grad_self = unwritten("zeta")

    def grad_other(grad, self, other, xp):
        return grad * -self * xp.zeta(self + 1, other)


@binary(incomplete.igamma, numbers=False)
class igamma:
    """The regularized lower incomplete gamma function: the probability that a gamma sample is at most `other`, elementwise.

    >>> import adjoint as torch
    >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.6321, 0.5940])
    """

    grad_self = unwritten("igamma: input")

    def grad_other(grad, self, other, xp):
        return grad * xp.exp((self - 1) * xp.log(other) - other - xp.lgamma(self))


@binary(incomplete.igammac, numbers=False)
class igammac:
    """The regularized upper incomplete gamma function: `1 - igamma(input, other)`, elementwise."""

    grad_self = unwritten("igammac: input")

    def grad_other(grad, self, other, xp):
        return -grad * xp.exp((self - 1) * xp.log(other) - other - xp.lgamma(self))


# --- entropy --------------------------------------------------------------------------------------------------


@unary(kernels.entr, namespace="special", inplace=False, node="SpecialEntrBackward0", aten_name="special_entr")
class entr:
    """`-input * log(input)`, elementwise. The result is 0 at 0, and -inf for negative numbers."""

    def grad_self(grad, self, xp):
        return grad * (-1 - xp.log(self))


# --- Bessel functions -----------------------------------------------------------------------------------------


@unary(kernels.i0)
class i0:
    """The modified Bessel function of the first kind and order 0, elementwise."""

    def grad_self(grad, self, xp):
        return grad * xp.i1(self)


@unary(kernels.i0e, namespace="special", inplace=False, node="SpecialI0EBackward0", aten_name="special_i0e")
class i0e:
    """`exp(-|input|) * i0(input)`, elementwise."""

    def grad_self(grad, self, result, xp):
        return grad * (xp.i1e(self) - xp.sgn(self) * result)


@unary(kernels.i1, namespace="special", inplace=False, node="SpecialI1Backward0", aten_name="special_i1")
class i1:
    """The modified Bessel function of the first kind and order 1, elementwise."""

    def grad_self(grad, self, result, xp):
        return grad * (xp.i0(self) - _i1_quotient(self, result, xp, False))


@unary(kernels.i1e, namespace="special", inplace=False, node="SpecialI1EBackward0", aten_name="special_i1e")
class i1e:
    """`exp(-|input|) * i1(input)`, elementwise."""

    def grad_self(grad, self, result, xp):
        return grad * (xp.i0e(self) - xp.sgn(self) * result - _i1_quotient(self, result, xp, True))


def _i1_quotient(self, result, xp, scaled):
    """Return `i1(self) / self` or, if `scaled`, `i1e(self) / self`. Near 0, a series keeps the digits of the derivative."""
    if self.dtype.itemsize == 2:
        raise refuse(f"i1{'e' if scaled else ''}_backward", self.dtype)
    near = abs(self) < 0.01
    square = xp.where(near, self, xp.zeros_like(self)) ** 2
    series = 0.5 + square * (1 / 16 + square * (1 / 384 + square / 18432))
    if scaled:
        series = series * xp.exp(-abs(self))
    return xp.where(near, series, result / xp.where(near, xp.ones_like(self), self))


publish(
    "special", erf=erf, erfc=erfc, erfinv=erfinv, gammaln=lgamma, digamma=digamma, psi=digamma,
    polygamma=taking_numpy_names(polygamma), i0=i0, multigammaln=mvlgamma, gammainc=igamma, gammaincc=igammac,
)  # fmt: skip
