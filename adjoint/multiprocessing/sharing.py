"""The shared memory of tensors: moving tensors to it, and the positions of their arrays in it."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter
from typing import Any

import numpy

from ..kernels.memory.shared_memory import Segment, allocated, attached
from ..kernels.memory.storage import element_strides, memory, owner, storage_offset, strided
from ..kernels.memory.storages import UntypedStorage
from ..kernels.runtime.addresses import address
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..kernels.runtime.meta_array import Meta, Released
from ..tensor import Tensor

Array = numpy.ndarray[Any, Any]

_roots: weakref.WeakValueDictionary[tuple[Any, ...], Array] = weakref.WeakValueDictionary()
"""The arrays with memory in segments, by position. Tensors that arrive one by one, or return, then share one memory."""


def share(tensor: Tensor) -> None:
    """Move the memory of a tensor to shared memory, together with all tensors on it.

    Raises:
        RuntimeError: if the tensor is on the device `meta` and therefore has no memory.
    """
    if isinstance(tensor._array, Meta):
        raise RuntimeError("_share_fd_: only available on CPU")
    if isinstance(tensor._array, Released) or isinstance(owner(tensor._array).base, Segment):
        return
    base = tensor._base
    known = [tensor] if base is None or owner(base._array) is not owner(tensor._array) else [tensor, base]
    found = (known, []) if _are_all(known) else _all_on(owner(tensor._array))
    _move(owner(tensor._array), *found)


def share_storage(storage: UntypedStorage) -> None:
    """Move the memory of a storage to shared memory, together with all tensors on it.

    Raises:
        RuntimeError: if the storage is on the device `meta` and therefore has no memory.
    """
    if isinstance(storage._seen, Meta):
        raise RuntimeError("_share_fd_: only available on CPU")
    root = owner(storage._root)
    if not isinstance(root.base, Segment):
        _move(root, *_all_on(root))


def _move(root: Array, tensors: list[Tensor], storages: list[UntypedStorage]) -> None:
    """Copy the memory that `root` owns to shared memory, and move tensors and storages there."""
    moved = root_on(allocated(max(root.nbytes, 1))[: root.nbytes])
    moved[...] = memory(root)
    arrays = {id(root): moved}
    for each in tensors:
        array = each._array
        there = strided(moved, array.shape, element_strides(array), storage_offset(array), array.dtype)
        each._array = arrays[id(array)] = with_lazy_bits(there, lazy_bits_of(array))
    for storage in storages:
        old = storage._root
        storage._seen = arrays.get(id(storage._seen), storage._seen)
        storage._root = (
            moved if old is root else strided(moved, old.shape, element_strides(old), storage_offset(old), old.dtype)
        )


def _are_all(tensors: list[Tensor]) -> bool:
    """Return whether only these tensors use their memory. No other object may refer to their arrays and the owner."""
    arrays = {id(each._array): each._array for each in tensors}
    root = id(owner(tensors[0]._array))
    arrays[root] = owner(tensors[0]._array)
    held = Counter(id(each._array) for each in tensors)
    held.update(id(array.base) for array in list(arrays.values()) if id(array) != root)
    fresh = {0: numpy.empty(0)}
    own = sys.getrefcount(fresh[0])
    return all(sys.getrefcount(arrays[key]) - own == held[key] for key in arrays)


def _all_on(root: Array) -> tuple[list[Tensor], list[UntypedStorage]]:
    """Return all tensors and storages on the memory that an array owns.

    They are found through the references to their classes.
    """
    tensor_types, storage_types = _with_subclasses(Tensor), _with_subclasses(UntypedStorage)
    frozen = gc.get_freeze_count()
    if frozen:  # the collector does not report frozen objects
        gc.unfreeze()
    objects = gc.get_referrers(*tensor_types, *storage_types)
    if frozen:
        gc.freeze()
    nowhere = numpy.empty(0)
    tensors: list[Tensor] = [each for each in objects if type(each) in tensor_types]
    storages: list[UntypedStorage] = [each for each in objects if type(each) in storage_types]
    return (
        [each for each in tensors if owner(getattr(each, "_array", nowhere)) is root],
        [each for each in storages if owner(getattr(each, "_root", nowhere)) is root],
    )


def _with_subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_with_subclasses, type.__subclasses__(kind)))


def root_on(buffer: memoryview) -> Array:
    """Return the array that covers a part of a segment."""
    return numpy.ndarray(len(buffer), numpy.uint8, buffer)


def place(root: Array) -> tuple[Segment, int, int]:
    """Return the segment that contains the memory of its owner `root`, the first byte, and the number of bytes."""
    segment: Any = root.base
    if not isinstance(segment, Segment):
        raise AssertionError("this memory cannot be sent")
    start = address(root) - address(numpy.frombuffer(segment, numpy.uint8))
    _roots[segment.key, start, root.nbytes] = root  # memory that returns to this process is the same storage
    return segment, start, root.nbytes


def root_at(fd: int, size: int, start: int, length: int) -> Array:
    """Return the array on a part of a file that another process has sent. The array takes ownership of the descriptor."""
    segment = attached(fd, size)
    key = (segment.key, start, length)
    root = _roots.get(key)
    if root is None:
        root = root_on(memoryview(segment)[start : start + length])
        _roots[key] = root
    return root


Tensor._move_to_shared_memory = share
UntypedStorage._move_to_shared_memory = share_storage
