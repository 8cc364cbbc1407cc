"""PyTorch's private module of the classes of operators."""

from .dispatch.overload_names import OpOverload, OpOverloadPacket
from .first_use import import_late

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

ops = import_late("adjoint.ops")
