"""Distributions of counts."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gammas import Gamma
from .utils import ProbsOrLogits, broadcast_all, formula, lazy_property

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs` (or with log-odds `logits`), otherwise 0.

    >>> import adjoint as torch
    >>> Bernoulli(torch.tensor([0.25, 0.5])).log_prob(torch.tensor(1.0)).exp()
    tensor([0.2500, 0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    mean = formula(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return torch.where(self.probs == 0.5, torch.nan, mode)

    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    _natural_params = formula(lambda self: (torch.logit(self.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.log1p(torch.exp(x))


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in `total_count` trials, each with probability `probs` (or with log-odds `logits`).

    >>> import adjoint as torch
    >>> Binomial(4, torch.tensor([0.5])).log_prob(torch.tensor(2.0)).exp()
    tensor([0.3750])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, parameter = broadcast_all(total_count, self._choose(probs, logits))
        self.total_count = self.total_count.type_as(parameter)
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda self: self.total_count * self.probs)
    mode = formula(lambda self: torch.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count))
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        count = self.total_count
        log_choices = torch.lgamma(count + 1) - torch.lgamma(value + 1) - torch.lgamma(count - value + 1)
        # value log p + (count - value) log(1 - p), with 1 - p = sigmoid(-logits)
        return log_choices + value * self.logits - count * F.softplus(self.logits)

    def entropy(self) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success.

    Each trial succeeds with probability `probs` (or log-odds `logits`).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (parameter,) = broadcast_all(self._choose(probs, logits))
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)
        if self._validate_args and logits is None:
            value = self.probs
            if not torch.func.debug_unwrap(value > 0).all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value[~(value > 0)]}"
                )

    mean = formula(lambda self: 1.0 / self.probs - 1.0)
    mode = formula(lambda self: torch.zeros_like(self.probs))
    variance = formula(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        tiny = torch.finfo(self.probs.dtype).tiny
        with torch.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = torch.where((probs == 1) & (value == 0), 0.0, probs)  # certain success: 0 * log(0) is 0 here
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes, with probability `probs`, before `total_count` failures.

    It is the distribution of a Poisson count whose rate has a gamma distribution. Samples are drawn in this way, so
    `total_count` need not be an integer.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.total_count, parameter = broadcast_all(total_count, self._choose(probs, logits))
        self.total_count = self.total_count.type_as(parameter)
        setattr(self, self._given, parameter)
        super().__init__(parameter.size(), validate_args=validate_args)

    mean = formula(lambda self: self.total_count * torch.exp(self.logits))
    mode = formula(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda self: self.mean / torch.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        count = self.total_count
        unnormalized = count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = torch.lgamma(1.0 + value) + torch.lgamma(count) - torch.lgamma(count + value)
        normalization = normalization.masked_fill(count + value == 0.0, 0.0)
        return unnormalized - normalization


class Poisson(ExponentialFamily):
    """The number of events, if `rate` events are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = formula(lambda self: self.rate)
    mode = formula(lambda self: self.rate.floor())
    variance = formula(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = formula(lambda self: (torch.log(self.rate),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.exp(x)
