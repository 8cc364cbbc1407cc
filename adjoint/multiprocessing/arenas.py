"""Memory that a worker fills and another process reads: one growing file whose places are reused.

A worker writes tensors into its arena and sends their positions. The reading process creates tensors there without a
copy. It frees a place after the last tensor there has died. Memory that both processes have already mapped is therefore
reused. The system need not provide new pages, and only one descriptor is sent.
"""

from __future__ import annotations

import io
import os
import pickle
import weakref
from collections import deque
from itertools import count
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any, NamedTuple

import numpy

from .._runtime.platform import mmap
from ..kernels.memory.shared_memory import ALIGNMENT, Mapping, new_file
from ..kernels.memory.storage import memory, owner, row_major_steps, window
from ..kernels.runtime.addresses import address
from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.sparse_array import SparseArray
from ..tensor import LEAF, Tensor, make_subclass, wrap
from .forked_readers import Copying, copy_pages, watch_forks
from .reductions import SENT_TYPES, check_sendable
from .sharing import Array, root_on

__all__ = ["Arena", "Reader"]

FIRST_PIECE = 1 << 20
"""The number of bytes by which the file first grows."""

SMALL, FIRST_SMALL_PIECE = 1 << 14, 1 << 16
"""Tensors of at most this many bytes have separate pieces.

A program that keeps the labels of all batches then does not keep the images.
"""

MOST_BY_VALUE = 1 << 12
"""NumPy arrays of at most this many bytes are sent with the message."""


class Place(NamedTuple):
    """The position of bytes: a piece of the file, which is mapped as a whole, and a range in it."""

    piece: int
    piece_size: int
    start: int
    size: int


class _Piece:
    """A part of the file in the worker: its mapping and its free ranges."""

    def __init__(self, fd: int, offset: int, size: int) -> None:
        self.offset, self.size = offset, size
        self.memory = memoryview(Mapping(fd, size, offset=offset))
        self._free = [(0, size)]

    def take(self, size: int) -> Place | None:
        """Take a range of this many free bytes. Return None if there are too few."""
        for position, (start, length) in enumerate(self._free):
            if length >= size:
                self._free[position : position + 1] = [(start + size, length - size)] if length > size else []
                return Place(self.offset, self.size, start, size)
        return None

    def give_back(self, start: int, size: int) -> None:
        """Free bytes, and join them with neighbouring free bytes."""
        touching, others = [(start, size)], list[tuple[int, int]]()
        for each in self._free:
            (touching if sum(each) == start or each[0] == start + size else others).append(each)
        self._free = sorted([*others, (min(touching)[0], sum(length for _, length in touching))])


