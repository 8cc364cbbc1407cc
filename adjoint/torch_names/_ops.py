"""PyTorch's private module of the classes of operators."""

from adjoint._runtime.first_use import import_late
from adjoint.aten.overloads import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

ops = import_late("adjoint.ops")
