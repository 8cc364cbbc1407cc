"""`torch._foreach_add` and similar functions. They call an operator for each tensor of a list, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint.dispatch.signatures import type_name
from adjoint.dtypes import C_NAMES

_BOUNDS = {"maximum": "clamp_min", "maximum_": "clamp_min", "minimum": "clamp_max", "minimum_": "clamp_max"}
"""Functions with bounds, which may be tensors or numbers."""


_OPERANDS = dict.fromkeys("add sub mul div maximum minimum clamp_max clamp_min pow mm".split(), (1, 1)) | {
    "addcdiv": (2, 3),
    "addcmul": (2, 3),
    "lerp": (2, 2),
    "norm": (0, 2),
    "powsum": (0, 2),
    "copy": (1, 2),
}
"""The least and the greatest number of arguments after the tensors. Functions that are not here have none."""


def _count(name: str, self: Any, args: tuple[Any, ...], options: dict[str, Any]) -> int:
    """Return the number of tensors in the lists of a call, or raise an error for wrong arguments."""
    lists = [(place, each) for place, each in enumerate((self, *args)) if isinstance(each, (list, tuple))]
    if not lists or (lists[0][0] and not isinstance(self, (int, float, complex, torch.Tensor))):
        what = "must be tuple of Tensors, not"
        raise TypeError(f"_foreach_{name}(): argument 'self' (position 1) {what} {type(self).__name__}")
    for place, each in lists:
        wrong = next((at for at, item in enumerate(each) if not isinstance(item, torch.Tensor)), None)
        if wrong is not None and not (place and all(isinstance(item, (int, float, complex)) for item in each)):
            raise TypeError(f"expected Tensor as element {wrong} in argument {place}, but got {type_name(each[wrong])}")
    least, most = _OPERANDS.get(name.rstrip("_"), (0, 0))
    few = len(args) + len(options) < least or (name == "copy_" and args and not isinstance(args[0], (list, tuple)))
    if few or len(args) > most or any(value is None or isinstance(value, str) for value in args):
        kinds = ", ".join(type(each).__name__ for each in (self, *args))
        raise TypeError(f"_foreach_{name}() received an invalid combination of arguments - got ({kinds})")
    count = len(lists[0][1])
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for _, each in lists[1:]:
        _check_length(each, count)
    return count


def _check_length(values: Any, count: int) -> None:
    if len(values) == count:
        return
    if values and isinstance(values[0], torch.Tensor):
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(values)}")
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _each(values: Any, count: int) -> list[Any]:
    """Return an argument for each tensor: the items of a list, or one value for all tensors."""
    return list(values) if isinstance(values, (list, tuple)) else [values] * count


def _numbers(packed: Any, count: int) -> Any:
    """Return the numbers of a tensor, one for each tensor of the list. Return a value that is not a tensor unchanged."""
    if not isinstance(packed, torch.Tensor):
        return packed
    if packed.dim() != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {packed.dim()} instead.")
    if len(packed) != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {len(packed)} instead."
        )
    return packed.tolist()


def _norm(tensor: torch.Tensor, ord: float = 2, dtype: Any = None) -> torch.Tensor:
    return torch.linalg.vector_norm(tensor, ord, dtype=dtype)


def _for_each(name: str) -> Callable[..., Any]:
    """Return the function `_foreach_<name>`. A function that ends in `_` changes the tensors, and returns the list."""
    in_place = name.endswith("_")

    def one(tensor: Any, *args: Any, **options: Any) -> Any:
        if name == "norm":
            return _norm(tensor, *args, **options)
        if name == "powsum":
            return torch.sum(tensor.abs().pow(*(args or (2,))), **options)
        if not isinstance(tensor, torch.Tensor):  # a number to the power of each tensor
            return getattr(torch, name)(tensor, *args, **options)
        if name in _BOUNDS or (in_place and name.startswith("clamp_")):
            found = getattr(torch, _BOUNDS.get(name, name.rstrip("_")))(tensor, *args, **options)
            if in_place and not torch.can_cast(found.dtype, tensor.dtype):
                kind = C_NAMES[tensor.dtype]
                raise RuntimeError(
                    f"result type {found.dtype.scalar_type} can't be cast to the desired output type {kind}"
                )
            return tensor.copy_(found) if in_place else found
        return getattr(tensor, name)(*args, **options)

    def foreach(self: Any, *args: Any, **options: Any) -> Any:
        count = _count(name, self, args, options)
        if name.startswith("addc"):
            value = args[2] if len(args) > 2 else options.get("scalars", options.get("value", 1))
            values = _numbers(value, count)
            if isinstance(values, (list, tuple)):
                _check_length(values, count)
            rows = zip(self, *(_each(each, count) for each in (*args[:2], values)), strict=True)
            results = [one(tensor, a, b, value=number) for tensor, a, b, number in rows]
        else:
            if args and isinstance(args[0], torch.Tensor) and args[0].dim() and not isinstance(self, torch.Tensor):
                raise RuntimeError(
                    f"scalar tensor expected to be 0 dim but it has {args[0].dim()} dimensions and {args[0].numel()} elements."
                )
            rows = zip(_each(self, count), *(_each(each, count) for each in args), strict=True)
            results = [one(*row, **options) for row in rows]
        return self if in_place else tuple(results)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__module__ = torch.__name__
    foreach.__doc__ = f"`{name}` for each tensor."
    return foreach


def __getattr__(name: str) -> Any:
    """Return the function `name`, which is created on first use."""
    if name not in torch._FOREACH:  # type: ignore[attr-defined]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _for_each(name.removeprefix("_foreach_")))
