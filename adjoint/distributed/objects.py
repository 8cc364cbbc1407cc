"""Collectives on Python objects: plain data and tensors in the form of `.pt` files, which are read without the dangers of pickle.

A rank that receives a pickle runs code that another rank has chosen. Other objects are therefore sent only if all ranks
pass `pickle=True`.
"""

from __future__ import annotations

import io
import pickle as pickles
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy

import adjoint as torch

from . import mpi
from .groups import for_members, resolve, resolve_or_warn
from .process_group import ProcessGroup
from .reductions import Array
from .steps import Steps
from .work import Receipt, Work

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.Tensor, torch.device, torch.Size)
TAG = 32749
"""The tag of messages that carry objects."""


def check_plain(value: Any, name: str) -> None:
    """Refuse values that are neither plain data nor tensors.

    Raises:
        TypeError: if there is such a value. The error names its type.
    """
    if type(value) in (list, tuple, set):
        for each in value:
            check_plain(each, name)
    elif type(value) in (dict, OrderedDict):
        for key, each in value.items():
            check_plain(key, name)
            check_plain(each, name)
    elif not (
        type(value) in PLAIN
        or isinstance(value, torch.Tensor)
        or (isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc")
    ):
        raise TypeError(
            f"{name}: a value of type {type(value).__module__}.{type(value).__qualname__} can only travel as a pickle, "
            "which lets the sender run code in the receiver. If you trust all ranks, pass pickle=True on each of them."
        )


def encode(value: Any, name: str, pickle: bool) -> Array:
    """Return an object as bytes."""
    if pickle:
        return numpy.frombuffer(pickles.dumps(value), numpy.uint8)
    check_plain(value, name)
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return numpy.frombuffer(buffer.getbuffer(), numpy.uint8)


def decode(data: Array, pickle: bool) -> Any:
    """Undo `encode`."""
    if pickle:
        return pickles.loads(data.tobytes())
    return torch.load(io.BytesIO(data.tobytes()), pickle_module=pickles)  # permits arrays too, but no code


def _counted(data: Array, counts: list[int]) -> list[Any]:
    return [data, counts, mpi.load().BYTE]


def _run(group: ProcessGroup, name: str, steps: Iterator[Any], given: Any, in_order: bool = True) -> None:
    Work(group, name, steps, None, in_order, given).wait()


@for_members
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None, *, pickle: bool = False) -> None:
    """Fill `object_list` with the objects of all ranks.

    Args:
        object_list: a list with one element per rank.
        obj: numbers, strings, bytes, None, tensors, NumPy numbers and arrays, and lists, tuples, sets and dicts of
            these.
        group: the participating processes; all if None.
        pickle: whether any object may be sent, as a pickle. Use this only if you trust all ranks.
    """
    own = encode(obj, "all_gather_object", pickle)
    sizes = numpy.empty(group.size(), numpy.int64)
    data = [own]

    def steps() -> Steps:
        yield group.comm.Iallgather(numpy.array([own.size]), sizes)
        data[0] = numpy.empty(int(sizes.sum()), numpy.uint8)
        yield group.comm.Iallgatherv([own, mpi.load().BYTE], _counted(data[0], sizes.tolist()))

    _run(group, "all_gather_object", steps(), own)
    for number, part in enumerate(numpy.split(data[0], numpy.cumsum(sizes)[:-1])):
        object_list[number] = decode(part, pickle)


@for_members
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    *,
    pickle: bool = False,
) -> None:
    """Replace the elements of `object_list` by the elements of rank `src` (0 by default).

    `pickle`: as in `all_gather_object`.
    """
    root = group.own(0 if src is None and group_src is None else src, group_src)
    own = encode(list(object_list), "broadcast_object_list", pickle) if root == group.rank() else None
    size = numpy.array([0 if own is None else own.size])
    data: list[Any] = [own]

    def steps() -> Steps:
        yield group.comm.Ibcast(size, root)
        if own is None:
            data[0] = numpy.empty(int(size[0]), numpy.uint8)
        yield group.comm.Ibcast([data[0], mpi.load().BYTE], root)

    _run(group, "broadcast_object_list", steps(), own)
    if own is None:
        object_list[:] = decode(data[0], pickle)


