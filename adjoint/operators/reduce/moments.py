"""Moments and norms over some dimensions or all."""

from __future__ import annotations

from ...dispatch.annotations import Array, Bool, Dims, Dtype, Number
from ...dispatch.decorators import add_method, public, tensors
from ...dispatch.out import STRICT, stored
from ...kernels.reduce import moments
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.shapes import names_all
from ...tape.saved import unpack
from ..declaring.formulas import added
from ..declaring.reductions import reduction
from .reduction import element_count

# --- moments --------------------------------------------------------------------------------------------------


def _variance_gradient(grad, self, dim, correction, keepdim, xp):
    """Return the gradient of the variance, which is twice the deviation from the mean divided by the degrees of freedom."""
    shape = tuple(self.shape)
    degrees = element_count(shape, dim) - (1 if correction is None else correction)
    deviation = self - xp.mean(self, dim, True)
    factor = 2 / degrees if degrees > 0 else float("inf") if degrees == 0 else 2 / degrees
    return (factor * xp.kept(grad, shape, dim, keepdim)) * deviation


def _divided_by_twice(grad, deviation, xp):
    """Return `grad / (2 * deviation)`, the derivative of the square root times `grad`, or 0 where `deviation` is 0."""
    zero = deviation == 0
    return xp.where(zero, grad * 0, grad / (2 * xp.where(zero, deviation * 0 + 1, deviation)))


def _no_complex_moment(result, given, inputs):
    """Raise an error if several moments of real numbers would be written into a complex tensor."""
    if given.is_complex and not inputs[0].dtype.is_complex and result.size > 1:
        raise refuse("std_cpu", given)


def _with_mean(to_moment, to_mean, self, dim, correction, keepdim, xp):
    """Return the gradient of a variance and of the mean. One of the two may have no gradient."""
    total = None if to_moment is None else _variance_gradient(to_moment, self, dim, correction, keepdim, xp)
    if to_mean is None:
        return total
    shape = tuple(self.shape)
    of_mean = xp.spread(xp.kept(to_mean, shape, dim, keepdim), shape, dim, True) / element_count(shape, dim)
    return added(total, of_mean)


@reduction(moments.var, overloaded=True, same_out=_no_complex_moment, aten="correction", narrow="halves")
class var:
    """The variance over `dim`, or of all elements.

    `correction` (1, or 0 if not `unbiased`) is subtracted from the number of elements.
    """

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False): ...

    grad_self = _variance_gradient


@reduction(moments.std, overloaded=True, same_out=_no_complex_moment, aten="correction", narrow="halves")
class std:
    """The standard deviation over `dim`, or of all elements: the square root of `var`."""

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False): ...

    def grad_self(grad, self, result, dim, correction, keepdim, xp):
        return _variance_gradient(_divided_by_twice(grad, result, xp), self, dim, correction, keepdim, xp)


def _and_mean(kernel, outputs):
    return reduction(
        kernel, method=False, out=False, overloaded=True, outputs=outputs, aten="correction", narrow="halves"
    )


@_and_mean(moments.var_mean, outputs=("var", "mean"))
class var_mean:
    """`var` and the mean over `dim`, or of all elements."""

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False): ...

    def grad_self(grads, self, dim, correction, keepdim, xp):
        return _with_mean(grads[0], grads[1], self, dim, correction, keepdim, xp)


@_and_mean(moments.std_mean, outputs=("std", "mean"))
class std_mean:
    """`std` and the mean over `dim`, or of all elements."""

    saved_display = {"std": None, "result0": lambda node: unpack(node, "std")}

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False): ...

    def grad_self(grads, self, std, dim, correction, keepdim, xp):
        to_variance = None if grads[0] is None else _divided_by_twice(grads[0], std, xp)
        return _with_mean(to_variance, grads[1], self, dim, correction, keepdim, xp)


# --- norms ----------------------------------------------------------------------------------------------------


def norm_gradient(grad, self, result, ord, dim, keepdim, xp):
    """The gradient of the norm of order `ord` over `dim`, or 0 at a norm of 0, where the norm is not differentiable."""
    shape = tuple(self.shape)
    dim = None if names_all(dim) else dim
    grad, norm = xp.kept(grad, shape, dim, keepdim), xp.kept(result, shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return xp.sgn(self) * grad
    if ord == 2:
        return self * (grad * xp.where(norm == 0, norm * 0, 1 / norm))
    size = xp.abs(self)
    if ord in (float("inf"), float("-inf")):
        equal = (size == norm) | ((size != size) & (norm != norm))
        del size
        return xp.sgn(self) * (equal * (grad / xp.sum(equal, dim, True)))
    zero = norm == 0
    whole = xp.where(zero, xp.ones_like(norm), norm)
    if ord < 1:  # at 0 the derivative is 0, but the power is infinite
        steep = xp.pow_number(xp.where(size == 0, xp.ones_like(size), size), ord - 1)
        share = xp.where(size == 0, size * 0, steep) / xp.pow_number(whole, ord - 1)
    elif ord < 2:  # the derivative of this quotient with respect to the norm is finite at 0
        share = xp.pow_number(size, ord - 1) / xp.pow_number(whole, ord - 1)
    else:  # the power of the quotient does not overflow
        share = xp.pow_number(size / whole, ord - 1)
    del size
    share = xp.sgn(self) * share * grad
    return xp.zero_where(share, zero)


@reduction(moments.norm, namespace="linalg", same_out=STRICT, sparse="reductions.norm", narrow="halves norm_cpu")
class linalg_vector_norm:
    """The `ord`-norm of the elements over `dim`, by default over all dimensions.

    >>> import adjoint as torch
    >>> torch.linalg.vector_norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """

    def forward(self: Array, ord: Number = 2, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...

    grad_self = norm_gradient


@public()
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The `p`-norm over `dim`, or of all elements. `p` is a number, `"fro"` (2) or `"nuc"`.

    >>> import adjoint as torch
    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if isinstance(p, str) and p != "fro":
        dims = range(input._array.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
        result = tensors.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype)
        return stored(
            "linalg_matrix_norm",
            result,
            out,
            "linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}",
            recorded=True,
        )
    return linalg_vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


def norm_method(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The method `norm`, which has no parameter `out`."""
    return norm(input, p, dim, keepdim, dtype=dtype)


add_method("norm", norm_method, retried=True)
