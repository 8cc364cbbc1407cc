"""The base of all distributions: shapes, checked parameters, expansion, and printing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import adjoint as torch
from adjoint import Size, Tensor

from .._runtime.tracebacks import PACKAGES, end_methods_at_caller, warn
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """A distribution, or a batch of distributions of `batch_shape`, each for values of `event_shape`.

    A class lists its parameters with their constraints in `arg_constraints`, and sets them as attributes before it
    calls `super().__init__`. That constructor checks them.
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        end_methods_at_caller(cls)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether new distributions check parameters and values by default."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Iterable[int] = (), event_shape: Iterable[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # calls another base class, if a subclass has one

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
        for name, constraint in arg_constraints.items():
            derived = name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)
            if derived or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not torch.func.debug_unwrap(constraint.check(value)).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Any:
        """Return the distribution with its batch dimensions expanded to `batch_shape`, without copying parameters.

        The batch dimensions of each parameter come before the dimensions of its constraint. These batch dimensions are
        expanded, also in component distributions. Derived values are computed again when they are needed.

        Raises:
            NotImplementedError: if a class outside of this package derives directly from `Distribution`.
        """
        batch_shape = Size(batch_shape)
        owner = next(cls for cls in type(self).__mro__ if cls.__module__.partition(".")[0] in PACKAGES)
        if owner.__init__ is Distribution.__init__:  # type: ignore[misc]
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        own_dims = len(self._batch_shape)
        event_dims = _event_dims(self)
        for name, value in vars(self).items():
            if name in event_dims:
                value = value.expand(batch_shape + value.shape[value.dim() - event_dims[name] :])
            elif isinstance(value, Distribution):
                value = value.expand(batch_shape + value.batch_shape[own_dims:])
            elif isinstance(getattr(type(self), name, None), lazy_property):
                continue
            vars(new)[name] = value
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the object that `expand` of `cls` fills: `_instance`, or a new object."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self))

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints of the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that all values satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value with the largest probability or density."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Return samples of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Return samples that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Deprecated: `sample((n,))`."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability, or of the density, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a value that is at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of the support, along a new first dimension.

        They are expanded over the batch unless `expand` is false.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the expected negative `log_prob`."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _check_sample(self, value: Tensor) -> None:
        """Raise an error for an invalid sample, if this distribution checks values."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Raise an error unless `value` is a tensor with a matching shape, and in the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.shape) - len(self._event_shape)
        if value.shape[max(start, 0) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        if not torch.func.debug_unwrap(support.check(value)).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in given.items())
        return f"{type(self).__name__}({shown})"


def _event_dims(distribution: Distribution) -> dict[str, int]:
    """The numbers of event dimensions of the parameters of a distribution and its base classes."""
    found: dict[str, int] = {}
    for cls in reversed(type(distribution).__mro__):
        declared = vars(cls).get("arg_constraints", {})
        if isinstance(declared, property):
            declared = declared.fget(distribution) if cls is not Distribution else {}  # type: ignore[misc]
        for name, constraint in declared.items():
            found[name] = constraint.event_dim
    return {name: dims for name, dims in found.items() if isinstance(vars(distribution).get(name), Tensor)}


class ExponentialFamily(Distribution):
    """A distribution with density exp(<t(x), θ> - F(θ) + k(x)). Its entropy follows from F.

    It has methods for its natural parameters θ, its log-normalizer F, and the mean of its carrier measure k.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(θ) - <θ, ∇F(θ)> - E k(x): Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010."""
        carrier = self._mean_carrier_measure
        params = [each.detach().requires_grad_() for each in self._natural_params]
        with torch.enable_grad():
            log_normalizer = self._log_normalizer(*params)
            gradients = torch.autograd.grad(log_normalizer.sum(), params, create_graph=True)
        result = log_normalizer - carrier
        for theta, mean in zip(params, gradients, strict=True):
            result = result - (theta * mean).reshape(*self._batch_shape, -1).sum(-1)
        return result
