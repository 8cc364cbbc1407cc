"""Distributions on lines and half-lines with heavier tails than the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .composed import Folded, TransformedDistribution
from .distribution import Distribution
from .gammas import Exponential
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all, formula

__all__ = ["Cauchy", "GeneralizedPareto", "HalfCauchy", "Laplace", "Pareto"]


class Cauchy(Distribution):
    """The distribution of a quotient of two normal numbers, with median `loc` and half width `scale`. It has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = formula(lambda self: torch.full_like(self.loc, torch.nan))
    mode = formula(lambda self: self.loc)
    variance = formula(lambda self: torch.full_like(self.loc, torch.inf))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Folded):
    """The absolute value of a number from the Cauchy distribution with median 0 and half width `scale`."""

    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return torch.full(self._extended_shape(), torch.inf, dtype=self.scale.dtype, device=self.scale.device)

    variance = formula(lambda self: self.base_dist.variance)


class Laplace(Distribution):
    """The Laplace distribution: an exponential distribution with mean `scale` on each side of `loc`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = mode = formula(lambda self: self.loc)
    stddev = formula(lambda self: math.sqrt(2) * self.scale)
    variance = formula(lambda self: 2 * self.scale.pow(2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = torch.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = value - self.loc
        return 0.5 - 0.5 * z.sign() * torch.expm1(-z.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * torch.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + torch.log(2 * self.scale)


class Pareto(TransformedDistribution):
    """Numbers above `scale`. The probability that a number exceeds x is `(scale / x)**alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base_dist = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base_dist, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # an infinite mean
        return a * self.scale / (a - 1)

    mode = formula(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """The excess over a high threshold `loc`: `P(X > loc + scale * z) = (1 + concentration * z)**(-1 / concentration)`.

    With concentration 0 it is an exponential distribution. With a negative concentration it ends at `loc - scale /
    concentration`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, torch.inf))

    def _is_exponential(self) -> Tensor:
        return self.concentration.abs() < torch.finfo(self.concentration.dtype).eps

    def _regular(self) -> Tensor:
        """Return the concentration, with 1 in place of 0. The formulas are not used for these elements."""
        return torch.where(self._is_exponential(), 1.0, self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = self._z(value)
        k = self._regular()
        regular = -(1.0 / k + 1.0) * torch.log1p(torch.where(self._is_exponential(), 0.0, k * z))
        return torch.where(self._is_exponential(), -z, regular) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of a number greater than `value`."""
        self._check_sample(value)
        z = self._z(value)
        k = self._regular()
        regular = -torch.log1p(torch.where(self._is_exponential(), 0.0, k * z)) / k
        return torch.where(self._is_exponential(), -z, regular)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of a number that is at most `value`."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        log_rest = torch.log1p(-value)
        k = self._regular()
        z = torch.where(self._is_exponential(), -log_rest, torch.expm1(-k * log_rest) / k)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return torch.where(self.concentration < 1, mean, torch.nan)

    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return torch.where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), torch.nan)

    def entropy(self) -> Tensor:
        return torch.log(self.scale) + self.concentration + 1
