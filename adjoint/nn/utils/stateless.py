"""Calling modules with other parameters, under the names that preceded `torch.func`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The deprecated name of `torch.func.functional_call`."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], *args: Any, **options: Any) -> Any:
    """The same without a warning."""
    return torch.func.functional_call(module, parameters_and_buffers, *args, **options)


def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> AbstractContextManager[None]:
    """A context manager that replaces parameters and buffers of a module."""
    from adjoint.func.modules import replaced  # here, because it is imported after this module

    return replaced(module, parameters_and_buffers, tie_weights, strict)