class Arena:
    """The arena of a worker.

    Args:
        fd: the descriptor of an empty file in memory.
        number: the number of the `Reader` in the other process.
    """

    def __init__(self, fd: int, number: int) -> None:
        self._fd, self._number = fd, number
        self._pieces: dict[int, _Piece] = {}
        self._of_size: dict[bool, list[_Piece]] = {False: [], True: []}
        self._uses: dict[Place, int] = {}
        self._roots: dict[int, tuple[weakref.ref[Array], Place]] = {}

    def root(self, size: int) -> tuple[Array, Place]:
        """Return new memory of this many bytes, and its position.

        It becomes free when the array has died and no process uses it.
        """
        place = self._take(-(-max(size, 1) // ALIGNMENT) * ALIGNMENT)
        root = root_on(self._pieces[place.piece].memory[place.start : place.start + size])
        key = id(root)

        def forget(_: object) -> None:
            del self._roots[key]
            self.give_back(place, 1)

        self._uses[place] = 1
        self._roots[key] = weakref.ref(root, forget), place
        return root, place

    def empty(self, shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Array:
        """Return a new array in the arena."""
        root, _ = self.root(int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize)
        return window(root, dtype, shape, [step * dtype.itemsize for step in row_major_steps(shape)], 0)

    def _take(self, size: int) -> Place:
        pieces = self._of_size[size <= SMALL]
        for piece in pieces:
            place = piece.take(size)
            if place is not None:
                return place
        first = FIRST_SMALL_PIECE if size <= SMALL else FIRST_PIECE
        grown = max(first, -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY, _length(pieces))
        offset = _length(self._pieces.values())
        os.ftruncate(self._fd, offset + grown)
        piece = self._pieces[offset] = _Piece(self._fd, offset, grown)
        pieces.append(piece)
        place = piece.take(size)
        assert place is not None
        return place

    def give_back(self, place: Any, times: int) -> None:
        """Record that this many users of a place have ended."""
        left = self._uses[place] - times
        if left:
            self._uses[place] = left
        else:
            del self._uses[place]
            piece, _, start, size = place
            self._pieces[piece].give_back(start, size)

    def message(self, content: Any) -> bytes:
        """Return `content` as a pickle. Its tensors and large arrays are in the arena, where the reader finds them.

        Raises:
            RuntimeError: if a tensor has a history.
        """
        buffer = io.BytesIO()
        pickler = _Pickler(buffer, self)
        try:
            pickler.dump(content)
        except BaseException:
            for place in pickler.lent:
                self.give_back(place, 1)
            raise
        return buffer.getvalue()

    def lend(self, array: Array, copies: dict[int, tuple[Array, Array, Place]]) -> tuple[Any, ...]:
        """Return the position of an array's elements. They are copied unless they are in the arena.

        `copies` are the copies of a message.
        """
        root = owner(array)
        own = self._roots.get(id(root)) or copies.get(id(root), (None, None))[1:]
        if own[-1] is not None:
            place = own[-1]
        elif root.nbytes <= 2 * array.nbytes:
            copy, place = self.root(root.nbytes)
            copy[...] = memory(root)
            copies[id(root)] = root, copy, place
        else:  # a small part of a large array
            copy = self.empty(array.shape, array.dtype)
            copy[...] = array
            array, root = copy, owner(copy)
            place = self._roots[id(root)][1]
        self._uses[place] += 1
        return self._number, place, root.nbytes, array.dtype, array.shape, array.strides, address(array) - address(root)


def _length(pieces: Any) -> int:
    return sum(piece.size for piece in pieces)


class _Pickler(ForkingPickler):
    """A pickler of `multiprocessing` that sends tensors and large arrays through the arena."""

    def __init__(self, buffer: io.BytesIO, arena: Arena) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._arena = arena
        self._copies: dict[int, tuple[Array, Array, Place]] = {}
        self.lent: list[Place] = []

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind in SENT_TYPES and not isinstance(value._array, (Meta, SparseArray)):
            check_sendable(value)
            return _tensor_at, (kind, value.requires_grad, *self._lend(materialize(value._array)))
        if kind is numpy.ndarray and value.nbytes > MOST_BY_VALUE and value.dtype.kind in "biufc":
            return _array_at, self._lend(value)
        return NotImplemented

    def _lend(self, array: Array) -> tuple[Any, ...]:
        where = self._arena.lend(array, self._copies)
        self.lent.append(where[1])
        return where[0], tuple(where[1]), *where[2:]


class Reader:
    """The other process's side of an arena. The worker receives `descriptor` and `number`."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self._fd = new_file()
        self._mappings: dict[int, memoryview] = {}
        self._live: dict[Place, list[Any]] = {}
        self._free: deque[tuple[tuple[int, ...], int]] = deque()
        self._is_left = False
        self._pinned: list[tuple[Copying, frozenset[Place]]] = []
        _readers[self.number] = self

    def descriptor(self) -> Any:
        """Return the descriptor in a form that can be passed to a new process."""
        return DupFd(self._fd)

    def fileno(self) -> int:
        """Return the descriptor. A forked process has it too."""
        return self._fd

    def root(self, place: Place, length: int) -> Array:
        """Return the array on the memory of a place. Later calls return the same array while it exists."""
        held = self._live.get(place)
        root: Array | None = held[0]() if held is not None else None
        if held is None or root is None:
            mapping = self._mappings.get(place.piece)
            if mapping is None:
                mapping = memoryview(Mapping(self._fd, place.piece_size, offset=place.piece))
                self._mappings[place.piece] = mapping
            root = root_on(mapping[place.start : place.start + length])
            held = self._live[place] = [None, 0]
            held[0] = weakref.ref(root, lambda _: self._forget(place, held[1]))
        held[1] += 1
        return root

    def is_live(self) -> bool:
        """Return whether tensors use the arena."""
        return bool(self._live)

    def pin(self, copying: Copying) -> None:
        """Do not free the places in use until a forked process has copied them."""
        self._pinned.append((copying, frozenset(self._live)))

    def copy_live(self) -> None:
        """In a forked process, copy the used memory to separate memory."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for place in self._live:
            ranges.setdefault(place.piece, []).append((place.start, place.start + place.size))
        for piece, each in ranges.items():
            copy_pages(self._mappings[piece], each)

    def _is_pinned(self, place: Place) -> bool:
        if self._pinned:
            self._pinned = [(copying, places) for copying, places in self._pinned if not copying.done()]
        return any(place in places for _, places in self._pinned)

    def _forget(self, place: Place, times: int) -> None:
        self._live.pop(place, None)
        if self._is_left:
            if self._is_pinned(place):
                return  # the system gets it when the reader has died
            self._drop(place.piece, place.start, place.start + place.size)
        else:
            self._free.append((tuple(place), times))

    def free(self) -> list[tuple[tuple[int, ...], int]]:
        """Return the places that are no longer needed, and how often they were lent. Each place is returned once."""
        found: list[tuple[tuple[int, ...], int]] = []
        later: list[tuple[tuple[int, ...], int]] = []
        while self._free:
            place, times = self._free.popleft()
            (later if self._is_pinned(Place(*place)) else found).append((place, times))
        self._free.extend(later)
        return found

    def leave(self) -> None:
        """Return unused memory to the system when the worker has ended."""
        self._is_left = True
        taken: dict[int, list[tuple[int, int]]] = {}
        pinned = [place for _, places in self._pinned for place in places]
        for place in {*self._live, *pinned}:
            taken.setdefault(place.piece, []).append((place.start, place.start + place.size))
        for piece, mapping in list(self._mappings.items()):
            if piece not in taken:
                del self._mappings[piece]
                continue
            end = 0
            for start, stop in sorted(taken[piece]):
                self._drop(piece, end, start)
                end = stop
            self._drop(piece, end, len(mapping))

    def _drop(self, piece: int, start: int, stop: int) -> None:
        """Release the pages that are completely inside this range."""
        start, stop = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
        mapping: Any = self._mappings[piece].obj
        if start < stop and hasattr(mmap, "MADV_REMOVE"):
            mapping.madvise(mmap.MADV_REMOVE, start, stop - start)

    def __del__(self) -> None:
        if os.close is not None:  # it is None while the interpreter exits
            os.close(self._fd)


_numbers = count()
_readers: weakref.WeakValueDictionary[int, Reader] = weakref.WeakValueDictionary()


def _array_at(
    number: int, place: Any, length: int, dtype: Any, shape: tuple[int, ...], steps: tuple[int, ...], offset: int
) -> Array:
    """Return the array that a worker has sent."""
    return window(_readers[number].root(Place(*place), length), dtype, shape, steps, offset)


def _tensor_at(kind: type[Tensor], requires_grad: bool, *where: Any) -> Tensor:
    """Return the tensor that a worker has sent."""
    tensor = make_subclass(kind, _array_at(*where))
    tensor._edge = LEAF if requires_grad else None
    return tensor


def _live_readers() -> list[Reader]:
    return [reader for reader in list(_readers.values()) if reader.is_live()]


watch_forks(_live_readers)

_own: Arena | None = None


def set_own_arena(arena: Arena) -> None:
    """Make this arena the arena of this process."""
    global _own
    _own = arena


def empty_for_sending(shape: tuple[int, ...], dtype: Any) -> Tensor | None:
    """Return an uninitialized tensor that can be sent without a copy, or None if this process has no arena."""
    return None if _own is None else wrap(_own.empty(shape, dtype.numpy))
