"""The exponential of matrices and the eigenvalues of those that are not Hermitian."""

from __future__ import annotations

from ..kernels import linalg as kernels
from .build import operator, public, tensors
from .linalg import conjugate_transpose
from .out import STRICT, stored
from .return_types import return_type


@operator(kernel=kernels.matrix_exp, namespace=None, method=False)
class linalg_matrix_exp:
    """The exponential of square matrices."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        """Mathias (1996), "A chain rule for matrix functions": a block of the exponential of a matrix twice as large."""
        turned, size = conjugate_transpose(self), self.shape[-1]
        above = xp.cat([turned, grad], -1)
        below = xp.cat([turned * 0, turned], -1)
        return xp.linalg_matrix_exp(xp.cat([above, below], -2))[..., :size, size:]


@public(namespace="linalg")
def matrix_exp(A):
    """The exponential of (a stack of) square matrices.

    >>> import adjoint as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return tensors.linalg_matrix_exp(A)


@public(name="matrix_exp", method=("matrix_exp",), numpy_names=True)
def matrix_exp_function(input):
    """The exponential of (a stack of) square matrices: `linalg.matrix_exp`."""
    return tensors.linalg_matrix_exp(input)


@operator(
    kernel=kernels.eig,
    same_out=STRICT,
    namespace=None,
    method=False,
    outputs=("eigenvalues", "eigenvectors"),
    returns=return_type("linalg_eig", "eigenvalues", "eigenvectors"),
)
class linalg_eig:
    """Eigenvalues and eigenvectors of square matrices."""

    def forward(self: Array): ...

    def grad_self(grads, eigenvalues, eigenvectors, xp):
        """Boeddeker et al. (2019), "On the computation of complex-valued gradients": vectors of length 1 and of any phase."""
        to_values, to_vectors = grads
        turned = conjugate_transpose(eigenvectors)
        if to_vectors is None:
            return xp.linalg_solve(turned, to_values[..., :, None] * turned, True)
        gaps = (eigenvalues[..., None, :] - eigenvalues[..., :, None]).conj()
        gaps = gaps + xp.diag_embed(eigenvalues * 0 + 1, 0, -2, -1)
        product = turned @ to_vectors
        along = xp.diagonal(product, 0, -2, -1).real
        inner = (product - (turned @ eigenvectors) * along[..., None, :]) / gaps
        inner = inner - xp.diag_embed(xp.diagonal(inner, 0, -2, -1), 0, -2, -1)
        if to_values is not None:
            inner = inner + xp.diag_embed(to_values, 0, -2, -1)
        return xp.linalg_solve(turned, inner @ turned, True)


@public(namespace="linalg", numpy_names=True)
def eig(input, *, out=None):
    """The eigenvalues and eigenvectors, always complex, of square matrices."""
    return tensors.linalg_eig(input, out=out)


@public(namespace="linalg", numpy_names=True)
def eigvals(input, *, out=None):
    """The eigenvalues, always complex, of square matrices."""
    return stored("linalg_eigvals", tensors.linalg_eig(input).eigenvalues, out, STRICT, underived=True)
