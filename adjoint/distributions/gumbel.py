"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all

__all__ = ["Gumbel"]

EULER = 0.57721566490153286


class Gumbel(TransformedDistribution):
    """The law of the largest of many numbers: `P(X < loc + scale * z) = exp(-exp(-z))`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = torch.finfo(self.loc.dtype)
        low, high = torch.full_like(self.loc, limits.tiny), torch.full_like(self.loc, 1 - limits.eps)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    expand = expand_by_parameters

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
