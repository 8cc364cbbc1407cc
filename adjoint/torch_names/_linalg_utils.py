"""`torch._linalg_utils`: products in which a matrix that is None is the identity."""

from __future__ import annotations

import adjoint as torch

__all__ = ["bform", "matmul", "qform"]

Tensor = torch.Tensor


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """Return `A @ B`."""
    return B if A is None else torch.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """Return `X.mT @ A @ Y`."""
    return torch.matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """Return `S.mT @ A @ S`."""
    return bform(S, A, S)
