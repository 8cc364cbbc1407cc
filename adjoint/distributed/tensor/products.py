"""Products of distributed matrices. If a rule exists, each process multiplies its parts.

The rules apply to one dimension of the mesh, for `x @ y` with x of shape (..., m, k) and y of shape (k, n). If the rows
of x are divided, the rows of the product are divided. If the columns of y are divided, the columns of the product are
divided. If both are divided along k, the products of the parts must be added. If both are whole in all processes, the
product is whole. If a whole operand is multiplied by a divided operand, each process computes a part of the gradient of
the whole operand. These parts are added.

See Shoeybi et al., "Megatron-LM: Training multi-billion parameter language models using model parallelism" (2019).
"""

from __future__ import annotations

from typing import Any

import adjoint as torch

from ..collectives import all_reduce
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["product_placements", "with_summed_gradient"]


def product_placements(
    left: tuple[Placement, ...], left_dims: int, right: tuple[Placement, ...], transposed: bool
) -> tuple[Placement, ...] | None:
    """Return how a product is divided along each dimension of the mesh, or None if no rule applies.

    Args:
        left: the division of the left operand. `left_dims` is the number of its dimensions.
        right: the division of the right operand, a matrix.
        transposed: whether the right operand is given as (n, k), like the weight of a linear layer.
    """
    inner, outer = (1, 0) if transposed else (0, 1)
    found: list[Placement] = []
    for x, y in zip(left, right, strict=True):
        of_x = x.dim % left_dims if isinstance(x, Shard) else None
        of_y = y.dim % 2 if isinstance(y, Shard) else None
        if isinstance(x, Partial) or isinstance(y, Partial):
            return None
        if of_x is None and of_y is None:
            found.append(Replicate())
        elif of_y is None and of_x is not None and of_x < left_dims - 1:
            found.append(Shard(of_x))
        elif of_x is None and of_y == outer:
            found.append(Shard(left_dims - 1))
        elif of_x == left_dims - 1 and of_y == inner:
            found.append(Partial())
        else:
            return None
    return tuple(found)


def with_summed_gradient(part: Any, mesh: Any, own: tuple[Placement, ...], result: tuple[Placement, ...]) -> Any:
    """Return an operand's part. Its gradient is added up if the operand is whole and the result is divided."""
    dims = [
        number
        for number, (mine, other) in enumerate(zip(own, result, strict=True))
        if isinstance(mine, Replicate) and isinstance(other, Shard)
    ]
    return _SummedGradient.apply(part, mesh, dims) if dims and part.requires_grad else part


class _SummedGradient(torch.autograd.Function):
    """The identity function. Its backward adds gradients along dimensions of the mesh."""

    @staticmethod
    def forward(ctx: Any, part: Any, mesh: Any, dims: list[int]) -> Any:
        ctx.mesh, ctx.dims = mesh, dims
        return part.view_as(part)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        grad = grad.clone()
        for number in ctx.dims:
            all_reduce(grad, group=ctx.mesh.get_group(number))
        return grad, None, None
