"""PyTorch's module of custom functions within function transforms."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint.transforms.vmap_interpreter import VmapInfo

__all__ = [
    "CtxWithSavedTensors",
    "VmapInfo",
    "custom_function_call",
    "has_overridden_vmap_rule",
    "reductify",
    "reductify_leaf",
]


def custom_function_call(function: type[torch.autograd.Function], /, *args: Any, **keywords: Any) -> Any:
    """Apply a custom function, as `function.apply` does."""
    return function.apply(*args, **keywords)


def has_overridden_vmap_rule(function: type[torch.autograd.Function]) -> bool:
    """Return whether a custom function has a `vmap` method of its own."""
    return function.vmap is not torch.autograd.Function.vmap


class CtxWithSavedTensors:
    """A `ctx` with other saved tensors. All other attributes are those of the `ctx`, and can be set.

    Raises:
        RuntimeError: if the `ctx` has an attribute with one of the names that this class uses.
    """

    _pt_reserved_attrs = ("_pt_new_saved_tensors", "_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        if not isinstance(ctx, CtxWithSavedTensors) and any(hasattr(ctx, name) for name in self._pt_reserved_attrs):
            raise RuntimeError(
                f"PyTorch reserves the {self._pt_reserved_attrs} field on ctx. Please name your fields on ctx something else to "
                "avoid name collision."
            )
        vars(self).update(_pt_inner_ctx=ctx, _pt_new_saved_tensors=new_saved_tensors)

    @property
    def saved_tensors(self) -> Any:
        """The saved tensors that were given to this object."""
        return self._pt_new_saved_tensors

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_pt_inner_ctx"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._pt_inner_ctx, name, value)


def reductify(
    grad_input: Any,
    grad_input_bdim: Any,
    input_bdim: Any,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> tuple[Any, ...]:
    """Apply `reductify_leaf` to each gradient of a tuple, or to a single gradient."""
    several: tuple[Any, ...] = (grad_input, grad_input_bdim, input_bdim, target_shape_without_bdim_to_reduce_to)
    if not isinstance(grad_input, tuple):
        several = tuple((each,) for each in several)
    grads, grad_bdims, bdims, shapes = several
    shapes = [None] * len(grads) if shapes in (None, (None,)) else shapes
    return tuple(
        reductify_leaf(grad, grad_bdim, bdim, batch_size, shape)
        for grad, grad_bdim, bdim, shape in zip(grads, grad_bdims, bdims, shapes, strict=True)
    )


def reductify_leaf(
    grad_input: torch.Tensor | None,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> torch.Tensor | None:
    """Return the gradient of a whole batch in the layout of the input: summed if the input is not batched.

    Args:
        grad_input: a gradient, or None.
        grad_input_bdim, input_bdim: the batch dimension of the gradient and of the input, or None.
        batch_size: the size of the batch.
        target_shape_without_bdim_to_reduce_to: the shape of an example of the input, to which the gradient is summed.
    """
    if grad_input is None or (grad_input_bdim is None and input_bdim is None):
        return grad_input
    shape = target_shape_without_bdim_to_reduce_to
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        grad_input, grad_input_bdim = grad_input.unsqueeze(0).expand(batch_size, *grad_input.shape), 0
    if shape is None:
        return grad_input.movedim(grad_input_bdim, input_bdim)
    return torch.vmap(torch.Tensor.sum_to_size, (grad_input_bdim, None), input_bdim)(grad_input, shape)
