"""The interface of modules for the functions around `Module`, so that they need not import the class."""

from __future__ import annotations

from typing import Any, Protocol

import adjoint as torch

from ..parameter import Parameter


class Registered(Protocol):
    """A module: parameters, buffers and submodules by name; the tables of hooks are attributes."""

    _version: int
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, torch.Tensor | None]
    _modules: dict[str, Any]
    _is_full_backward_hook: bool | None

    def __getattr__(self, name: str) -> Any: ...
