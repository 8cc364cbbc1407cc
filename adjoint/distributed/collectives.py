"""Collectives on tensors. Each checks its arguments, and then performs a few MPI requests.

Results are written into the given tensors. As in PyTorch, no operation is recorded.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy

from ..tensor import Tensor
from . import checks
from .arguments import check_for_root, check_list, check_same_dtype, check_tensor, check_tensors
from .groups import for_members, resolve, resolve_or_warn
from .node_memory import LEAST, SharedBuffer, all_reduce_buffer, buffer_steps, call_text
from .process_group import ProcessGroup
from .progress import watch
from .reductions import Array, ReduceOp, all_reduce_sparse_steps, check, check_sparse
from .steps import (
    Steps,
    all_gather_steps,
    all_reduce_steps,
    all_to_all_steps,
    broadcast_steps,
    contiguous,
    gather_steps,
    put,
    reduce_scatter_steps,
    reduce_steps,
    scatter_steps,
    source,
    target,
)
from .work import Work


def _start(
    group: ProcessGroup, name: str, steps: Steps, async_op: bool, result: Any, about: checks.About | None = None
) -> Work | None:
    if checks.DETAIL.on:
        checks.compare(group, name, about)
    tensors, op, root = about or ((), None, None)
    if len(tensors) == 1:
        text = call_text(name, tensors[0].numel(), tensors[0].dtype, op, root)
    elif tensors:
        text = call_text(name, sum(each.numel() for each in tensors), tensors[0].dtype, op, root)
    else:
        text = call_text(name)
    work = Work(group, name, steps, result, given=tensors, text=text)
    if async_op:
        if not work.done:
            watch()
        return work
    work.wait()
    return None


def _all_reduce_steps(group: ProcessGroup, tensor: Any, op: Any) -> Steps:
    check(op, tensor.dtype, "all_reduce")
    if tensor.is_sparse or tensor.is_sparse_csr:
        check_sparse(tensor, op)
        return all_reduce_sparse_steps(group, tensor, op)
    return all_reduce_steps(group, target(tensor), op)


@for_members
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce the tensors of all ranks in place.

    All ranks get the same result, bit for bit.

    Args:
        tensor: a tensor with the same shape and dtype on all ranks. It may be sparse. Its stored elements may differ
            between ranks.
        op: a `ReduceOp`. Sparse tensors support SUM and AVG.
        group: the participating processes; all if None.
        async_op: whether to return a handle immediately. Its `wait()` returns when the result is complete.
    """
    check_tensor(tensor, "tensor")
    steps = _all_reduce_steps(group, tensor, op)
    return _start(group, "all_reduce", steps, async_op, tensor, ((tensor,), op, None))


@for_members
def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce several tensors of all ranks, each in place."""
    tensors = check_tensors([tensors] if isinstance(tensors, Tensor) else tensors, "tensor")
    check_same_dtype(*tensors)
    each = [_all_reduce_steps(group, tensor, op) for tensor in tensors]
    return _start(group, "all_reduce_coalesced", chain.from_iterable(each), async_op, tensors, (tensors, op, None))


def shared_buffer(count: int, dtype: Any, group: Any = None) -> SharedBuffer | None:
    """Return memory that `all_reduce_shared` reduces in place, or None if there are few elements or no shared memory."""
    found = resolve(group)
    if found is None or found.size() == 1 or count * dtype.itemsize < LEAST:
        return None
    made: list[SharedBuffer] = []
    Work(found, "shared_buffer", buffer_steps(found, count, dtype.numpy, made)).wait()
    return made[0] if made else None


def all_reduce_shared(tensor: Any, buffer: SharedBuffer, op: Any, group: Any) -> Work | None:
    """Start the reduction of `buffer`. `tensor` contains the elements of this rank."""
    found = resolve_or_warn(group, "all_reduce")
    if found is None:
        return None
    return _start(found, "all_reduce", all_reduce_buffer(found, buffer, op), True, tensor, ((tensor,), op, None))


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the tensor of rank `src` to the other ranks. `group_src` is the number of this rank in the group."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    check_tensor(tensor, "tensor")
    root = found.own(src, group_src)
    steps = broadcast_steps(found.comm, target(tensor), root)
    return _start(found, "broadcast", steps, async_op, tensor, ((tensor,), None, root))


@for_members
def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all ranks into the tensor of rank `dst`. The other tensors do not change."""
    check_tensor(tensor, "tensor")
    check(op, tensor.dtype, "reduce")
    root = group.own(dst, group_dst)
    steps = reduce_steps(group.comm, target(tensor), op, group.size(), root)
    return _start(group, "reduce", steps, async_op, tensor, ((tensor,), op, root))


@for_members
def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Fill `tensor_list` with the tensors of all ranks. All tensors have the same shape."""
    outputs = check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_same_dtype(*outputs, tensor)
    check_list(outputs, tensor, group.size(), "allgather", "output")
    gathered = numpy.empty((len(outputs), *tensor.shape), tensor.dtype.numpy)
    steps = all_gather_steps(group.comm, gathered, source(tensor), [target(each) for each in outputs])
    return _start(group, "all_gather", steps, async_op, outputs, ((tensor,), None, None))


@for_members
def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Fill the lists with several tensors of all ranks. The list of a rank contains the tensors of that rank."""
    given = check_tensors(input_tensor_list, "tensor_list")
    each = []
    for number, tensor in enumerate(given):
        outputs = [check_tensors(of_rank, "output_tensor_list")[number] for of_rank in output_tensor_lists]
        check_list(outputs, tensor, group.size(), "allgather", "output")
        gathered = numpy.empty((len(outputs), *tensor.shape), tensor.dtype.numpy)
        each.append(all_gather_steps(group.comm, gathered, source(tensor), [target(output) for output in outputs]))
    steps = chain.from_iterable(each)
    return _start(group, "all_gather_coalesced", steps, async_op, output_tensor_lists, (given, None, None))


