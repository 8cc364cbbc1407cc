"""`torch.ao`: the quantization names that modules use; names, no logic."""

from . import quantization

__all__ = ["quantization"]
