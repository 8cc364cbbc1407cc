"""Exchanging members of modules by name, for functional calls. Libraries use these private functions."""

from __future__ import annotations

from typing import Any

import adjoint as torch

__all__ = ["set_tensor", "swap_tensor"]

_MISSING: Any = object()


def swap_tensor(module: torch.nn.Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace a parameter, a buffer or an attribute by another tensor or None, and return the former value.

    Raises:
        TypeError: if `module` is not a module, or the former member is not a tensor.
        KeyError: if `name` contains a dot or is empty.
        AttributeError: if the member does not exist. With `allow_missing`, a sentinel is returned instead. Passing the
            sentinel back removes the member again.
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
    """Replace a member of any kind by a tensor; see `swap_tensor`."""
    swap_tensor(module, name, tensor, allow_missing=True)
