"""Memory that all ranks of a group share if they run on one machine, and reductions in this memory.

A message-passing library moves an array through small buffers, and reads and writes it several times. Ranks on one
machine need no messages. Each rank reduces its share of the elements in the shared memory, and the other ranks read the
result there. MPI provides only barriers. They also make earlier writes visible to ranks that pass the barrier.

The memory is an unnamed file, which disappears when the processes have ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from ..kernels.memory.shared_memory import Mapping, new_file
from . import mpi
from .reductions import Array, ReduceOp, averaged, combination

if TYPE_CHECKING:
    from .process_group import ProcessGroup

LEAST = 1 << 16
"""Smaller arrays, in bytes, are reduced by MPI, because two barriers would take as long."""

PART = 1 << 21
"""A larger array passes through the memory in parts of this many bytes. Two parts are used in turns."""

SHARE = 1 << 17
"""A rank reduces this many bytes at a time, so that they are still in its cache when it copies them."""

_TOKEN = 16

_CALLS, _CALL = 16, 128
"""The number of calls of a rank that other ranks can see, and the number of bytes of each call."""


class Slots:
    """The memory through which a group's arrays pass: two parts in each rank, and the number of the next part."""

    def __init__(self, memories: list[Array]) -> None:
        self.memories = memories
        self.turn = 0

    def next(self, dtype: numpy.dtype[Any], count: int) -> list[Array]:
        """Return the next part of each rank, as elements."""
        start = PART * self.turn
        self.turn = 1 - self.turn
        return [memory[start : start + count * dtype.itemsize].view(dtype) for memory in self.memories]


class Board:
    """A board that shows the calls of the ranks in a group. Each rank writes the collective that it starts."""

    def __init__(self, memories: list[Array], own: int) -> None:
        self.memories = [memory.data for memory in memories]
        self.own, self.count = self.memories[own], 0

    def post(self, said: bytes) -> tuple[slice, bytes]:
        """Publish a call of this rank. Return the position and the text of the call, which are the arguments of `differing`.

        The first byte is written last and is zero until then, so no other rank reads an incomplete text.
        """
        self.count += 1
        start = self.count % _CALLS * _CALL
        place = slice(start, start + _CALL)
        call = (b"SequenceNumber=%d, " % self.count + said).ljust(_CALL)[:_CALL]
        self.own[start] = 0
        self.own[start + 1 : place.stop] = call[1:]
        self.own[start] = call[0]
        return place, call

    def differing(self, place: slice, call: bytes) -> tuple[int, bytes] | None:
        """Find a rank whose call differs from `call`. Return the rank and its call, or None if no such rank is known."""
        for rank, memory in enumerate(self.memories):
            for pause in (0, 1e-3):  # it may have begun to write since the first byte was read
                time.sleep(pause)
                theirs = bytes(memory[place])
                if theirs == call or not theirs.startswith(call[: call.index(b",") + 1]):
                    break
            else:
                return rank, theirs
        return None


@lru_cache(1024)
def call_text(name: str, count: int | None = None, dtype: Any = None, op: Any = None, root: int | None = None) -> bytes:
    """Return a text with the properties of a call that must be equal on all ranks, so that MPI pairs their messages."""
    said = name if count is None else f"{name} of {count} elements of {dtype.scalar_type}"
    said += "" if op is None else f", {op.name}"
    return (said if root is None else f"{said}, root {root}").encode()


def board_steps(group: ProcessGroup) -> Iterator[Any]:
    """Give the group a board, if its ranks run on one machine."""
    memories = yield from share(group.comm, _CALLS * _CALL)
    if memories:
        group.board = Board(memories, group.rank())


class SharedBuffer(NamedTuple):
    """Elements of this rank and of the other ranks that are reduced in place."""

    own: Array
    others: list[Array]


