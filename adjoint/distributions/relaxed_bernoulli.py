"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .parametrization import ProbsOrLogits
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log-odds of what a `RelaxedBernoulli` law gives: a logistic number about `logits`, over `temperature`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        (parameter,) = broadcast_all(self._choose(probs, logits))
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    expand = expand_by_parameters

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value.mul(self.temperature)
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) near to 0 or 1, the nearer the lower the `temperature`, that move with their parameters.

    Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with
    Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base_dist = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base_dist, SigmoidTransform(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def temperature(self) -> Tensor:
        """How far from 0 and 1 numbers are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds of more than 1/2."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of more than 1/2."""
        return self.base_dist.probs
