"""PyTorch's older module of `vmap`, for functions that return a tensor or a tuple of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint._runtime.tracebacks import warn
from adjoint.transforms.vmap import vmap as newer

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, with a warning that this name is deprecated."""
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return `torch.vmap(func)` for a function that returns a tensor or a tuple of tensors.

    The tuple may include None if allowed.
    """

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        absent: list[int] = []

        @functools.wraps(func)
        def without_absent(*args: Any) -> Any:
            result = func(*args)
            if not isinstance(result, tuple) or not allow_none_pass_through:
                return result
            absent.extend(place for place, each in enumerate(result) if each is None)
            return tuple(each for each in result if each is not None)

        result = newer(without_absent, in_dims, out_dims)(*args)
        if not isinstance(result, tuple):
            return result
        parts = list(result)
        for place in absent:
            parts.insert(place, None)
        return tuple(parts)

    return mapped
