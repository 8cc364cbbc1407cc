"""PyTorch's private package of operators that programs define; `torch.library` is its public face."""

from . import custom_ops

__all__ = ["custom_ops"]
