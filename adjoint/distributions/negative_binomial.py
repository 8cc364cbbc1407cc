"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .gamma import Gamma
from .parametrization import ProbsOrLogits
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """How many trials, of success probability `probs`, succeed before `total_count` have failed.

    It is also the law of a Poisson count whose rate has a gamma law, which is how it is drawn and why `total_count` need
    not be whole.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, parameter = broadcast_all(total_count, self._choose(probs, logits))
        self.total_count = self.total_count.type_as(parameter)
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        unnormalized = count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = torch.lgamma(1.0 + value) + torch.lgamma(count) - torch.lgamma(count + value)
        normalization = normalization.masked_fill(count + value == 0.0, 0.0)
        return unnormalized - normalization
