"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Dirichlet(torch.autograd.Function):
    """Samples that move with their concentrations: one component as the beta law that it has, the others in proportion."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = torch._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        moves = torch._dirichlet_grad(x, concentration, total)
        return moves * (grad - (x * grad).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Points x of the simplex of density proportional to the product of `x**(concentration - 1)`, along the last dimension.

    >>> import adjoint as torch
    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    expand = expand_by_parameters

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.xlogy(self.concentration - 1.0, value).sum(-1) - self._log_normalizer(self.concentration)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below 1 the density has no greatest value: the vertex of the greatest one."""
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        vertex = (self.concentration < 1).all(dim=-1, keepdim=True)
        largest = torch.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return torch.where(vertex, largest, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        spread = ((self.concentration - 1.0) * torch.digamma(self.concentration)).sum(-1)
        return self._log_normalizer(self.concentration) - (k - total) * torch.digamma(total) - spread

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - torch.lgamma(x.sum(-1))
