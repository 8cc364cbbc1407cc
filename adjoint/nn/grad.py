"""`torch.nn.grad`: the gradients of convolutions as functions, which are differentiable themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import Tensor

from .functional.declared import operators
from .modules.utils import _ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Ints = int | Sequence[int]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its input of this size; arguments as `conv2d_input`."""
    return _input_gradient(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its weight of this size; arguments as `conv2d_weight`."""
    return _weight_gradient(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input of this size.

    Args:
        input_size: the shape (N, C, H, W) of the input.
        weight: the weight, (O, C/groups, kH, kW).
        grad_output: the gradient of the result, of its shape.
        stride, padding, dilation, groups: as for the convolution; padding in numbers.

    Raises:
        RuntimeError: if the sizes do not belong to one convolution.

    >>> import adjoint as torch
    >>> torch.nn.grad.conv2d_input((1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    return _input_gradient(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its weight of this size.

    Args:
        input: the input, (N, C, H, W).
        weight_size: the shape (O, C/groups, kH, kW) of the weight.
        grad_output: the gradient of the result, of its shape.
        stride, padding, dilation, groups: as for the convolution; padding in numbers.

    Raises:
        RuntimeError: if the sizes do not belong to one convolution.
    """
    return _weight_gradient(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input of this size; arguments as `conv2d_input`."""
    return _input_gradient(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its weight of this size; arguments as `conv2d_weight`."""
    return _weight_gradient(3, input, weight_size, grad_output, stride, padding, dilation, groups)


def _input_gradient(ndim: int, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, *options: Any) -> Tensor:
    *spread, groups = _checked(ndim, tuple(input_size), tuple(weight.shape), tuple(grad_output.shape), *options)
    gradient: Tensor = operators.conv_input_grad(grad_output, weight, tuple(input_size), *spread, groups)
    return gradient


def _weight_gradient(
    ndim: int, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, *options: Any
) -> Tensor:
    *spread, groups = _checked(ndim, tuple(input.shape), tuple(weight_size), tuple(grad_output.shape), *options)
    gradient: Tensor = operators.conv_weight_grad(grad_output, input, tuple(weight_size), *spread, groups)
    return gradient


def _checked(
    ndim: int,
    input: tuple[int, ...],
    weight: tuple[int, ...],
    output: tuple[int, ...],
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> tuple[Any, ...]:
    """The options, one number for each dimension, of a convolution whose input, weight and output have these shapes."""
    if len(input) != ndim + 2 or len(weight) != ndim + 2:
        raise RuntimeError(
            f"Expected {ndim + 2}-dimensional input for {len(weight)}-dimensional weight {list(weight)}, but got "
            f"{len(input)}-dimensional input of size {list(input)} instead"
        )
    spread = [_ntuple(ndim)(value) for value in (stride, padding, dilation)]
    if groups < 1 or input[1] != weight[1] * groups or weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight)}, expected input{list(input)} to have "
            f"{weight[1] * groups} channels, but got {input[1]} channels instead"
        )
    sizes = zip(input[2:], weight[2:], *spread, strict=True)
    expected = (input[0], weight[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes))
    if output != expected:
        raise RuntimeError(
            f"the gradient of a convolution of {list(input)} by {list(weight)} has shape {list(expected)}, but got "
            f"grad_output of shape {list(output)}"
        )
    return (*spread, groups)
