"""The categorical distribution of one-hot vectors."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution, expand_by_parameters

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Vectors of zeros with 1 at one place, of the probabilities `probs` (or logarithms `logits`)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    expand = expand_by_parameters

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities, normalized."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, normalized."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(dim=-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(index, self._event_shape[0]).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples that move as if they were the probabilities: Bengio, Léonard, Courville, 2013."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
