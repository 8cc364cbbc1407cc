"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles x of density proportional to `exp(concentration * cos(x - loc))`, drawn from [-π, π).

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

    expand = expand_by_parameters

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log I0(κ) = κ + log(I0(κ) exp(-κ)): κ (cos - 1) loses nothing where κ is large
        distance = -2 * torch.sin((value - self.loc) / 2) ** 2
        scaled = torch.special.i0e(self.concentration)
        return self.concentration * distance - math.log(2 * math.pi) - torch.log(scaled)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The shape of the wrapped Cauchy law that samples are proposed from."""
        kappa = self.concentration.detach().double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By rejection: Best and Fisher, "Efficient simulation of the von Mises distribution", 1979; in float64."""
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

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(κ) / I0(κ)."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)
