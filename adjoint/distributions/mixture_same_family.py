"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution, expand_by_parameters

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of one of several components, the last batch dimension of a distribution, chosen by a categorical law.

    >>> import adjoint as torch
    >>> from adjoint.distributions import Normal
    >>> choice = Categorical(torch.tensor([0.25, 0.75]))
    >>> MixtureSameFamily(choice, Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
    tensor(3.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        own, others = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(own), reversed(others), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                    f"`component_distribution.batch_shape`({others})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        super().__init__(others, component_distribution.event_shape, validate_args=validate_args)

    expand = expand_by_parameters

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is chosen."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _average(self, values: Tensor) -> Tensor:
        """The expectation of values of the components."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(*probs.shape, *(1,) * len(self._event_shape))
        return torch.sum(probs * values, dim=-1 - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self._average(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        means = self._component_distribution.mean
        within = self._average(self._component_distribution.variance)
        return within + self._average((means - self._pad(self.mean)).pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        return torch.sum(self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        of_components = self._component_distribution.log_prob(self._pad(x))
        return torch.logsumexp(of_components + torch.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            dim = values.dim() - len(self._event_shape) - 1
            index = chosen.reshape(*chosen.shape, *(1,) * (values.dim() - chosen.dim()))
            return values.gather(dim, index.expand(*values.shape[:dim], 1, *self._event_shape)).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - len(self._event_shape))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