@for_members
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    *,
    pickle: bool = False,
) -> None:
    """Fill the list of rank `dst` (0 by default) with the objects of all ranks. `pickle`: as in `all_gather_object`."""
    root = group.own(0 if dst is None and group_dst is None else dst, group_dst)
    is_root = root == group.rank()
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if object_gather_list and not is_root:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    own = encode(obj, "gather_object", pickle)
    sizes = numpy.zeros(group.size(), numpy.int64)
    data: list[Any] = [None]

    def steps() -> Steps:
        yield group.comm.Igather(numpy.array([own.size]), sizes if is_root else None, root)
        if is_root:
            data[0] = numpy.empty(int(sizes.sum()), numpy.uint8)
        received = _counted(data[0], sizes.tolist()) if is_root else None
        yield group.comm.Igatherv([own, mpi.load().BYTE], received, root)

    _run(group, "gather_object", steps(), own)
    if object_gather_list:
        for number, part in enumerate(numpy.split(data[0], numpy.cumsum(sizes)[:-1])):
            object_gather_list[number] = decode(part, pickle)


@for_members
def scatter_object_list(
    scatter_object_output_list: Any,
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    *,
    pickle: bool = False,
) -> None:
    """Put this rank's object in the list of rank `src` (0 by default) into the first element of the output list."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = group.own(0 if src is None and group_src is None else src, group_src)
    is_root = root == group.rank()
    parts: list[Array] = []
    if is_root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != group.size():
            raise ValueError("scatter_object_input_list must have one object for each rank of the group")
        parts = [encode(each, "scatter_object_list", pickle) for each in scatter_object_input_list]
    size = numpy.zeros(1, numpy.int64)
    data: list[Any] = [None]

    def steps() -> Steps:
        counts = [part.size for part in parts]
        yield group.comm.Iscatter(numpy.array(counts) if is_root else None, size, root)
        data[0] = numpy.empty(int(size[0]), numpy.uint8)
        sent = _counted(numpy.concatenate(parts), counts) if is_root else None
        yield group.comm.Iscatterv(sent, [data[0], mpi.load().BYTE], root)

    _run(group, "scatter_object_list", steps(), parts)
    scatter_object_output_list[0] = decode(data[0], pickle)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    *,
    pickle: bool = False,
) -> None:
    """Send the objects to a rank. `pickle`: as in `all_gather_object`."""
    found = resolve(group)
    if found is None:
        return
    peer = found.own(dst, group_dst)
    if peer == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    own = encode(list(object_list), "send_object_list", pickle)

    def steps() -> Steps:
        yield found.comm.Isend(numpy.array([own.size]), peer, TAG)
        yield found.comm.Isend([own, mpi.load().BYTE], peer, TAG)

    _run(found, "send_object_list", steps(), own, False)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    *,
    pickle: bool = False,
) -> int:
    """Replace the elements of `object_list` by the elements that a rank sends. Without a source, any rank may send.

    Return the rank of the sender.
    """
    found = resolve_or_warn(group, "recv_object_list")
    if found is None:
        return -1
    MPI = mpi.load()
    peer = MPI.ANY_SOURCE if src is None and group_src is None else found.own(src, group_src)
    size = numpy.zeros(1, numpy.int64)
    data: list[Any] = [None, 0]

    def steps() -> Steps:
        receipt = Receipt(found.comm.Irecv(size, peer, TAG))
        yield receipt
        data[:] = numpy.empty(int(size[0]), numpy.uint8), receipt.status.Get_source()
        yield found.comm.Irecv([data[0], MPI.BYTE], data[1], TAG)

    _run(found, "recv_object_list", steps(), None, False)
    object_list[:] = decode(data[0], pickle)
    return found.ranks[data[1]]
