"""Functions of one tensor: change of shape, and change of type."""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from ..function import Function
from .utils import maybe_view

__all__ = ["Resize", "Type"]


class Resize(Function):
    """Reshape to `sizes`, with the same number of elements."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """A view, if the elements are contiguous."""
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
        """The gradient in the shape of the input."""
        return maybe_view(grad, ctx.input_size), None


class Type(Function):
    """Convert to `dest_type`: a dtype, or the name or class of a tensor type."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dest_type: Any) -> Tensor:
        """As `tensor.type(dest_type)`."""
        ctx.input_type = tensor.dtype
        return tensor.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The gradient converted back."""
        return grad.type(ctx.input_type), None
