"""`torch.autograd._functions`: two functions that PyTorch keeps for older code; names, no logic."""

from . import tensor, utils
from .tensor import Resize, Type

__all__ = ["Resize", "Type", "tensor", "utils"]
