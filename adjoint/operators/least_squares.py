"""The pseudo-inverse, least squares, rank and condition of matrices."""

from __future__ import annotations

from ..kernels import linalg as kernels
from ..tensor import Tensor
from .build import operator, public, tensors
from .linalg import conjugate_transpose
from .out import stored
from .return_types import return_type


@operator(kernel=kernels.pinv, namespace=None, method=False)
class linalg_pinv:
    """The pseudo-inverse of matrices."""

    def forward(self: Array, atol=None, rtol=None, hermitian=False): ...

    def grad_self(grad, self, result):
        return _pinv_gradient(grad, self, result)


def _pinv_gradient(grad, A, P):
    """Golub & Pereyra (1973), "The differentiation of pseudo-inverses", with the products of the smaller matrices first."""
    turned, to_adjoint = conjugate_transpose(P), conjugate_transpose(grad)
    within = to_adjoint @ P
    outer = within @ turned
    total = outer - conjugate_transpose(within) @ turned - A @ (P @ outer)
    left = turned @ P
    rest = to_adjoint - (to_adjoint @ P) @ A
    return total + left @ rest


def _sum(one, other):
    return other if one is None else one + other


def _number(value):
    """A tolerance as the kernel takes it; as a tensor it has one for each matrix."""
    return value.detach()._array if isinstance(value, Tensor) else value


@public(namespace="linalg", numpy_names=True)
def pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudo-inverse; singular values up to `max(atol, rtol * the largest)` count as zero.

    `rtol` is by default the precision times the larger size, or 0 if `atol` is given. `rcond` is its older name.

    >>> import adjoint as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return tensors.linalg_pinv(input, _number(atol), _number(rcond if rtol is None else rtol), hermitian, out=out)


@public(method=True, numpy_names=True)
def pinverse(input, rcond=1e-15):
    """The pseudo-inverse: `linalg.pinv`."""
    return tensors.linalg_pinv(input, None, rcond, False)


@operator(
    kernel=kernels.least_squares,
    namespace=None,
    method=False,
    outputs=("solution", "residuals", "rank", "singular_values"),
    returns=return_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values"),
)
class linalg_lstsq:
    """The solution of least squares."""

    differentiable = ("self", "b")
    nondifferentiable = ("rank", "singular_values")

    def forward(self: Array, b: Array, rcond, driver, vector): ...

    def grad_inputs(grads, self, b, solution, vector, needs, xp):
        to_self = to_b = None
        right = b[..., None] if vector else b
        if grads[0] is not None:
            grad = grads[0][..., None] if vector else grads[0]
            inverse = xp.linalg_pinv(self, None, None, False)
            to_self = _pinv_gradient(grad @ conjugate_transpose(right), self, inverse) if needs[0] else None
            to_b = conjugate_transpose(inverse) @ grad if needs[1] else None
        if grads[1] is not None and 0 not in grads[1].shape:
            # At its minimum the sum of squares does not change with the solution, but with what is given alone.
            found = solution[..., None] if vector else solution
            error = (self @ found - right) * (2 * grads[1])[..., None, :]
            if needs[0]:
                to_self = _sum(to_self, error @ conjugate_transpose(found))
            if needs[1]:
                to_b = _sum(to_b, -error)
        return to_self, to_b[..., 0] if vector and to_b is not None else to_b


@public(namespace="linalg", numpy_names=True)
def lstsq(input, b, rcond=None, *, driver=None, out=None):
    """X that minimizes the Frobenius norm of `input @ X - b`: (solution, residuals, rank, singular values).

    What is given besides the solution depends on `driver`, which is "gelsy" by default.
    """
    vector = kernels.check_least_squares(input._array, b._array, driver)
    return tensors.linalg_lstsq(input, b, rcond, driver, vector, out=out)


@operator(kernel=kernels.matrix_rank, namespace=None, method=False, called="linalg.matrix_rank")
class linalg_matrix_rank:
    """The rank of matrices."""

    def forward(self: Array, atol=None, rtol=None, hermitian=False): ...


@public(namespace="linalg", numpy_names=True)
def matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values are above `max(atol, rtol * the largest)`; `tol` is an older name of `atol`."""
    if tol is not None:
        atol, rtol = tol, 0.0
    return tensors.linalg_matrix_rank(input, _number(atol), _number(rtol), hermitian, out=out)


@public(namespace="linalg", numpy_names=True)
def cond(input, p=None, *, out=None):
    """The condition number: the norm of the matrix times that of its inverse; by default in the 2-norm."""
    kernels.check_matrix("cond", input._array)
    if p in (None, 2, -2):
        values = tensors.linalg_svd(input, False).S
        largest, smallest = values[..., :1], values[..., -1:]
        quotient = smallest / largest if p == -2 else largest / smallest
        return stored("linalg_cond", quotient.squeeze(-1), out, recorded=True)
    inverse = tensors.linalg_inv(input)
    result = tensors.linalg_matrix_norm(input, p) * tensors.linalg_matrix_norm(inverse, p)
    return stored("linalg_cond", result, out, recorded=True)


@public(namespace="linalg")
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, those of the last two dimensions by default, as a view."""
    return tensors.diagonal(A, offset, dim1, dim2)
