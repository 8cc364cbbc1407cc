"""PyTorch's private module of the classes of operators."""

from ._runtime.first_use import import_late
from .dispatch.overload_names import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

ops = import_late("adjoint.ops")
