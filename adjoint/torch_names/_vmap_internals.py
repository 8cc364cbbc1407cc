"""PyTorch's older module of `vmap`, for functions that return a tensor or a tuple of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint._runtime.tracebacks import warn
from adjoint.tensor import Tensor
from adjoint.transforms.vmap import vmap as newer
from adjoint.transforms.vmap_interpreter import LEGACY

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return `torch.vmap(func)`, with a warning that this name is deprecated."""
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return `torch.vmap(func)` for a function that returns a tensor or a tuple of tensors (and of None if allowed)."""

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        absent: list[int] = []

        @functools.wraps(func)
        def without_absent(*args: Any) -> Any:
            result = func(*args)
            _check(result, getattr(func, "__name__", repr(func)), allow_none_pass_through)
            if isinstance(result, Tensor):
                return result
            absent.extend(place for place, each in enumerate(result) if each is None)
            return tuple(each for each in result if each is not None)

        result = newer(without_absent, in_dims, out_dims, LEGACY)(*args)
        if not isinstance(result, tuple):
            return result
        parts = list(result)
        for place in absent:
            parts.insert(place, None)
        return tuple(parts)

    return mapped


def _check(result: Any, name: str, allow_none: bool) -> None:
    """Raise an error unless the function `name` has returned a tensor or a tuple of tensors (or of None if allowed)."""
    if isinstance(result, Tensor):
        return
    if not isinstance(result, tuple):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)} as the return."
        )
    for place, each in enumerate(result):
        if not isinstance(each, Tensor) and not (each is None and allow_none):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(each)} for return {place}."
            )
