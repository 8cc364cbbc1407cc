"""A few of the greatest or least eigenvalues of a large symmetric matrix, computed only with matrix products."""

from __future__ import annotations

from typing import Any

from ...dispatch.arguments import require
from ...dispatch.decorators import public, tensors
from ...tensor import Tensor
from ..create.random import randn
from .matmul import matmul


def _matrix(factor: Any, vectors: Tensor) -> Tensor:
    return vectors if factor is None else matmul(factor, vectors)


def _transposed(vectors: Tensor) -> Tensor:
    return vectors.transpose(-2, -1)


def _rayleigh_ritz(A: Any, B: Any, basis: Tensor, count: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The best approximations of eigenvalues and eigenvectors in the space of `basis`."""
    gram = matmul(_transposed(basis), _matrix(B, basis))
    values, vectors = tensors.linalg_eigh((gram + _transposed(gram)) / 2, "L")
    kept = values > values.amax(-1, True) * values.shape[-1] * 1e-2 * _epsilon(basis)
    scale = values.where(kept, tensors.ones_like(values)).rsqrt() * kept
    whitened = matmul(basis, vectors * scale.unsqueeze(-2))
    reduced = matmul(_transposed(whitened), matmul(A, whitened))
    reduced = (reduced + _transposed(reduced)) / 2
    # Move vectors without length to the end of the spectrum that is not requested.
    bound = reduced.abs().sum(-1).amax(-1, True) * 2 + 1
    shift = bound * ~kept * (-1 if largest else 1)
    values, vectors = tensors.linalg_eigh(reduced + tensors.diag_embed(shift.to(reduced.dtype)), "L")
    order = slice(-count, None) if largest else slice(0, count)
    values, vectors = values[..., order], vectors[..., order]
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values, matmul(whitened, vectors)


def _epsilon(tensor: Tensor) -> float:
    return 1.2e-7 if tensor._array.dtype.itemsize == 4 else 2.3e-16


@public()
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The `k` greatest (or least) eigenvalues of a symmetric matrix, or of the problem `A x = lambda B x`, and their vectors.

    Knyazev (2001), "Toward the Optimal Preconditioned Eigensolver". If `A` or `B` requires grad, eigenvalues and
    eigenvectors have derivatives, except for repeated eigenvalues among the `k`.

    Args:
        A: a symmetric matrix of shape `(*, m, m)`, dense or sparse.
        k: the number of eigenvalues; by default 1, or the number of columns of `X`.
        B: a symmetric and positive definite matrix; by default the identity.
        X: the first approximation of the eigenvectors; random by default.
        n: the number of columns of `X` if it is random.
        iK: a preconditioner, an approximate inverse of `A`.
        niter: the maximum number of iterations; by default as many as needed, at most 1000.
        tol: the largest residual, relative to the norms, at which the iteration stops.
        largest: whether to compute the greatest eigenvalues (True).
        method, tracker, ortho_iparams, ortho_fparams, ortho_bparams: accepted for compatibility. The method is always
            "ortho".

    Raises:
        ValueError: if the matrix is smaller than three times `k`.

    >>> import adjoint as torch
    >>> torch.lobpcg(torch.diag(torch.arange(1.0, 7.0)))[0].round(decimals=3)
    tensor([6.])
    """
    require("Tensor", A, "lobpcg", "A", 1)
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={n})"
        )
    method = "ortho" if method is None else method
    if method not in ("ortho", "basic"):
        raise ValueError("expected method to be 'ortho' or 'basic'")
    largest = True if largest is None else largest
    plain, other = A.detach(), None if B is None else B.detach()
    dtype = plain.dtype
    tolerance = (1.2e-7 if dtype.itemsize == 4 else 2.3e-16) ** 0.5 if tol is None else tol
    start = randn((*A.shape[:-2], m, n), dtype=dtype, device=A.device) if X is None else X.detach()
    values, vectors = _rayleigh_ritz(plain, other, start, n, largest)
    direction = None
    scale = _norm_of(plain)
    for _ in range(1000 if niter is None or niter < 0 else niter):
        residual = matmul(plain, vectors) - _matrix(other, vectors) * values.unsqueeze(-2)
        lengths = (residual * residual).sum(-2).sqrt()
        if bool((lengths <= tolerance * (scale + values.abs())).all()):
            break
        residual = _matrix(iK, residual)
        residual = residual / (residual * residual).sum(-2, True).sqrt().clamp_min(1e-30)
        parts = [vectors, residual] if direction is None else [vectors, residual, direction]
        basis = tensors.linalg_qr(tensors.cat(parts, -1), "reduced")[0]
        values, found = _rayleigh_ritz(plain, other, basis, n, largest)
        direction = found - matmul(vectors, matmul(_transposed(vectors), _matrix(other, found)))
        vectors = found
    values, vectors = values[..., :k], vectors[..., :k]
    if A.requires_grad or (B is not None and B.requires_grad):
        return _recorded(A, B, values, vectors)
    return values, vectors


def _recorded(A: Tensor, B: Tensor | None, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenpairs as functions of the matrices, by two Newton steps, with correct derivatives up to the third order."""
    whole = _symmetric(A)
    weight = tensors.eye(A.shape[-1], dtype=A.dtype) if B is None else _symmetric(B)
    values, rows = values[..., None, None], _transposed(vectors).unsqueeze(-1)
    for _ in range(2):
        shifted, side = whole - values * weight, matmul(weight, rows)
        length = matmul(_transposed(rows), side)
        border = tensors.cat([side, tensors.zeros_like(length)], -2)
        system = tensors.cat([tensors.cat([shifted, _transposed(side)], -2), border], -1)
        step = tensors.linalg_solve(system, tensors.cat([matmul(shifted, rows), (length - 1) / 2], -2))
        rows, values = rows - step[..., :-1, :], values + step[..., -1:, :]
    return values[..., 0, 0], _transposed(rows.squeeze(-1))


def _symmetric(matrix: Tensor) -> Tensor:
    dense = matrix.to_dense().unsqueeze(-3)
    return (dense + _transposed(dense)) / 2


def _norm_of(matrix: Tensor) -> Any:
    """The largest absolute row sum."""
    return matmul(matrix.abs(), tensors.ones((*matrix.shape[:-2], matrix.shape[-1], 1), dtype=matrix.dtype)).amax(-2)
