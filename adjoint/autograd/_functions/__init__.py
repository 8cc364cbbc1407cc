"""`torch.autograd._functions`: functions on the shape or the type of one tensor that PyTorch keeps for older code."""

from __future__ import annotations

import math
import sys
from typing import Any

from ..._runtime.first_use import further_names
from ...tensor import Tensor
from ..function import Function

__all__ = ["Resize", "Type", "tensor", "utils"]

tensor = utils = sys.modules[__name__]
further_names(__name__, {"tensor": tensor, "utils": utils})


def maybe_view(tensor: Tensor, size: tuple[int, ...], check_same_size: bool = True) -> Tensor:
    """Reshape `tensor` to `size`. With `check_same_size`, a tensor that has this size is returned unchanged.

    >>> import adjoint as torch
    >>> from adjoint.autograd._functions.utils import maybe_view
    >>> maybe_view(torch.ones(4), (2, 2)).shape
    torch.Size([2, 2])
    """
    if check_same_size and tensor.size() == size:
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(tensor: Tensor, old_size: tuple[int, ...], check_same_size: bool = True) -> Tensor:
    """Sum `tensor` over the dimensions in which a tensor of `old_size` was expanded.

    >>> import adjoint as torch
    >>> from adjoint.autograd._functions.utils import maybe_unexpand
    >>> maybe_unexpand(torch.ones(2, 3), (1,))
    tensor([6.])
    """
    if check_same_size and tensor.size() == old_size:
        return tensor
    new = tensor.dim() - len(old_size)
    expanded = [
        dim for dim, (now, before) in enumerate(zip(tensor.size()[new:], old_size, strict=True)) if now != before
    ]
    for _ in range(new):
        tensor = tensor.sum(0, keepdim=False)
    for dim in expanded:
        tensor = tensor.sum(dim, keepdim=True)
    return tensor


class Resize(Function):
    """Reshape to `sizes`, with the same number of elements."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Return a view if the elements are contiguous."""
        count = math.prod(sizes)
        if count != tensor.numel():
            wanted, present = ("x".join(map(str, each)) for each in (sizes, tensor.size()))
            raise RuntimeError(
                f"requested resize to {wanted} ({count} elements in total), but the given tensor has a size of {present} "
                f"({tensor.numel()} elements). autograd's resize can only change the shape of a given tensor, while preserving "
                "the number of elements. "
            )
        ctx.input_size = tensor.size()
        return tensor.contiguous().view(sizes)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the gradient in the shape of the input."""
        return maybe_view(grad, ctx.input_size), None


class Type(Function):
    """Convert the tensor to `dest_type`: a dtype, or the name or class of a tensor type."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dest_type: Any) -> Tensor:
        """Return the result of `tensor.type(dest_type)`."""
        ctx.input_type = tensor.dtype
        return tensor.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the gradient converted back."""
        return grad.type(ctx.input_type), None
