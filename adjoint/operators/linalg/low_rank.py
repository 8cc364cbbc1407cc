"""Singular values and principal components of large matrices, by random projections (Halko et al., 2011)."""

from __future__ import annotations

from ...dispatch.decorators import public, tensors
from ...tensor import Tensor


def _basis(matrix, q, niter, shift):
    """Return an orthonormal basis that spans nearly all of the range of `matrix - shift`."""

    def product(columns):
        found = matrix @ columns
        return found if shift is None else found - shift @ columns

    def adjoint_product(columns):
        found = matrix.mH @ columns
        return found if shift is None else found - shift.mH @ columns

    drawn = tensors.randn(matrix._array.shape[-1], q, dtype=matrix.dtype, device=matrix.device)
    basis = tensors.linalg_qr(product(drawn), "reduced")[0]
    for _ in range(niter):
        basis = tensors.linalg_qr(adjoint_product(basis), "reduced")[0]
        basis = tensors.linalg_qr(product(basis), "reduced")[0]
    return basis


def _svd(matrix, q, niter, shift):
    wide = matrix._array.shape[-2] < matrix._array.shape[-1]
    if wide:
        matrix, shift = matrix.mH, None if shift is None else shift.mH
    basis = _basis(matrix, q, niter, shift)
    inside = basis.mH @ matrix
    if shift is not None:
        inside = inside - basis.mH @ shift
    u, s, v = tensors.svd(inside)
    u = basis @ u
    return (v, s, u) if wide else (u, s, v)


@public()
def svd_lowrank(A: Tensor, q=6, niter=2, M: Tensor | None = None):
    """Approximate the `q` largest singular values of `A`, or of `A - M`, with their vectors `U` and `V`.

    Args:
        A: `(*, m, n)`.
        q: a number somewhat larger than the rank.
        niter: the number of subspace iterations.
        M: a matrix to subtract; broadcast to the shape of `A`.

    >>> import adjoint as torch
    >>> [part.shape for part in torch.svd_lowrank(torch.rand(8, 5), q=3)]
    [torch.Size([8, 3]), torch.Size([3]), torch.Size([5, 3])]
    """
    return _svd(A, 6 if q is None else q, niter, None if M is None else M.broadcast_to(A.shape))


@public()
def pca_lowrank(A: Tensor, q=None, center=True, niter=2):
    """Approximate the `q` largest principal components of the rows of `A`: `(U, S, V)` as in `svd_lowrank`.

    Args:
        A: `(*, m, n)`.
        q: the number of components; at most 6 if None.
        center: whether to subtract the mean of each column.
        niter: the number of subspace iterations.

    Raises:
        ValueError: if `q` or `niter` is out of range.
    """
    m, n = A._array.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _svd(A - A.mean(-2, True) if center else A, q, niter, None)