def share(comm: Any, size: int) -> Generator[Any, None, list[Array] | None]:
    """Return steps that give each rank `size` zero bytes which all ranks can see.

    The steps return the bytes of each rank, or None if this is impossible.
    """
    fd = new_file(size)
    try:
        own = Mapping(fd, size)
        token = own[:_TOKEN] = os.urandom(_TOKEN)
        told = numpy.frombuffer(token, numpy.int64).tolist()
        places = numpy.empty((comm.Get_size(), 2 + len(told)), numpy.int64)
        yield comm.Iallgather(numpy.array([os.getpid(), fd, *told]), places)
        found = [own if rank == comm.Get_rank() else _mapped(place, size) for rank, place in enumerate(places)]
        possible = numpy.array([None not in found], numpy.int32)
        yield comm.Iallreduce(mpi.load().IN_PLACE, possible, mpi.load().MIN)
    finally:
        os.close(fd)
    own[:_TOKEN] = bytes(_TOKEN)
    return [numpy.frombuffer(each, numpy.uint8) for each in found if each is not None] if possible[0] else None


def _mapped(place: Array, size: int) -> Mapping | None:
    """Return the memory of another process.

    It must begin with the token of that process, because another machine may use the same process number.
    """
    process, descriptor, *token = place.tolist()
    try:
        fd = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)
    except OSError:
        return None
    try:
        memory = Mapping(fd, size)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return memory if memory[:_TOKEN] == numpy.array(token).tobytes() else None


def slots_of(group: ProcessGroup) -> Generator[Any, None, Slots | None]:
    """Return steps whose result is the slots of a group. The slots are created on first use.

    The result is None if the ranks share no memory.
    """
    if group.slots is None:
        memories = yield from share(group.comm, 2 * PART)
        group.slots = Slots(memories) if memories else False
    return group.slots or None


def all_reduce_through(group: ProcessGroup, slots: Slots, array: Array, op: ReduceOp) -> Iterator[Any]:
    """Reduce a contiguous array of all ranks in place."""
    flat = array.reshape(-1)
    combine = combination(flat.dtype, op)
    rank, count = group.rank(), group.size()
    step = PART // flat.itemsize
    for start in range(0, flat.size, step):
        elements = flat[start : start + step]
        shares = [elements.size * each // count for each in range(count + 1)]
        places = slots.next(flat.dtype, elements.size)
        first, last = shares[rank], shares[rank + 1]
        places[rank][:first] = elements[:first]
        places[rank][last:] = elements[last:]
        yield group.comm.Ibarrier()
        for low, high in _pieces(first, last, flat.itemsize):
            for other in range(count):
                if other != rank:
                    combine(places[other][low:high], elements[low:high])
            if op is ReduceOp.AVG:
                averaged(elements[low:high], count)
            places[rank][low:high] = elements[low:high]
        yield group.comm.Ibarrier()
        for other in range(count):
            if other != rank:
                theirs = slice(shares[other], shares[other + 1])
                elements[theirs] = places[other][theirs]


def buffer_steps(group: ProcessGroup, count: int, dtype: numpy.dtype[Any], made: list[SharedBuffer]) -> Iterator[Any]:
    """Create a buffer of zeros in each rank, and add it to `made`. `made` stays empty if this is impossible."""
    memories = yield from share(group.comm, count * dtype.itemsize)
    if memories is not None:
        parts = [memory.view(dtype) for memory in memories]
        own = parts.pop(group.rank())
        made.append(SharedBuffer(own, parts))


def all_reduce_buffer(group: ProcessGroup, buffer: SharedBuffer, op: ReduceOp) -> Iterator[Any]:
    """Reduce the elements of a buffer. The elements are already in the shared memory, so no rank copies them."""
    combine = combination(buffer.own.dtype, op)
    rank, count, size = group.rank(), group.size(), buffer.own.size
    yield group.comm.Ibarrier()
    for low, high in _pieces(size * rank // count, size * (rank + 1) // count, buffer.own.itemsize):
        own = buffer.own[low:high]
        for other in buffer.others:
            combine(other[low:high], own)
        if op is ReduceOp.AVG:
            averaged(own, count)
        for other in buffer.others:
            other[low:high] = own
    yield group.comm.Ibarrier()


def _pieces(first: int, last: int, width: int) -> Iterator[tuple[int, int]]:
    step = SHARE // width
    return ((low, min(low + step, last)) for low in range(first, last, step))
