"""PyTorch's public name for what surrounds training; only names here, no logic."""

from . import data, hooks

__all__ = ["data", "hooks"]
