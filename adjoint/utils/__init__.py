"""PyTorch's public name for what surrounds training; only names here, no logic."""

from . import hooks

__all__ = ["hooks"]
