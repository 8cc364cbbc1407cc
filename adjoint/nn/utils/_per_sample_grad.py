"""Per-sample gradients: `call_for_per_sample_grads`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..modules.module import Module

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """Wrap `module` so that backward stores one gradient per sample in `grad_sample` of each parameter.

    The wrapped call runs the module once for all samples, as `vmap` does. Each sample has its own copy of the
    parameters. `param.grad` is unchanged. `param.grad_sample` has the batch dimension first, and must be cleared before
    the next call.

    Args:
        module: any module that computes on each sample independently.
        batch_size: the number of samples; by default the common batch size of all tensor arguments.
        loss_reduction: `'mean'` if the loss is a mean over the batch. The factor of the mean is removed from the
            gradients.
        batch_first: whether the batch is the first dimension of arguments and results, or the second.

    Raises:
        RuntimeError: if an argument is invalid, if the batch size is ambiguous, or if `grad_sample` is already set.

    >>> import adjoint as torch
    >>> layer = torch.nn.Linear(2, 3)
    >>> call_for_per_sample_grads(layer)(torch.ones(5, 2)).sum().backward()
    >>> layer.weight.grad_sample.shape, layer.weight.grad
    (torch.Size([5, 3, 2]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for param in module.parameters():
        if getattr(param, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing "
                f"gradients. Please clear out the grad_sample parameter of {param} or post an issue to pytorch/pytorch to "
                "prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size((args, kwargs), dim) if batch_size is None else batch_size
        scale = size if loss_reduction == "mean" else 1
        params = {
            name: _PerSample.apply(param, size, scale)
            for name, param in module.named_parameters()
            if param.requires_grad
        }
        in_dims = _mapped(lambda value: _checked_dim(value, size, dim), (args, kwargs))

        def one_sample(params: dict[str, Tensor], given: Any) -> Any:
            args, kwargs = _mapped(lambda value: value.unsqueeze(dim) if isinstance(value, Tensor) else value, given)
            result = torch.func.functional_call(module, params, args, kwargs)
            return _mapped(lambda value: value.squeeze(dim) if isinstance(value, Tensor) else value, result)

        return torch.vmap(one_sample, in_dims=(0, in_dims), out_dims=dim, randomness="different")(
            params, (args, kwargs)
        )

    return forward


class _PerSample(torch.autograd.Function):
    """A parameter expanded to one copy per sample. Its gradients are stored in `grad_sample`."""

    @staticmethod
    def forward(ctx: Any, param: Tensor, size: int, scale: int) -> Tensor:
        ctx.param, ctx.scale = param, scale
        return param.expand(size, *param.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        grad = grad * ctx.scale
        held = getattr(ctx.param, "grad_sample", None)
        ctx.param.grad_sample = grad if held is None else held + grad
        return None, None, None


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to the contents of `value`, and preserve its containers."""
    if isinstance(value, dict):
        return type(value)((name, _mapped(function, item)) for name, item in value.items())
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        items = [_mapped(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value)


def _batch_size(given: Any, dim: int) -> int:
    """Return the common batch size of all tensors."""
    sizes: list[int] = []
    _mapped(lambda value: sizes.append(value.size(dim)) if isinstance(value, Tensor) else None, given)
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch size {size}. "
                "Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot "
            "compute the batch size from the inputs. Please specify it explicitly"
        )
    return sizes[0]


def _checked_dim(value: Any, size: int, dim: int) -> int | None:
    """Return the batch dimension `dim` of a tensor with `size` samples, or None for an object that is not a tensor."""
    if not isinstance(value, Tensor):
        return None
    if value.dim() < 2:
        raise RuntimeError(
            "Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, got of rank "
            f"{value.dim()}"
        )
    if value.size(dim) != size:
        raise RuntimeError(
            f"Expected ExpandedWeights to have batch size matching input but got input batch size of {value.size(dim)} with "
            f"ExpandedWeight of batch size {size}"
        )
    return dim
