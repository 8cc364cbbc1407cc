"""Older forms of `Function`: for nested tuples, lists and dicts of tensors, and for in-place operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adjoint.autograd.function import Function
from adjoint.tensor import Tensor

__all__ = ["InplaceFunction", "NestedIOFunction"]


class InplaceFunction(Function):
    """A function that may change its input in place.

    The class stores only whether the input may be changed. It exists for older code.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A function whose arguments and outputs may be nested tuples, lists and dicts of tensors.

    Override `forward_extended(ctx, *args)` and `backward_extended(ctx, *grad_outputs)`. The gradients that
    `backward_extended` receives have the structure of the outputs. It returns gradients in the structure of the
    arguments.

    >>> import adjoint as torch
    >>> class Swap(torch.autograd.function.NestedIOFunction):
    ...     @staticmethod
    ...     def forward_extended(ctx, pair):
    ...         return {"first": pair[1] * 2, "second": pair[0] * 3}
    ...     @staticmethod
    ...     def backward_extended(ctx, grads):
    ...         return (grads["second"] * 3, grads["first"] * 2)
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> Swap.apply((x, y))["first"].sum().backward()
    >>> y.grad
    tensor([2., 2.])
    """

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward_extended` and record the node."""
        tensors: list[Any] = []
        outputs: list[Any] = []
        flat = super().apply(flattened(args, tensors), outputs, *tensors, **keywords)
        return unflattened(outputs[0], iter(flat))

    @staticmethod
    def forward(ctx: Any, structure: Any, outputs: list[Any], *tensors: Any) -> Any:
        """Call `forward_extended` with the arguments in their structure, and flatten its result."""
        flat: list[Any] = []
        result = ctx._forward_cls.forward_extended(ctx, *unflattened(structure, iter(tensors)))
        outputs.append(flattened(result, flat))
        ctx._nested_output = outputs[0]
        return tuple(flat)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call `backward_extended` with the gradients in their structure, and flatten its result."""
        flat: list[Any] = []
        flattened(ctx._forward_cls.backward_extended(ctx, unflattened(ctx._nested_output, iter(grads))), flat)
        return (None, None, *flat)

    @staticmethod
    def forward_extended(ctx: Any, *args: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx: Any, *grad_outputs: Any) -> Any:
        """Map the gradients of the outputs to the gradients of the arguments."""
        raise NotImplementedError


class _Place:
    """A placeholder for a tensor in a flattened structure."""


_PLACE = _Place()


def flattened(value: Any, tensors: list[Any]) -> Any:
    """Flatten `value`. Append its tensors (and Nones) to `tensors`, and return the structure with placeholders."""
    if value is None or isinstance(value, Tensor):
        tensors.append(value)
        return _PLACE
    if isinstance(value, (list, tuple)):
        return type(value)(flattened(item, tensors) for item in value)
    if isinstance(value, dict):
        return type(value)((key, flattened(item, tensors)) for key, item in value.items())
    return value


def unflattened(structure: Any, tensors: Iterator[Any]) -> Any:
    """Restore a structure. Each placeholder is replaced by the next tensor in `tensors`."""
    if structure is _PLACE:
        return next(tensors)
    if isinstance(structure, (list, tuple)):
        return type(structure)(unflattened(item, tensors) for item in structure)
    if isinstance(structure, dict):
        return type(structure)((key, unflattened(item, tensors)) for key, item in structure.items())
    return structure
