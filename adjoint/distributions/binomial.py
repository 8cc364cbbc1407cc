"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .parametrization import ProbsOrLogits
from .utils import broadcast_all

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` (or of log-odds `logits`).

    >>> import adjoint as torch
    >>> Binomial(4, torch.tensor([0.5])).log_prob(torch.tensor(2.0)).exp()
    tensor([0.3750])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, parameter = broadcast_all(total_count, self._choose(probs, logits))
        self.total_count = self.total_count.type_as(parameter)
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return torch.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        log_choices = torch.lgamma(count + 1) - torch.lgamma(value + 1) - torch.lgamma(count - value + 1)
        # value log p + (count - value) log(1 - p), with 1 - p = sigmoid(-logits)
        return log_choices + value * self.logits - count * F.softplus(self.logits)

    def entropy(self) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
