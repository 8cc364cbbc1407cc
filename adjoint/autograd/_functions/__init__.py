"""`torch.autograd._functions`: the two functions that PyTorch keeps there for older code; only names here."""

from . import tensor, utils
from .tensor import Resize, Type

__all__ = ["Resize", "Type", "tensor", "utils"]
