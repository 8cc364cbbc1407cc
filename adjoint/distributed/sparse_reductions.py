"""Sums of sparse tensors over ranks: each rank learns the elements of all, and adds them in the order of the ranks."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy

import adjoint as torch

from ..tensor import tensor_array
from .reductions import Array, ReduceOp, movable

if TYPE_CHECKING:
    from .groups import ProcessGroup
    from .steps import Steps


def check_sparse(tensor: Any, op: ReduceOp) -> None:
    """Raise RuntimeError unless there is a sparse reduction for the tensor."""
    if tensor.layout is not torch.sparse_coo:
        raise RuntimeError(f"all_reduce: sparse tensors must have the layout torch.sparse_coo, not {tensor.layout}")
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError("all_reduce: sparse tensors are reduced by ReduceOp.SUM and ReduceOp.AVG only")


def all_reduce_sparse_steps(group: ProcessGroup, tensor: Any, op: ReduceOp) -> Steps:
    """Put the sum, or the mean, of the tensors of all ranks into `tensor`; ranks may hold different elements."""
    own = tensor.detach().coalesce()
    indices, values = (tensor_array(part) for part in (own.indices().t().contiguous(), own.values().contiguous()))
    counts = numpy.empty(group.size(), numpy.int64)
    yield group.comm.Iallgather(numpy.array([len(values)]), counts)
    every = []
    for part in (indices, values):
        gathered = numpy.empty((int(counts.sum()), *part.shape[1:]), part.dtype)
        yield _gather(group.comm, part, gathered, counts)
        every.append(gathered)
    with torch.no_grad():
        total = torch.sparse_coo_tensor(
            torch.from_numpy(every[0]).t(), torch.tensor(every[1], dtype=tensor.dtype), tensor.shape
        ).coalesce()
        tensor.copy_(total / group.size() if op is ReduceOp.AVG else total)


def _gather(comm: Any, part: Array, gathered: Array, counts: Array) -> Any:
    """The request that puts the rows of all ranks, of which each has its count, one after the other."""
    width = part.itemsize * int(numpy.prod(part.shape[1:], dtype=numpy.int64))
    sizes = [width * count for count in counts.tolist()]
    starts = [0, *accumulate(sizes)][:-1]
    (sent, kind), (received, _) = movable(part), movable(gathered)
    return comm.Iallgatherv([sent, kind], [received, sizes, starts, kind])
