"""Creating modules without initializing their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import adjoint as torch

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Create `module_cls(*args, **kwargs)` with uninitialized parameters and buffers.

    Raises:
        RuntimeError: if `module_cls` is not a Module, or its constructor has no parameter `device`.

    >>> import adjoint as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final_device = kwargs.pop("device", "cpu")
    return module_cls(*args, device=torch.device("meta"), **kwargs).to_empty(device=final_device)
