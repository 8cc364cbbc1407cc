"""`UndefinedGrad` passes tensors on and drops their gradients, to test how a backward handles missing gradients."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .function import Function

__all__ = ["UndefinedGrad"]


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
