"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import expand_by_parameters
from .exp_family import ExponentialFamily
from .parametrization import ProbsOrLogits
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs` (or of log-odds `logits`), otherwise 0.

    >>> import adjoint as torch
    >>> Bernoulli(torch.tensor([0.25, 0.5])).log_prob(torch.tensor(1.0)).exp()
    tensor([0.2500, 0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return torch.where(self.probs == 0.5, torch.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.log1p(torch.exp(x))
