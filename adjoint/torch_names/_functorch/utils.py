"""PyTorch's module of small functions for function transforms."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from adjoint.torch_names._C._functorch import unwrap_if_dead

__all__ = ["argnums_t", "enable_single_level_autograd_function", "unwrap_dead_wrappers"]

argnums_t = int | tuple[int, ...]


def enable_single_level_autograd_function() -> AbstractContextManager[None]:
    """Return a context without effect. In PyTorch, a function of one level can be applied only inside it."""
    return nullcontext()


def unwrap_dead_wrappers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `args` with each tensor of a transform that has ended as it is outside, and `args` itself if there is none."""
    found = tuple(unwrap_if_dead(arg) for arg in args)
    return args if all(one is other for one, other in zip(found, args, strict=True)) else found
