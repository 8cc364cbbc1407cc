"""`once_differentiable`: declares that the `backward` of a custom function cannot itself be differentiated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..tape import modes
from ..tape.node import Node, start
from ..tensor import Tensor, wrap
from .hook_calls import recording_mode

__all__ = ["once_differentiable"]


class Error(Node):
    """The history of the results of a `once_differentiable` backward: differentiating them raises."""

    __slots__ = ()

    def name(self) -> str:
        """PyTorch's full name."""
        return "torch::autograd::Error"

    def backward(self, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        """Raise: the backward cannot be differentiated."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    backward_recorded = backward


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose computation cannot itself be differentiated."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with recording_mode(False):
            results = function(ctx, *grads)
        needs = any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads)
        if not modes.is_grad_enabled() or not needs:
            return results
        several = isinstance(results, tuple)
        marked = [undifferentiable(result) for result in (results if several else (results,))]
        return tuple(marked) if several else marked[0]

    return wrapper


def undifferentiable(result: Any) -> Any:
    """`result` with a history that raises when it is differentiated and that leads nowhere."""
    if not isinstance(result, Tensor):
        return result
    node = object.__new__(Error)
    start(node, (None,), 2)
    result = wrap(result._array)
    node._grad_shape, node._grad_dtype = result._array.shape, result._array.dtype
    result._edge = (node, 0)
    return result
