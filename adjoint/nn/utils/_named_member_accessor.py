"""Members of modules exchanged by their names, as functional calls do; libraries reach for these private functions."""

from __future__ import annotations

from typing import Any

import adjoint as torch

__all__ = ["set_tensor", "swap_tensor"]

_MISSING: Any = object()


def swap_tensor(module: torch.nn.Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put another tensor, or None, in the place of a parameter, a buffer or an attribute, and return the former one.

    Raises:
        TypeError: if `module` is no module, or the former member no tensor.
        KeyError: if `name` contains a dot or is empty.
        AttributeError: if there is no such member, unless `allow_missing`; then a sentinel is returned, which removes it again.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for members in (module._parameters, module._buffers):
        if name in members:
            former = members[name]
            if tensor is _MISSING:
                del members[name]
            else:
                members[name] = tensor
            return former
    former = getattr(module, name, _MISSING)
    if former is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if former is not _MISSING and former is not None and not isinstance(former, torch.Tensor):
        raise TypeError(f"attribute `{name}`: {former} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return former


def set_tensor(module: torch.nn.Module, name: str, tensor: Any) -> None:
    """Put a tensor in the place of a member, whatever it was; see `swap_tensor`."""
    swap_tensor(module, name, tensor, allow_missing=True)
