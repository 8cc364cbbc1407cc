"""Relaxed distributions: continuous, differentiable approximations of discrete distributions."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .classes import Categorical, OfCategories
from .composed import TransformedDistribution
from .distribution import Distribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import ProbsOrLogits, broadcast_all, clamp_probs, formula

__all__ = ["RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log-odds of `RelaxedBernoulli` samples: a logistic number with location `logits`, divided by `temperature`."""

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

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value.mul(self.temperature)
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1).

    They are nearer to 0 or 1 for a lower `temperature`, and are differentiable functions of the parameters.

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

    temperature = formula(lambda self: self.base_dist.temperature, "How far from 0 and 1 numbers are.")
    logits = formula(lambda self: self.base_dist.logits, "The log-odds of more than 1/2.")
    probs = formula(lambda self: self.base_dist.probs, "The probability of more than 1/2.")


class ExpRelaxedCategorical(OfCategories):
    """The logarithms of `RelaxedOneHotCategorical` samples."""

    support = constraints.real_vector  # their exponentials sum to 1
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbel = -((-(uniform.log())).log())
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        factor = math.lgamma(k) + (k - 1) * torch.as_tensor(self.temperature).log()
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + factor


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex.

    They are nearer to its vertices for a lower `temperature`, and are differentiable functions of the parameters.

    Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with
    Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base_dist = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base_dist, ExpTransform(), validate_args=validate_args)

    temperature = formula(lambda self: self.base_dist.temperature, "How far from the vertices points are.")
    logits = formula(lambda self: self.base_dist.logits, "The logarithms of the probabilities, normalized.")
    probs = formula(lambda self: self.base_dist.probs, "The probabilities of the largest coordinate, normalized.")
