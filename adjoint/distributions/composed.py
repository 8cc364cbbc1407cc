"""Distributions composed of other distributions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution
from .transforms import AbsTransform, ComposeTransform, Transform
from .utils import _sum_rightmost, formula

__all__ = ["Independent", "TransformedDistribution"]


D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last `reinterpreted_batch_ndims` batch dimensions are independent parts of one event.

    >>> import adjoint as torch
    >>> from adjoint.distributions import Normal
    >>> Independent(Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1).log_prob(torch.zeros(2, 3))
    tensor([-2.7568, -2.7568])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    base_dist: D

    def __init__(self, base_distribution: D, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        base_batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(base_batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(base_batch)}"
            )
        shape = base_batch + base_distribution.event_shape
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        support = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            return constraints.independent(support, self.reinterpreted_batch_ndims)
        return support

    mean = formula(lambda self: self.base_dist.mean)
    mode = formula(lambda self: self.base_dist.mode)
    variance = formula(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of samples of `base_distribution` after one or several transforms.

    >>> import adjoint as torch
    >>> from adjoint.distributions import AffineTransform, SigmoidTransform, Uniform
    >>> logistic = TransformedDistribution(Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(1.0, 2.0)])
    >>> logistic.cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Iterable[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(each, Transform) for each in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got "
                f"{base_shape}."
            )
        forward_shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(forward_shape)
        if tuple(expanded) != tuple(base_shape):
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        missing = transform.domain.event_dim - base_event_dim
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist: Any = base_distribution
        event_dim = transform.codomain.event_dim + max(base_event_dim - transform.domain.event_dim, 0)
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self._event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _untransformed(self, y: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        event_dim = len(self._event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            volume = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(volume, event_dim - transform.domain.event_dim)
            y = x
        return log_prob + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Return `value`, or 1 minus `value` if the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self.base_dist._validate_sample(self._untransformed(value))
        return self._monotonize_cdf(self.base_dist.cdf(self._untransformed(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))


class Folded(TransformedDistribution):
    """The absolute value of a number from a distribution that is symmetric about 0 and has width `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, symmetric: Distribution, validate_args: bool | None) -> None:
        super().__init__(symmetric, AbsTransform(), validate_args=validate_args)

    scale = formula(
        lambda self: self.base_dist.scale, "The width of the distribution before the absolute value is taken."
    )
    mode = formula(lambda self: torch.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return torch.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
