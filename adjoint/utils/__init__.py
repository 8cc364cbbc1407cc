"""PyTorch's public name for what surrounds training; only names here, no logic."""

from . import _pytree, checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
