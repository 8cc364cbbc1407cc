"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Size, Tensor

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution, expand_by_parameters
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes up in `total_count` draws of the probabilities `probs` (or logarithms `logits`)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    expand = expand_by_parameters

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, normalized."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, normalized."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn, dtype=counts.dtype))
        return counts

    def entropy(self) -> Tensor:
        """From the entropy of all draws in order, and the expected number of orders, component by component."""
        n = torch.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = torch.exp(self._binomial.log_prob(counts))
        orders = (weights * torch.lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + orders

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        orders = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return orders + (logits * value).sum(-1)
