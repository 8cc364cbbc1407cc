"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all

__all__ = ["Kumaraswamy"]

EULER = 0.57721566490153286


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] much like those of the beta law: `P(X < x) = 1 - (1 - x**concentration1)**concentration0`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = torch.zeros_like(self.concentration0)
        base_dist = Uniform(zeros, zeros + 1, validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base_dist, transforms, validate_args=validate_args)

    expand = expand_by_parameters

    def _moment(self, n: int) -> Tensor:
        """E(X**n) = b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return torch.exp(b.log() + first.lgamma() + b.lgamma() - (first + b).lgamma())

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ~((a == 1) & (b == 1))
        return torch.where(inside, ((a - 1) / (a * b - 1)).pow(a.reciprocal()), torch.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = torch.digamma(self.concentration0 + 1) + EULER
        return t0 + t1 * harmonic - torch.log(self.concentration1) - torch.log(self.concentration0)
