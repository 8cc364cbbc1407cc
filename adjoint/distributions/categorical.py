"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Size, Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .parametrization import ProbsOrLogits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """Categories from 0 on, of the probabilities `probs` (or logarithms `logits`) along the last dimension.

    Both are normalized.

    >>> import adjoint as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    is_binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        parameter = self._choose(probs, logits)
        if parameter.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = parameter.size(-1)
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    expand = expand_by_parameters

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return torch.full(self._batch_shape, torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)  # 0 * -inf is 0 here
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = torch.arange(self._num_events, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
