"""Distributions on intervals and on the circle."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .composed import TransformedDistribution
from .distribution import Distribution, ExponentialFamily
from .transforms import AffineTransform, PowerTransform
from .utils import EULER, ProbsOrLogits, broadcast_all, clamp_probs, formula, lazy_property

__all__ = ["ContinuousBernoulli", "Kumaraswamy", "Uniform", "VonMises"]


class Uniform(Distribution):
    """Numbers from the uniform distribution over [low, high).

    >>> import adjoint as torch
    >>> Uniform(torch.tensor([0.0]), torch.tensor([4.0])).cdf(torch.tensor([1.0]))
    tensor([0.2500])
    """

    has_rsample = True

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    mean = formula(lambda self: (self.high + self.low) / 2)
    mode = formula(lambda self: torch.nan * self.high)
    stddev = formula(lambda self: (self.high - self.low) / 12**0.5)
    variance = formula(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.low + torch.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return torch.log(inside) - torch.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return torch.log(self.high - self.low)


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1], similar to beta-distributed numbers: `P(X < x) = 1 - (1 - x**concentration1)**concentration0`."""

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

    def _moment(self, n: int) -> Tensor:
        """Return the moment E(X**n) = b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return torch.exp(b.log() + first.lgamma() + b.lgamma() - (first + b).lgamma())

    mean = formula(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ~((a == 1) & (b == 1))
        return torch.where(inside, ((a - 1) / (a * b - 1)).pow(a.reciprocal()), torch.nan)

    variance = formula(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = torch.digamma(self.concentration0 + 1) + EULER
        return t0 + t1 * harmonic - torch.log(self.concentration1) - torch.log(self.concentration0)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers x in [0, 1] with density proportional to `probs**x * (1 - probs)**(1 - x)`.

    Loaiza-Ganem and Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders", 2019.
    Some formulas are 0 / 0 at 1/2. If `probs` is within `lims`, Taylor polynomials replace these formulas.
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
            if validate_args and not torch.func.debug_unwrap(constraints.unit_interval.check(parameter)).all():
                raise ValueError("The parameter probs has invalid values")
            parameter = clamp_probs(parameter)
        setattr(self, self._given, parameter)
        self._lims = lims
        super().__init__(parameter.size(), validate_args=validate_args)

    def _regular(self) -> Tensor:
        """Return a mask of the elements for which the formulas can be used directly."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _regular_probs(self) -> Tensor:
        """Return `probs`, with a safe value in place of each element for which the formulas cannot be used."""
        return torch.where(self._regular(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the normalization constant of the density: 2 atanh(1 - 2p) / (1 - 2p)."""
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

    stddev = formula(lambda self: self.variance.sqrt())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
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

    _natural_params = formula(lambda self: (torch.logit(self.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """Return log((e^x - 1) / x), or its Taylor polynomial near 0."""
        regular = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        moved = torch.where(regular, x, self._lims[0] - 0.5)
        formula = torch.log(torch.abs(torch.expm1(moved))) - torch.log(torch.abs(moved))
        return torch.where(regular, formula, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0)


class VonMises(Distribution):
    """Angles x with density proportional to `exp(concentration * cos(x - loc))`, drawn from [-π, π).

    >>> import adjoint as torch
    >>> VonMises(torch.tensor([0.0]), torch.tensor([1.0])).log_prob(torch.tensor([math.pi]))
    tensor([-3.0738])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        # log I0(κ) = κ + log(I0(κ) exp(-κ)): κ (cos - 1) is accurate for large κ
        distance = -2 * torch.sin((value - self.loc) / 2) ** 2
        scaled = torch.special.i0e(self.concentration)
        return self.concentration * distance - math.log(2 * math.pi) - torch.log(scaled)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that proposes samples."""
        kappa = self.concentration.detach().double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw samples by rejection (Best and Fisher, "Efficient simulation of the von Mises distribution", 1979) in float64."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            loc, kappa = self.loc.double(), self.concentration.double()
            r = self._proposal_r
            angle = torch.empty(shape, dtype=torch.float64, device=loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=loc.device)
            while not done.all():
                u1, u2, u3 = torch.rand((3, *shape), dtype=torch.float64, device=loc.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = torch.where(accepted, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = formula(lambda self: self.loc, "The circular mean.")
    mode = formula(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(κ) / I0(κ)."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)
