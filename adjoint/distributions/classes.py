"""Categorical and multinomial distributions, and mixtures."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Size, Tensor

from . import constraints
from .counts import Binomial
from .distribution import Distribution
from .utils import ProbsOrLogits, broadcast_all, formula

__all__ = [
    "Categorical", "MixtureSameFamily", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough",
]  # fmt: skip


class Categorical(ProbsOrLogits, Distribution):
    """Categories numbered from 0, with probabilities `probs` (or their logarithms `logits`) along the last dimension.

    Both are normalized.

    >>> import adjoint as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    is_binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        parameter = self._choose(probs, logits)
        if parameter.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = parameter.size(-1)
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return torch.full(self._batch_shape, torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    mode = formula(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)  # 0 * -inf is 0 here
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = torch.arange(self._num_events, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OfCategories(Distribution):
    """A distribution of vectors with a component for each category. It contains a categorical distribution."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical = categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    logits = formula(lambda self: self._categorical.logits, "The logarithms of the probabilities, normalized.")
    probs = formula(lambda self: self._categorical.probs, "The probabilities, normalized.")
    param_shape = formula(lambda self: self._categorical.param_shape, "The shape of the given parameter.")


class OneHotCategorical(OfCategories):
    """One-hot vectors with probabilities `probs` (or their logarithms `logits`)."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(Categorical(probs, logits), validate_args)

    _param = formula(lambda self: self._categorical._param)
    mean = formula(lambda self: self.probs)
    mode = formula(lambda self: self._one_hot(self.probs.argmax(dim=-1)))
    variance = formula(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, index: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(index, self._event_shape[0]).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples with the gradient of the probabilities: Bengio, Léonard, Courville, 2013."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategories):
    """The count of each category in `total_count` draws with probabilities `probs` (or their logarithms `logits`)."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=categorical.probs)
        super().__init__(categorical, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda self: self.probs * self.total_count)
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn, dtype=counts.dtype))
        return counts

    def entropy(self) -> Tensor:
        """Compute the entropy of ordered draws, and subtract the expected logarithm of the number of their orders."""
        n = torch.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = torch.exp(self._binomial.log_prob(counts))
        orders = (weights * torch.lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + orders

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        orders = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return orders + (logits * value).sum(-1)


class MixtureSameFamily(Distribution):
    """A mixture.

    A categorical distribution selects one of the components along the last batch dimension of a distribution.

    >>> import adjoint as torch
    >>> from adjoint.distributions import Normal
    >>> choice = Categorical(torch.tensor([0.25, 0.75]))
    >>> MixtureSameFamily(choice, Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
    tensor(3.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
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
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(others, component_distribution.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that selects the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _average(self, values: Tensor) -> Tensor:
        """Return the expectation of values of the components."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(*probs.shape, *(1,) * len(self._event_shape))
        return torch.sum(probs * values, dim=-1 - len(self._event_shape))

    mean = formula(lambda self: self._average(self._component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        means = self._component_distribution.mean
        within = self._average(self._component_distribution.variance)
        return within + self._average((means - self._pad(self.mean)).pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        return torch.sum(self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
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
