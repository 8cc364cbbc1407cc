"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The law of a quotient of two normal numbers, moved to the median `loc` and of half width `scale`.

    It has no mean.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return torch.full_like(self.loc, torch.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return torch.full_like(self.loc, torch.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
