"""Exponential families: densities exp(<t(x), θ> - F(θ) + k(x)), whose entropy follows from F."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with methods for its natural parameters θ, its log-normalizer F, and the mean of its carrier measure k."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(θ) - <θ, ∇F(θ)> - E k(x): Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010."""
        carrier = self._mean_carrier_measure
        params = [each.detach().requires_grad_() for each in self._natural_params]
        with torch.enable_grad():
            log_normalizer = self._log_normalizer(*params)
            gradients = torch.autograd.grad(log_normalizer.sum(), params, create_graph=True)
        result = log_normalizer - carrier
        for theta, mean in zip(params, gradients, strict=True):
            result = result - (theta * mean).reshape(*self._batch_shape, -1).sum(-1)
        return result
