"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all

__all__ = ["Weibull"]

EULER = 0.57721566490153286


class Weibull(TransformedDistribution):
    """Lifetimes of which a share of `exp(-(x / scale)**concentration)` exceeds x."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base_dist = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration.reciprocal()),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base_dist, transforms, validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        return self.scale * torch.exp(torch.lgamma(1 + self.concentration.reciprocal()))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1).clamp(min=0) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return self.scale.pow(2) * (torch.exp(torch.lgamma(1 + 2 * inverse)) - torch.exp(2 * torch.lgamma(1 + inverse)))

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + torch.log(self.scale * inverse) + 1
