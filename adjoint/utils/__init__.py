"""Utilities for training: data loading, checkpointing, hook handles; names, no logic."""

from . import _foreach_utils, _pytree, checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
