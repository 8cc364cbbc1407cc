"""Differentiable collectives.

The gradient of each collective is another collective, which sends gradients in the opposite direction.

All ranks of the group must run their backward, because gradients are exchanged too. The derivative is the derivative of
the sum of all ranks' results. If every rank receives a value, its gradient is the sum of the gradients of all ranks.
"""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .. import collectives
from ..groups import NON_GROUP_MEMBER, get_rank, get_world_size
from ..reductions import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of rank `src` on all ranks. In backward, `src` receives the sum of the gradients."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks on rank `dst`, and zeros elsewhere.

    In backward, each rank receives its gradient from `dst`.
    """
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """Return the tensor at this rank's position in the list of rank `src`. In backward, `src` gathers the gradients."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduced tensors of all ranks on rank `dst`, and the tensor itself elsewhere.

    In backward, all ranks receive the gradient of `dst`.
    """
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Reduce the tensors at this rank's position in the lists of all ranks. Return the result in the shape of `output`.

    In backward, all ranks gather the gradients.
    """
    return _Reduce_Scatter.apply(op, group, output, *input_list)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks. In backward, each rank receives the sum of the gradients of its tensor."""
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors that each rank sends to this rank, in the shapes of `output_tensor_list`.

    In backward, gradients are sent back to the senders.
    """
    return _AlltoAll.apply(group, list(output_tensor_list), *input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """Exchange the parts of `input`, one for each rank, and return the received parts in `output`.

    In backward, gradients are sent back to the senders.
    """
    return _AlltoAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduced tensors of all ranks. In backward, the gradients of all ranks are reduced in the same way."""
    return _AllReduce.apply(op, group, tensor)


def _pieces(tensor: Any, count: int) -> list[Any]:
    return [torch.empty_like(tensor) for _ in range(count)]


def _root(rank: int, group: Any) -> bool:
    own = torch.distributed.get_rank()
    return bool(own == rank) and group != NON_GROUP_MEMBER


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        tensor = tensor.clone()
        collectives.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        summed = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, summed if _root(ctx.src, ctx.group) else torch.zeros_like(grad)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> tuple[Any, ...]:
        ctx.dst, ctx.group = dst, group
        outputs = [torch.zeros_like(tensor) for _ in range(get_world_size(group))]
        collectives.gather(tensor.contiguous(), outputs if _root(dst, group) else None, dst, group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        if len({tensor.shape for tensor in tensors}) != 1:
            raise AssertionError("Tensors must all have the same shape")
        ctx.src, ctx.group = src, group
        output = torch.empty_like(tensors[0])
        given = [tensor.contiguous() for tensor in tensors] if _root(src, group) else None
        collectives.scatter(output, given, src, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        collectives.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _Reduce_Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *inputs: Any) -> Any:
        ctx.group = group
        result = torch.empty_like(output)
        collectives.reduce_scatter(result, [each.contiguous() for each in inputs], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> tuple[Any, ...]:
        ctx.group = group
        outputs = _pieces(tensor, get_world_size(group))
        collectives.all_gather(outputs, tensor.contiguous(), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        own = grads[get_rank(ctx.group)]
        return None, _Reduce_Scatter.apply(ReduceOp.SUM, ctx.group, own, *grads)


class _AlltoAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Any], *inputs: Any) -> tuple[Any, ...]:
        ctx.group = group
        ctx.given = [each.shape for each in inputs]
        results = [torch.empty_like(each) for each in outputs]
        collectives.all_to_all(results, [each.contiguous() for each in inputs], group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        like = [torch.empty(shape, dtype=grads[0].dtype) for shape in ctx.given]
        return None, None, *_AlltoAll.apply(ctx.group, like, *grads)


class _AlltoAllSingle(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, received: Any, sent: Any, input: Any) -> Any:
        ctx.group, ctx.received, ctx.sent, ctx.given = group, received, sent, input.shape
        result = torch.empty_like(output)
        collectives.all_to_all_single(result, input.contiguous(), received, sent, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        like = torch.empty(ctx.given, dtype=grad.dtype)
        return None, None, None, None, _AlltoAllSingle.apply(ctx.group, like, ctx.sent, ctx.received, grad)


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        tensor = tensor.clone()
        collectives.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)
