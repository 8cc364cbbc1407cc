"""The standard's extension `linalg`, implemented with `torch.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch

from .data_types import as_common
from .manipulation import Axes
from .statistics import sum as total

__all__ = """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
    slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()


def matmul(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The matrix product."""
    return torch.matmul(*as_common(x1, x2))


def matrix_transpose(x: torch.Tensor, /) -> torch.Tensor:
    """The matrices with rows and columns exchanged."""
    return x.mT


def tensordot(
    x1: torch.Tensor, x2: torch.Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> torch.Tensor:
    """The product of two tensors, summed over axes of both."""
    first, second = as_common(x1, x2)
    return torch.tensordot(first, second, dims=axes)


def vecdot(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The sums of `conj(x1) * x2` along an axis."""
    first, second = as_common(x1, x2)
    if axis >= 0 or axis < -min(first.ndim, second.ndim):
        raise IndexError(f"vecdot(): axis {axis} must be negative and an axis of both tensors")
    if first.shape[axis] != second.shape[axis]:
        raise ValueError(f"vecdot(): the sizes {first.shape[axis]} and {second.shape[axis]} of axis {axis} differ")
    if first.dtype.is_floating_point or first.dtype.is_complex:
        return torch.linalg.vecdot(first, second, dim=axis)
    return torch.sum(first * second, axis, dtype=first.dtype)


def cholesky(x: torch.Tensor, /, *, upper: bool = False) -> torch.Tensor:
    """The triangular factor of positive definite matrices."""
    return torch.linalg.cholesky(x, upper=upper)


def cross(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The cross product of vectors of three elements along an axis."""
    return torch.linalg.cross(*torch.broadcast_tensors(*as_common(x1, x2)), dim=axis)


def diagonal(x: torch.Tensor, /, *, offset: int = 0) -> torch.Tensor:
    """The diagonals of the matrices."""
    return torch.diagonal(x, offset, -2, -1)


def matrix_norm(x: torch.Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> torch.Tensor:
    """The norms of the matrices."""
    return torch.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: torch.Tensor, n: int, /) -> torch.Tensor:
    """The matrices to the power `n`."""
    return torch.linalg.matrix_power(x, n)


def matrix_rank(x: torch.Tensor, /, *, rtol: Any = None) -> torch.Tensor:
    """The number of singular values above `rtol` times the largest one."""
    return torch.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The outer product of two vectors: the product of each element of `x1` and each element of `x2`."""
    return torch.outer(*as_common(x1, x2))


def pinv(x: torch.Tensor, /, *, rtol: Any = None) -> torch.Tensor:
    """The pseudo-inverses of the matrices."""
    return torch.linalg.pinv(x, rtol=rtol)


def qr(x: torch.Tensor, /, *, mode: str = "reduced") -> Any:
    """The orthogonal and the triangular factor, as a named tuple."""
    return torch.linalg.qr(x, mode)


def svd(x: torch.Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition, as a named tuple."""
    return torch.linalg.svd(x, full_matrices=full_matrices)


def solve(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The solutions of linear systems. `x2` is a vector if it has one dimension, otherwise it contains matrices."""
    matrix, right = as_common(x1, x2)
    if right.ndim == 1:
        return torch.linalg.solve(matrix, right.unsqueeze(-1)).squeeze(-1)
    batch = torch.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    return torch.linalg.solve(matrix.expand(*batch, -1, -1), right.expand(*batch, -1, -1))


def trace(x: torch.Tensor, /, *, offset: int = 0, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The sums of the diagonals."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: torch.Tensor,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> torch.Tensor:
    """The norms along axes, or of all elements if the axis is None."""
    if axis == ():
        return torch.linalg.vector_norm(x.unsqueeze(0), ord, 0)
    return torch.linalg.vector_norm(x, ord, axis, keepdims)


def det(x: torch.Tensor, /) -> torch.Tensor:
    """The determinants of the matrices."""
    return torch.linalg.det(x)


def eigh(x: torch.Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices, as a named tuple."""
    return torch.linalg.eigh(x)


def eigvalsh(x: torch.Tensor, /) -> torch.Tensor:
    """The eigenvalues of Hermitian matrices."""
    return torch.linalg.eigvalsh(x)


def inv(x: torch.Tensor, /) -> torch.Tensor:
    """The inverses of the matrices."""
    return torch.linalg.inv(x)


def slogdet(x: torch.Tensor, /) -> Any:
    """The signs and logarithms of the determinants, as a named tuple."""
    return torch.linalg.slogdet(x)


def svdvals(x: torch.Tensor, /) -> torch.Tensor:
    """The singular values."""
    return torch.linalg.svdvals(x)
