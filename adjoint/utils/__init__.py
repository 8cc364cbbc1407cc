"""Utilities for training: data loading, checkpointing, hook handles. This file contains names only."""

from importlib import import_module
from typing import Any

import adjoint as torch

from . import _foreach_utils, _pytree, checkpoint, data, hooks

__all__ = [
    "benchmark", "checkpoint", "data", "dlpack", "hooks", "model_zoo", "serialization", "swap_tensors", "tensorboard",
]  # fmt: skip

_LATE = (
    "_dtype_abbrs _import_utils _mode_utils _python_dispatch benchmark deterministic dlpack flop_counter model_zoo "
    "serialization tensorboard weak"
).split()


def __getattr__(name: str) -> Any:
    """Import rarely used modules on first use."""
    if name in _LATE:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
