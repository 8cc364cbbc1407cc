"""The logistic normal distribution."""

from __future__ import annotations

from typing import Any

from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of a simplex: stick breaking of normal numbers, one less than the point has coordinates."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent[Normal]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base_dist = Normal(loc, scale, validate_args=validate_args)
        if not base_dist.batch_shape:
            base_dist = base_dist.expand([1])
        super().__init__(base_dist, StickBreakingTransform(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
