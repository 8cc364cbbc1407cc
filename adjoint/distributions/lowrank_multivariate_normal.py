"""The multivariate normal distribution of a covariance of low rank beside its diagonal."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal law of mean `loc` and covariance `cov_factor @ cov_factor.T + diag(cov_diag)`.

    With a factor of n rows and m columns, densities take m systems of m equations instead of n of n, by the matrix
    inversion lemma and the matrix determinant lemma.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariances of all pairs of components."""
        factor = self._unbroadcasted_cov_factor
        matrix = factor @ factor.mT + torch.diag_embed(self._unbroadcasted_cov_diag)
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        # The covariance of components scaled to have `cov_diag` 1 is at least the identity: its factor is accurate.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        n = self._event_shape[0]
        identity = torch.eye(n, dtype=root.dtype, device=root.device)
        factor = root * torch.linalg.cholesky(scaled @ scaled.mT + identity)
        return factor.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        part = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        matrix = torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - part.mT @ part
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like: dict[str, Any] = {"dtype": self.loc.dtype, "device": self.loc.device}
        along = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), **like)
        apart = _standard_normal(shape, **like)
        spread = _batch_mv(self._unbroadcasted_cov_factor, along)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * apart

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, self._capacitance_tril)
        log_det = _batch_lowrank_logdet(diagonal, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = _batch_lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape)


def _batch_capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of `I + W.T @ D**-1 @ W`."""
    matrix = (factor.mT / diagonal.unsqueeze(-2)) @ factor
    return torch.linalg.cholesky(matrix + torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device))


def _batch_lowrank_logdet(diagonal: Tensor, capacitance_tril: Tensor) -> Tensor:
    """`log(det(W @ W.T + D))`, by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(factor: Tensor, diagonal: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """`x.T @ (W @ W.T + D)**-1 @ x`, by the matrix inversion lemma."""
    along = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - _batch_mahalanobis(capacitance_tril, along)
