"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .parametrization import ProbsOrLogits
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """How many trials fail before the first succeeds, each with probability `probs` (or of log-odds `logits`)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)
        if self._validate_args and logits is None:
            value = self.probs
            if not (value > 0).all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value[~(value > 0)]}"
                )

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        tiny = torch.finfo(self.probs.dtype).tiny
        with torch.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = torch.where((probs == 1) & (value == 0), 0.0, probs)  # certain success: 0 * log(0) is 0 here
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
