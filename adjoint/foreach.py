"""`torch._foreach_add` and its like: an operator for each tensor of a list, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from .tracebacks import end_at_caller

_BOUNDS = {"maximum": "clamp_min", "maximum_": "clamp_min", "minimum": "clamp_max", "minimum_": "clamp_max"}
"""Functions of tensors or numbers."""


def _each(values: Any, count: int) -> list[Any]:
    """An argument for each tensor: the items of a list (or of a tensor of scalars for `addcmul`), or one for all."""
    if isinstance(values, (list, tuple)):
        if len(values) != count:
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(values)}")
        return list(values)
    return [values] * count


def _for_each(name: str) -> Callable[..., Any]:
    """The function `_foreach_<name>`; one that ends in `_` changes the tensors, and returns nothing."""
    in_place = name.endswith("_")

    def one(tensor: Any, *args: Any, **options: Any) -> Any:
        if name == "norm":
            return torch.linalg.vector_norm(tensor, *args, **options)
        if name == "powsum":
            return torch.sum(tensor.abs().pow(*(args or (2,))), **options)
        if not isinstance(tensor, torch.Tensor):  # a number to the power of each tensor
            return getattr(torch, name)(tensor, *args, **options)
        if name in _BOUNDS:
            found = getattr(torch, _BOUNDS[name])(tensor, *args)
            return tensor.copy_(found) if in_place else found
        if name.startswith("clamp_") and isinstance(args[0], torch.Tensor) and in_place:
            return tensor.copy_(getattr(tensor, name[:-1])(*args))
        return getattr(tensor, name)(*args, **options)

    def foreach(self: Any, *args: Any, **options: Any) -> Any:
        lists = [each for each in (self, *args) if isinstance(each, (list, tuple))]
        count = len(lists[0])
        if name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_") and len(args) == 3:
            scalars = args[2].tolist() if isinstance(args[2], torch.Tensor) else args[2]
            values = _each(scalars, count)
            firsts, seconds = _each(args[0], count), _each(args[1], count)
            rows = zip(self, firsts, seconds, values, strict=True)
            results = [one(tensor, a, b, value=value) for tensor, a, b, value in rows]
        elif "scalars" in options:
            results = [one(*row, value=s) for *row, s in zip(self, *args, options["scalars"], strict=True)]
        else:
            rows = zip(_each(self, count), *(_each(each, count) for each in args), strict=True)
            results = [one(*row, **options) for row in rows]
        return None if in_place else tuple(results)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"`{name}` for each tensor."
    return foreach


def __getattr__(name: str) -> Any:
    """The function `name`, made when it is first used."""
    if name not in torch._FOREACH:  # type: ignore[attr-defined]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _for_each(name.removeprefix("_foreach_")))


end_at_caller(globals(), "__getattr__")
