"""`torch.nn.grad`: the gradients of convolutions as functions. These functions are differentiable too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .functional.declared import operators
from .modules.utils import _ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Ints = int | Sequence[int]


def _spread(
    ndim: int, input: Sequence[int], weight: Sequence[int], output: Sequence[int], *options: Any
) -> tuple[Any, ...]:
    """Derive the options of a convolution from the shapes of its input, weight and output, one number per dimension."""
    *given, groups = options
    stride, padding, dilation = (_ntuple(ndim)(value) for value in given)
    of_input, of_weight = (torch.empty(tuple(shape), device="meta") for shape in (input, weight))
    expected = torch.convolution(of_input, of_weight, None, stride, padding, dilation, False, (0,) * ndim, groups).shape
    if expected != output:
        raise RuntimeError(
            f"the gradient of a convolution of {list(input)} by {list(weight)} has shape {list(expected)}, but got "
            f"grad_output of shape {list(output)}"
        )
    return stride, padding, dilation, groups


def _described(
    gradient: Callable[..., Tensor], ndim: int, of: str, arguments: str, shapes: str
) -> Callable[..., Tensor]:
    gradient.__name__ = gradient.__qualname__ = f"conv{ndim}d_{of}"
    gradient.__doc__ = f"""The gradient of `conv{ndim}d` with respect to its {of} of this size.

    Args:{shapes}
        grad_output: the gradient of the result, of its shape.
        stride, padding, dilation, groups: as for the convolution; padding in numbers.

    Raises:
        RuntimeError: if the sizes do not belong to one convolution.

    >>> import adjoint as torch
    >>> ones, twos = torch.ones(1, 1{", 1" * ndim}), torch.ones(1, 1{", 2" * ndim})
    >>> torch.nn.grad.conv{ndim}d_{of}({arguments}, ones).unique()
    tensor([3.])
    """
    return gradient


def _input_gradient(ndim: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        options = _spread(ndim, input_size, weight.shape, grad_output.shape, stride, padding, dilation, groups)
        return operators.conv_input_grad(grad_output, weight, tuple(input_size), *options)

    shapes = """
        input_size: the shape (N, C, ...) of the input.
        weight: the weight, (O, C/groups, ...)."""
    return _described(gradient, ndim, "input", "twos.shape, 3 * twos", shapes)


def _weight_gradient(ndim: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        options = _spread(ndim, input.shape, weight_size, grad_output.shape, stride, padding, dilation, groups)
        return operators.conv_weight_grad(grad_output, input, tuple(weight_size), *options)

    shapes = """
        input: the input, (N, C, ...).
        weight_size: the shape (O, C/groups, ...) of the weight."""
    return _described(gradient, ndim, "weight", "3 * twos, twos.shape", shapes)


conv1d_input, conv2d_input, conv3d_input = map(_input_gradient, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_gradient, (1, 2, 3))