@for_members
def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Fill `output_tensor` with the tensors of all ranks, concatenated along its first dimension, or stacked."""
    check_tensor(output_tensor, "output_tensor"), check_tensor(input_tensor, "input_tensor")
    check_same_dtype(input_tensor, output_tensor)
    if output_tensor.numel() != group.size() * input_tensor.numel():
        raise RuntimeError(
            f"all_gather_into_tensor: the output of shape {list(output_tensor.shape)} does not hold {group.size()} tensors of "
            f"shape {list(input_tensor.shape)}"
        )
    steps = all_gather_steps(group.comm, target(output_tensor), source(input_tensor), [])
    return _start(group, "all_gather_into_tensor", steps, async_op, output_tensor, ((input_tensor,), None, None))


@for_members
def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fill `gather_list` of rank `dst` (0 by default) with the tensors of all ranks."""
    check_tensor(tensor, "tensor")
    outputs = check_tensors(gather_list, "gather_list") if gather_list else []
    check_same_dtype(tensor, *outputs)
    root = group.own(0 if dst is None and group_dst is None else dst, group_dst)
    check_for_root(outputs, root == group.rank(), "gather_list", "destination")
    if outputs:
        check_list(outputs, tensor, group.size(), "gather", "output")
    steps = gather_steps(group.comm, [target(each) for each in outputs], source(tensor), root)
    return _start(group, "gather", steps, async_op, outputs, ((tensor,), None, root))


@for_members
def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Fill `tensor` with the tensor at this rank's position in `scatter_list` of rank `src` (0 by default)."""
    check_tensor(tensor, "tensor")
    inputs = check_tensors(scatter_list, "scatter_list") if scatter_list else []
    check_same_dtype(tensor, *inputs)
    root = group.own(0 if src is None and group_src is None else src, group_src)
    check_for_root(inputs, root == group.rank(), "scatter_list", "source")
    if inputs:
        check_list(inputs, tensor, group.size(), "scatter", "input")
    steps = scatter_steps(group.comm, target(tensor), [source(each) for each in inputs], root)
    return _start(group, "scatter", steps, async_op, tensor, ((tensor,), None, root))


@for_members
def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce the lists of all ranks, and put the tensor at this rank's position into `output`."""
    check_tensor(output, "output")
    inputs = check_tensors(input_list, "input_list")
    check_same_dtype(output, *inputs)
    check(op, output.dtype, "reduce_scatter")
    if len(inputs) != group.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    check_list(inputs, output, group.size(), "reduce_scatter", "input")
    joined = numpy.stack([source(each) for each in inputs])
    steps = reduce_scatter_steps(group.comm, target(output), joined, op, group.size())
    return _start(group, "reduce_scatter", steps, async_op, output, (inputs, op, None))


@for_members
def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce `input`, which has a part for each rank, and put this rank's part of the result into `output`."""
    check_tensor(output, "output"), check_tensor(input, "input")
    check_same_dtype(output, input)
    check(op, output.dtype, "reduce_scatter_tensor")
    if input.numel() != group.size() * output.numel():
        raise RuntimeError(
            f"reduce_scatter_tensor: the input of shape {list(input.shape)} does not hold {group.size()} tensors of shape "
            f"{list(output.shape)}"
        )
    steps = reduce_scatter_steps(group.comm, target(output), source(input), op, group.size())
    return _start(group, "reduce_scatter_tensor", steps, async_op, output, ((input,), op, None))


@for_members
def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Send one tensor of `input_tensor_list` to each rank, and fill `output_tensor_list` with the received tensors."""
    outputs, inputs = (
        check_tensors(output_tensor_list, "output_tensor_list"),
        check_tensors(input_tensor_list, "input_tensor_list"),
    )
    check_same_dtype(*outputs, *inputs)
    if len(outputs) != group.size() or len(inputs) != group.size():
        raise RuntimeError("all_to_all: the lists must have one tensor for each rank of the group")
    steps = all_to_all_steps(group.comm, [target(each) for each in outputs], [source(each) for each in inputs])
    return _start(group, "all_to_all", steps, async_op, outputs, ((), None, None))


@for_members
def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Split `input` along its first dimension, send each rank its part, and join the received parts in `output`.

    By default, all parts have the same size.
    """
    check_tensor(output, "output"), check_tensor(input, "input")
    check_same_dtype(output, input)
    received, sent = target(output), source(input)
    whole = contiguous(received)
    outputs = _cut(whole, output_split_sizes, group.size())
    inputs = _cut(sent, input_split_sizes, group.size())

    def steps() -> Steps:
        yield from all_to_all_steps(group.comm, outputs, inputs)
        put(received, whole)

    return _start(group, "all_to_all_single", steps(), async_op, output, ((), None, None))


def _cut(array: Array, sizes: Any, count: int) -> list[Array]:
    length = array.shape[0] if array.ndim else 1
    if not sizes:
        if length % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return numpy.split(array, numpy.cumsum(sizes)[:-1])


@for_members
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Wait until all ranks of the group have reached this call."""

    def steps() -> Steps:
        yield group.comm.Ibarrier()

    return _start(group, "barrier", steps(), async_op, [], ((), None, None))


all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
