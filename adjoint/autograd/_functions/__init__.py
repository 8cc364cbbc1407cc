"""`torch.autograd._functions`: two functions that PyTorch keeps for older code; names, no logic."""

from ...first_use import further_names
from . import tensor
from . import tensor as utils
from .tensor import Resize, Type

__all__ = ["Resize", "Type", "tensor", "utils"]

further_names(__name__, {"utils": utils})
