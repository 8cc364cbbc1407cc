"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import expand_by_parameters
from .exp_family import ExponentialFamily
from .parametrization import ProbsOrLogits
from .utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers x in [0, 1] of density proportional to `probs**x * (1 - probs)**(1 - x)`.

    Loaiza-Ganem and Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders", 2019.
    Where `probs` is within `lims`, formulas that are 0 / 0 at 1/2 are replaced by their Taylor polynomials.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        if logits is None:
            if validate_args and not constraints.unit_interval.check(parameter).all():
                raise ValueError("The parameter probs has invalid values")
            parameter = clamp_probs(parameter)
        setattr(self, self._given, parameter)
        self._lims = lims
        super().__init__(parameter.size(), validate_args=validate_args)

    expand = expand_by_parameters

    def _regular(self) -> Tensor:
        """Where the formulas may be used as they are."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _regular_probs(self) -> Tensor:
        """`probs`, moved to where the formulas may be used."""
        return torch.where(self._regular(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """The logarithm of the factor that makes the density's integral 1: 2 atanh(1 - 2p) / (1 - 2p)."""
        p = self._regular_probs()
        regular = torch.log(torch.abs(torch.log1p(-p) - torch.log(p))) - torch.log(torch.abs(1 - 2.0 * p))
        square = (self.probs - 0.5) ** 2
        return torch.where(self._regular(), regular, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square)

    @property
    def mean(self) -> Tensor:
        p = self._regular_probs()
        regular = p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - torch.log(p))
        x = self.probs - 0.5
        return torch.where(self._regular(), regular, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        p = self._regular_probs()
        regular = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / (torch.log1p(-p) - torch.log(p)) ** 2
        square = (self.probs - 0.5) ** 2
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square
        return torch.where(self._regular(), regular, taylor)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._regular_probs()
        regular = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = torch.where(self._regular(), regular, value)
        return torch.where(value <= 0.0, 0.0, torch.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._regular_probs()
        regular = (torch.log1p(-p + value * (2.0 * p - 1.0)) - torch.log1p(-p)) / (torch.log(p) - torch.log1p(-p))
        return torch.where(self._regular(), regular, value)

    def entropy(self) -> Tensor:
        log_0, log_1 = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (log_0 - log_1) - self._log_norm() - log_0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """log((e^x - 1) / x), with its Taylor polynomial about 0."""
        regular = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        moved = torch.where(regular, x, self._lims[0] - 0.5)
        formula = torch.log(torch.abs(torch.expm1(moved))) - torch.log(torch.abs(moved))
        return torch.where(regular, formula, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0)
