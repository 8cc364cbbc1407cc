"""The transforms from unconstrained numbers to a constraint: `biject_to` and `transform_to`.

`biject_to(constraint)` is a bijection, suitable for a change of variables. `transform_to(constraint)` need not be a
bijection. It is simpler, and suitable for optimization.

>>> import adjoint as torch
>>> from adjoint.distributions import constraints
>>> transform_to(constraints.positive)(torch.tensor(0.0))
tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["biject_to", "transform_to"]

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Functions that create transforms, by class of constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a factory for a class of constraints, given by the class or by an instance. It is also a decorator.

        Raises:
            TypeError: if `constraint` is not a constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """Return the transform from unconstrained numbers to values that satisfy `constraint`.

        Raises:
            NotImplementedError: if no factory is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_in_both(factory: Factory, *kinds: Any) -> None:
    for kind in kinds:
        biject_to.register(kind, factory)
        transform_to.register(kind, factory)


def _to_half_line(bound: str, sign: int) -> Factory:
    def factory(constraint: Any) -> transforms.Transform:
        affine = transforms.AffineTransform(getattr(constraint, bound), sign)
        return transforms.ComposeTransform([transforms.ExpTransform(), affine])

    return factory


def _to_between(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    affine = transforms.AffineTransform(loc=low, scale=high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), affine])


_register_in_both(lambda constraint: transforms.identity_transform, constraints.real)
_register_in_both(_to_half_line("lower_bound", 1), constraints.greater_than, constraints.greater_than_eq)
_register_in_both(_to_half_line("upper_bound", -1), constraints.less_than)
_register_in_both(_to_between, constraints.interval, constraints.half_open_interval)
_register_in_both(lambda constraint: transforms.CorrCholeskyTransform(), constraints.corr_cholesky)
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())


def _by_parts(registry: ConstraintRegistry) -> None:
    """Register transforms composed of the transforms of parts."""

    def independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> transforms.Transform:
        return transforms.CatTransform([registry(each) for each in constraint.cseq], constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform([registry(each) for each in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


_by_parts(biject_to)
_by_parts(transform_to)
