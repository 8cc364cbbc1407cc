"""`Variable`: an early name of tensors that require grad."""

from __future__ import annotations

from typing import Any

from .._runtime.type_names import type_name
from ..tape.aliases import detached
from ..tape.versions import shared_counter
from ..tensor import Tensor, can_require_grad
from . import methods
from .graph_task import is_checkpoint_valid, queue_callback
from .private_names import _engine_run_backward

__all__ = ["Variable", "VariableMeta"]


class ImperativeEngine:
    """The part of the engine that is available as `Variable._execution_engine`."""

    queue_callback = staticmethod(queue_callback)
    run_backward = staticmethod(_engine_run_backward)
    is_checkpoint_valid = staticmethod(is_checkpoint_valid)


class VariableMeta(type):
    """A metaclass that makes every tensor an instance of `Variable`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=False)` returns a new tensor on the same memory. New code uses tensors directly.

    >>> import adjoint as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(torch.ones(2), torch.autograd.Variable)
    True
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Create a leaf on the memory of `data`."""
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type_name(type(data))}")
        if volatile:
            methods.set_volatile(data)
        result = detached(data, shared_counter(data))
        if requires_grad and not can_require_grad(data._array):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result.requires_grad = bool(requires_grad)
        return result


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise an error, because `torch.tensor` replaces this function. The name also refers to this module."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # type: ignore[attr-defined]
