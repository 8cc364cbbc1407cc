"""PyTorch's private module of the classes of operators."""

from adjoint._runtime.first_use import import_late
from adjoint.aten.overloads import OpOverload, OpOverloadPacket
from adjoint.torch_names._higher_order_ops.operator import HigherOrderOperator

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]

ops = import_late("adjoint.ops")
