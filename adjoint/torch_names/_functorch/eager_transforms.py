"""PyTorch's module of the transforms that differentiate functions."""

from __future__ import annotations

from typing import Any

from adjoint.func import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp
from adjoint.transforms.reverse import grad, grad_and_value, positions

__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Return `value` if it is a tuple, otherwise a tuple that contains `value`."""
    return value if isinstance(value, tuple) else (value,)


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """Return the arguments that `argnums` selects, a single one in a tuple too unless `as_tuple` is False."""
    found = tuple(args[position] for position in positions(argnums, len(args)))
    return found if as_tuple or isinstance(argnums, tuple) else found[0]
