"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold `loc`: `P(X > loc + scale * z) = (1 + concentration * z)**(-1 / concentration)`.

    With concentration 0 it is an exponential law; with a negative one it ends at `loc - scale / concentration`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, torch.inf))

    def _is_exponential(self) -> Tensor:
        return self.concentration.abs() < torch.finfo(self.concentration.dtype).eps

    def _regular(self) -> Tensor:
        """The concentration, or 1 where it is 0, for formulas that are then not used."""
        return torch.where(self._is_exponential(), 1.0, self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        k = self._regular()
        regular = -(1.0 / k + 1.0) * torch.log1p(torch.where(self._is_exponential(), 0.0, k * z))
        return torch.where(self._is_exponential(), -z, regular) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of how probable more than `value` is."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        k = self._regular()
        regular = -torch.log1p(torch.where(self._is_exponential(), 0.0, k * z)) / k
        return torch.where(self._is_exponential(), -z, regular)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of how probable at most `value` is."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        log_rest = torch.log1p(-value)
        k = self._regular()
        z = torch.where(self._is_exponential(), -log_rest, torch.expm1(-k * log_rest) / k)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return torch.where(self.concentration < 1, mean, torch.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return torch.where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), torch.nan)

    def entropy(self) -> Tensor:
        return torch.log(self.scale) + self.concentration + 1
