"""`torch.ao`: the quantization names that modules use. This file contains names only."""

from . import quantization

__all__ = ["quantization"]
