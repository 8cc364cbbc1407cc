"""`torch.ops`: operators by the names that PyTorch's dispatcher has for them; names, no logic."""

from .operators.overloads import OpOverload, OpOverloadPacket, aten

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]
