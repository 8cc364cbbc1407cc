"""The steps of each collective and message: MPI requests on arrays, and copies of results to their destinations.

A non-contiguous tensor is copied, and the result is written back, so ranks need not have the same strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from ..interchange import tensor_array
from ..tensor import Tensor
from . import mpi
from .node_memory import LEAST, all_reduce_through, slots_of
from .reductions import Array, ReduceOp, averaged, movable, reducible
from .work import Receipt

if TYPE_CHECKING:
    from .process_group import ProcessGroup

PART = 1 << 20
"""A larger array is moved and reduced in parts of this many bytes, which stay in the cache."""

Steps = Iterator[Any]


def source(tensor: Tensor) -> Array:
    """Return the array of a tensor, for reading."""
    array: Array = tensor_array(tensor)
    return array


def target(tensor: Tensor) -> Array:
    """Return the array of a tensor, for writing."""
    if type(tensor._array) is not numpy.ndarray:
        raise RuntimeError("a tensor that is lazily conjugated or negated, or has no data, cannot hold a result")
    return tensor._array


def contiguous(array: Array) -> Array:
    """Return the array itself if it is contiguous, otherwise a copy."""
    return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)


def put(array: Array, value: Array) -> None:
    """Write a result into a tensor's array, unless it is already there."""
    if value is not array:
        array[...] = value.reshape(array.shape)


def _parts(whole: Array) -> Iterator[Array]:
    """Yield the elements of a contiguous array in parts that fit into the cache."""
    flat = whole.reshape(-1)
    step = max(1, PART // flat.itemsize)
    return (flat[start : start + step] for start in range(0, flat.size, step))


def all_reduce_steps(group: ProcessGroup, array: Array, op: ReduceOp) -> Steps:
    """Reduce the `array` of all ranks in place, by MPI or in shared memory."""
    whole = contiguous(array)
    slots = (yield from slots_of(group)) if whole.nbytes >= LEAST and group.size() > 1 else None
    if slots is not None:
        yield from all_reduce_through(group, slots, whole, op)
    else:
        in_place = mpi.load().IN_PLACE
        for part in _parts(whole):
            elements, datatype, operation = reducible(part, op)
            yield group.comm.Iallreduce(in_place, [elements, datatype], operation)
            if op is ReduceOp.AVG:
                averaged(part, group.size())
    put(array, whole)


def broadcast_steps(comm: Any, array: Array, root: int) -> Steps:
    """Send the `array` of the rank `root` to all ranks."""
    whole = contiguous(array)
    for part in _parts(whole):
        yield comm.Ibcast(movable(part), root)
    if comm.Get_rank() != root:
        put(array, whole)


def reduce_steps(comm: Any, array: Array, op: ReduceOp, count: int, root: int) -> Steps:
    """Reduce the `array` of all ranks into the array of `root`. The other arrays do not change."""
    whole = contiguous(array)
    in_place = mpi.load().IN_PLACE
    own = comm.Get_rank() == root
    for part in _parts(whole):
        elements, datatype, operation = reducible(part, op)
        place = [elements, datatype]
        yield comm.Ireduce(in_place if own else place, place if own else None, operation, root)
        if own and op is ReduceOp.AVG:
            averaged(part, count)
    if own:
        put(array, whole)


def all_gather_steps(comm: Any, gathered: Array, array: Array, outputs: list[Array]) -> Steps:
    """Put the `array` of each rank into `gathered`, one after another, and from there into the outputs."""
    whole = contiguous(gathered)
    if array.size:
        yield comm.Iallgather(movable(contiguous(array)), movable(whole))
    put(gathered, whole)
    for output, part in zip(outputs, gathered, strict=bool(outputs)):
        put(output, part)


def gather_steps(comm: Any, outputs: list[Array], array: Array, root: int) -> Steps:
    """Put the `array` of each rank into the output with its number, on the rank `root`."""
    if comm.Get_rank() != root:
        yield comm.Igather(movable(contiguous(array)), None, root)
        return
    gathered = numpy.empty((comm.Get_size(), *array.shape), array.dtype)
    yield comm.Igather(movable(contiguous(array)), movable(gathered), root)
    for output, part in zip(outputs, gathered, strict=True):
        put(output, part)


def scatter_steps(comm: Any, output: Array, arrays: list[Array], root: int) -> Steps:
    """Put the array at this rank's position in the list of `root` into `output`."""
    sent = movable(numpy.stack(arrays)) if comm.Get_rank() == root else None
    whole = contiguous(output)
    yield comm.Iscatter(sent, movable(whole), root)
    put(output, whole)


def reduce_scatter_steps(comm: Any, output: Array, array: Array, op: ReduceOp, count: int) -> Steps:
    """Reduce `array`, which has a part for each rank, and put this rank's part into `output`."""
    if not output.size:
        return
    whole = contiguous(output)
    flat, datatype, operation = reducible(whole, op)
    parts = reducible(contiguous(array), op)[0].reshape(count, -1)
    step = max(1, PART // (flat.itemsize * count))
    for start in range(0, flat.size, step):
        piece = flat[start : start + step]
        sent = numpy.ascontiguousarray(parts[:, start : start + step])
        yield comm.Ireduce_scatter_block([sent, datatype], [piece, datatype], operation)
    if op is ReduceOp.AVG:
        averaged(whole, count)
    put(output, whole)


def all_to_all_steps(comm: Any, outputs: list[Array], arrays: list[Array]) -> Steps:
    """Send each rank the array with its number, and put received arrays into the outputs with the senders' numbers."""
    sent = numpy.concatenate([each.reshape(-1) for each in arrays])
    received = numpy.empty(sum(each.size for each in outputs), sent.dtype)
    width = sent.itemsize
    to, of = ([each.size * width for each in side] for side in (arrays, outputs))
    (sent_bytes, kind), (received_bytes, _) = movable(sent), movable(received)
    yield comm.Ialltoallv([sent_bytes, to, kind], [received_bytes, of, kind])
    start = 0
    for output in outputs:
        put(output, received[start : start + output.size])
        start += output.size


def send_steps(comm: Any, array: Array, peer: int, tag: int) -> Steps:
    """Send `array` to a rank."""
    yield comm.Isend(movable(contiguous(array)), peer, tag)


def receive_steps(comm: Any, array: Array, peer: int | None, tag: int, source: list[int], ranks: list[int]) -> Steps:
    """Receive into `array` from a rank, or from any rank. `source` receives the global rank of the sender."""
    MPI = mpi.load()
    whole = contiguous(array)
    receipt = Receipt(comm.Irecv(movable(whole), MPI.ANY_SOURCE if peer is None else peer, tag))
    yield receipt
    source[0] = ranks[receipt.status.Get_source()]
    count = receipt.status.Get_count(MPI.BYTE)
    if count != whole.nbytes:
        raise RuntimeError(
            f"recv: rank {source[0]} has sent {count} bytes, and the tensor of shape {list(array.shape)} has {whole.nbytes}"
        )
    put(array, whole)
