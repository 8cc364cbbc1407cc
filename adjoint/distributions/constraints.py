"""Constraints on parameters and values: objects with a method `check` that tests values.

The `event_dim` of a constraint is the number of trailing dimensions that form one value. `check` returns one bool per
value.

>>> import adjoint as torch
>>> positive.check(torch.tensor([-1.0, 2.0]))
tensor([False,  True])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .utils import formula

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than",
    "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A constraint: whether its values are discrete, how many dimensions a value has, and a test of values."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Return whether each event in `value` satisfies the constraint."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Dependent(Constraint):
    """A constraint that depends on other values and therefore cannot be checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def _known(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    is_discrete = formula(lambda self: self._known("is_discrete"))
    event_dim = formula(lambda self: self._known("event_dim"))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Return the same constraint with known properties."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        """Raise ValueError, because the constraint cannot be checked."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of distributions that is a constraint. On the class, it has the properties common to all instances."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Decorate the function that returns the constraint."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _check_is(kind: type, **given: Any) -> None:
    """Raise AssertionError unless all named arguments are instances of a class."""
    for name, value in given.items():
        if not isinstance(value, kind):
            article = "an" if kind is int else "a"
            raise AssertionError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}")


class _IndependentConstraint(Constraint):
    """A constraint on events that contain the last batch dimensions. All parts must satisfy the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _check_is(Constraint, base_constraint=base_constraint)
        _check_is(int, reinterpreted_batch_ndims=reinterpreted_batch_ndims)
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape(*result.shape[: result.dim() - self.reinterpreted_batch_ndims], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values that satisfy the constraints of all components of a mixture."""

    def __init__(self, base_constraint: Constraint) -> None:
        _check_is(Constraint, base_constraint=base_constraint)
        self.base_constraint = base_constraint

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        """Return whether each value, given without the dimension of components, satisfies the constraint."""
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


# --- numbers --------------------------------------------------------------------------------------------------


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Bounded(Constraint):
    """Numbers above a bound, below a bound, or between two bounds. Bounds may be tensors."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Under(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    """Numbers above `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers greater than or equal to `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Under):
    """Numbers below `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers from `lower_bound` to `upper_bound`, including both bounds."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers from `lower_bound` to `upper_bound`, excluding `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers from `lower_bound` to `upper_bound`, including both bounds."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Under):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


# --- vectors --------------------------------------------------------------------------------------------------


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# --- matrices -------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices. Their rows have length 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = torch.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], square, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return torch.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not torch.func.debug_unwrap(is_symmetric).all():
            return is_symmetric
        return (torch.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not torch.func.debug_unwrap(is_symmetric).all():
            return is_symmetric
        return torch.linalg.cholesky_ex(value)[1] == 0


# --- joined constraints ---------------------------------------------------------------------------------------


class _Joined(Constraint):
    """Constraints for parts of a value along one of its dimensions."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    is_discrete = formula(lambda self: any(c.is_discrete for c in self.cseq))

    def _checked_dim(self, value: Tensor) -> int:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
        return self.dim


class _Cat(_Joined):
    """Constraints for parts of the given lengths along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    event_dim = formula(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        parts = value.narrow(self._checked_dim(value), 0, sum(self.lengths)).split(self.lengths, self.dim)
        return torch.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    """Constraints for the slices along a dimension."""

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self._checked_dim(value))
        return torch.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=False)], self.dim)


dependent: Any = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: Constraint = _Boolean()
one_hot: Constraint = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: Constraint = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite: Constraint = _PositiveSemidefinite()
positive_definite: Constraint = _PositiveDefinite()
cat = _Cat
stack = _Stack
