"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The law of 1 / x for x from the gamma law of `concentration` and `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base_dist = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(-base_dist.rate.new_ones(()))
        super().__init__(base_dist, power, validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma law."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma law."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return torch.where(a > 1, self.rate / (a - 1), torch.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return torch.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), torch.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
