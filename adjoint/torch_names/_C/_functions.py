"""`torch._C._functions`: nodes for tests of the engine, which drop gradients or raise errors."""

from __future__ import annotations

from typing import Any

from adjoint.autograd.function import Function
from adjoint.autograd.function_context import failing
from adjoint.tape.edges import edge_of
from adjoint.tape.node import AccumulateGrad, Node
from adjoint.tensor import Tensor

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


class UndefinedGrad:
    """`UndefinedGrad()(*tensors)` returns the tensors, and drops gradients that arrive at them."""

    def __call__(self, *tensors: Tensor) -> Any:
        """Return the tensors, connected to a node that drops gradients."""
        results = _Undefined.apply(*tensors)
        return results[0] if len(results) == 1 else results


class DelayedError(Node):
    """`DelayedError(message, count)(*tensors)` returns `count` tensors whose backward raises RuntimeError with `message`."""

    __slots__ = ("count", "message")

    def __init__(self, message: str, count: int) -> None:
        self.message, self.count = message, count

    def __call__(self, *tensors: Any, **names: Any) -> Any:
        """Return the tensors. If none of them requires grad, they have no history."""
        if len(tensors) != self.count:
            raise TypeError(f"expected {self.count} arguments, got {len(tensors)} instead")
        if any(isinstance(each, Tensor) and edge_of(each) is not None for each in tensors):
            tensors = tuple(failing(self.message, tensors))
        return tensors[0] if len(tensors) == 1 else tensors
