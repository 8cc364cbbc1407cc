"""Linear algebra by Householder reflections: QR factorizations in LAPACK's form, and the matrices that they represent."""

from __future__ import annotations

from ...dispatch.annotations import Array, Bool
from ...dispatch.decorators import operator, public
from ...dispatch.out import Castable
from ...kernels.linalg import householder as kernels
from ..declaring.formulas import unwritten
from .decompositions import conjugate_transpose


@operator(kernel=kernels.geqrf, outputs=("a", "tau"), returns="geqrf", batch="leading")
class geqrf:
    """The QR factorization in LAPACK's form: R with the reflections below the diagonal, and the scale factors of reflections.

    `linalg.householder_product` and `ormqr` accept the result. `linalg.qr` returns Q and R themselves.
    """

    real_derivative = "geqrf"

    grad_self = unwritten("geqrf")


def _gradients(grad, matrix, tau, xp):
    """Return the gradients with respect to the matrix and tau.

    `grad` is the gradient of the first columns of the product of all reflections.

    The product is `1 - V @ T @ V.mH` with `T = (1 + D S)^-1 D` (see `kernels.linalg.householder`). Here D is diag(tau),
    and S is the part of `V.mH @ V` above the diagonal. Therefore `dT = (1 + D S)^-1 dD (1 + S D)^-1 - T dS T`.
    """
    if 0 in matrix.shape or 0 in tau.shape:
        return None, None
    rows, count, columns = matrix.shape[-2], tau.shape[-1], grad.shape[-1]
    unit = xp.diag_embed(tau * 0 + 1, 0, -2, -1)
    vectors = xp.tril(matrix[..., :count], -1) + xp.constant_pad_nd(unit, (0, 0, 0, rows - count), 0)
    first = vectors[..., :columns, :]
    products = xp.triu(conjugate_transpose(vectors) @ vectors, 1)
    left = xp.linalg_solve_triangular(tau[..., None] * products, unit, True, True, True)
    right = xp.linalg_solve_triangular(products * tau[..., None, :], unit, True, True, True)
    coupling = left * tau[..., None, :]
    turned = conjugate_transpose(coupling)

    to_coupling = -(conjugate_transpose(vectors) @ grad @ first)
    to_tau = conjugate_transpose(left) @ to_coupling @ conjugate_transpose(right)
    to_products = -xp.triu(turned @ to_coupling @ turned, 1)
    to_vectors = vectors @ (to_products + conjugate_transpose(to_products)) - grad @ (first @ turned)
    to_first = -(conjugate_transpose(grad) @ (vectors @ coupling))
    to_vectors = to_vectors + xp.constant_pad_nd(to_first, (0, 0, 0, rows - columns), 0)
    to_matrix = xp.constant_pad_nd(xp.tril(to_vectors, -1), (0, matrix.shape[-1] - count), 0)
    return to_matrix, xp.diagonal(to_tau, 0, -2, -1)


@operator(
    kernel=kernels.householder_product,
    namespace="linalg",
    same_out=Castable("torch.linalg.householder_product"),
    batch="expanded",
)
class linalg_householder_product:
    """The first columns of the product of the reflections `1 - tau * v @ v.mH` that `geqrf` returns.

    Each v is a column of `input` below the diagonal, with a 1 on the diagonal.

    >>> import adjoint as torch
    >>> A = torch.tensor([[3.0, 1.0], [4.0, 2.0]])
    >>> Q = torch.linalg.householder_product(*torch.geqrf(A))
    >>> torch.allclose(Q.mT @ Q, torch.eye(2), atol=1e-6)
    True
    """

    def forward(input: Array, tau: Array): ...

    differentiable = ("input", "tau")

    def grad_inputs(grad, input, tau, needs, xp):
        return _gradients(grad, input, tau, xp)


@public(method=True, numpy_names=True)
def orgqr(input, input2, *, out=None):
    """The first columns of a product of reflections; see `linalg.householder_product`."""
    return linalg_householder_product(input, input2, out=out)


ORMQR = "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{wanted} and result has dtype {given}"


@operator(kernel=kernels.ormqr, same_out=ORMQR, batch="expanded")
class ormqr:
    """The product of another matrix and Q, where Q is the product of all reflections that `geqrf` returns.

    Q is the left factor if `left` is true, otherwise the right factor. If `transpose` is true, the adjoint of Q is
    used.
    """

    def forward(self: Array, input2: Array, input3: Array, left: Bool = True, transpose: Bool = False): ...

    differentiable = ("self", "input2", "input3")

    def grad_inputs(grad, self, input2, input3, left, transpose, needs, xp):
        to_other = xp.ormqr(self, input2, grad, left, not transpose) if needs[2] else None
        if not needs[0] and not needs[1]:
            return None, None, to_other
        to_product = grad @ conjugate_transpose(input3) if left else conjugate_transpose(input3) @ grad
        to_product = conjugate_transpose(to_product) if transpose else to_product
        return *_gradients(to_product, self, input2, xp), to_other
