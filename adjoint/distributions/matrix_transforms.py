"""Transforms of vectors and matrices: to the simplex, and to Cholesky factors and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .transform import Transform, _OfNumbers
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StickBreakingTransform",
]  # fmt: skip


class _OfVectors(_OfNumbers):
    domain = constraints.real_vector

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class SoftmaxTransform(_OfVectors):
    """`y = exp(x)`, normalized to sum 1.

    The inverse is the logarithm. It is not bijective, because x has one more degree of freedom.
    """

    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_OfVectors):
    """Vectors to points of a simplex with one more coordinate. Each coordinate takes a fraction of the remaining length.

    The fraction is a sigmoid, shifted so that 0 divides the length into equal parts.
    """

    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(n: int, like: Tensor) -> Tensor:
        return torch.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x: Tensor) -> Tensor:
        limits = torch.finfo(x.dtype)
        shares = torch.sigmoid(x - self._offset(x.shape[-1], x)).clamp(min=limits.tiny, max=1.0 - limits.eps)
        left = (1 - shares).cumprod(-1)
        return F.pad(shares, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return pieces.log() - left.log() + self._offset(pieces.shape[-1], y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        moved = x - self._offset(x.shape[-1], x)
        return (F.logsigmoid(moved) - moved + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        shape = super().forward_shape(shape)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        shape = super().forward_shape(shape)
        return shape[:-1] + (shape[-1] - 1,)


class CorrCholeskyTransform(Transform):
    """Vectors to Cholesky factors of correlation matrices, row by row.

    z are the hyperbolic tangents of the entries. An entry of the factor is z times the length that remains in its row
    after the previous entries. The diagonal entry is the remaining length (Lewandowski, Kurowicka, Joe, 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        eps = torch.finfo(x.dtype).eps
        entries = vec_to_tril_matrix(torch.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - entries**2).sqrt().cumprod(-1)
        entries = entries + torch.eye(entries.shape[-1], dtype=entries.dtype, device=entries.device)
        return entries * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        z = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return torch.atanh(z)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        scaling = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        slope = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return scaling + slope

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)


# --- transforms of matrices -----------------------------------------------------------------------------------


class LowerCholeskyTransform(_OfNumbers):
    """Matrices to lower triangular matrices with positive diagonals, by the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfNumbers):
    """Matrices to positive definite matrices, by their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))
