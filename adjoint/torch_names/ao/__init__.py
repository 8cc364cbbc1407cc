"""`torch.ao`: quantization, as far as modules name it; names, no logic."""

from . import quantization

__all__ = ["quantization"]
