"""PyTorch's private package for operators that programs define. `torch.library` is the public interface."""

from . import custom_ops

__all__ = ["custom_ops"]
