"""Sending tensors through the queues and pipes of `multiprocessing`. Their memory is shared, and its descriptor is sent."""

from __future__ import annotations

import os
import pickle
from multiprocessing import context, reduction
from typing import Any

import adjoint as torch

from .._runtime.extra import warn_of_hooks
from ..kernels.memory.legacy_storages import TypedStorage
from ..kernels.memory.storage import element_strides, owner, storage_offset, strided
from ..kernels.memory.storages import UntypedStorage
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.sparse_array import SparseArray
from ..tape.inference_tensors import mark_if_inference
from ..tensor import LEAF, Tensor, make_subclass, wrap
from .sharing import Array, place, root_at, share

__all__ = ["reduce_storage", "reduce_tensor"]

SENT_TYPES = (Tensor, torch.nn.Parameter)
"""The classes whose tensors share their memory when they are sent. Tensors of other classes are copied."""


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Return the form in which a tensor is sent.

    The tensor moves to shared memory first, so that each process sees the writes of the other.

    Raises:
        RuntimeError: if the tensor has a history of operations. A history cannot leave its process.
    """
    check_sendable(tensor)
    if isinstance(tensor._array, (Meta, SparseArray)):
        return tensor.__reduce_ex__(4)  # the parts of a sparse tensor are tensors, which are shared
    share(tensor)
    array = tensor._array
    geometry = array.dtype, array.shape, element_strides(array), storage_offset(array), lazy_bits_of(array)
    return _received, (type(tensor), _Memory(owner(array)), geometry, tensor.requires_grad)


def check_sendable(tensor: Tensor) -> None:
    """Raise RuntimeError if a tensor has a history. Warn about hooks, which stay in this process."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    warn_of_hooks(tensor._extra)


class _Memory:
    """Memory that is being sent. Unpickling it gives the array on this memory in the receiving process."""

    def __init__(self, root: Array) -> None:
        self.root = root
        self.segment, self.start, self.length = place(root)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received_root, (_sent(self.segment.fd), len(self.segment), self.start, self.length)


def _sent(fd: int) -> Any:
    """A descriptor that is being sent. A new process inherits each segment once, even if several tensors are in it."""
    popen: Any = context.get_spawning_popen()
    if popen is not None and popen.method == "spawn" and fd in popen._fds:
        return popen.DupFd(fd)
    return reduction.DupFd(fd)


def _received_root(descriptor: Any, size: int, start: int, length: int) -> Array:
    return root_at(descriptor.detach(), size, start, length)


def _received(cls: type[Tensor], root: Array | _Memory, geometry: Any, requires_grad: bool) -> Tensor:
    """Undo `reduce_tensor`. Memory that was not pickled has not left this process."""
    dtype, shape, steps, offset, bits = geometry
    root = root.root if isinstance(root, _Memory) else root
    tensor = make_subclass(cls, with_lazy_bits(strided(root, shape, steps, offset, dtype), bits))
    tensor._edge = LEAF if requires_grad else None
    mark_if_inference(tensor)
    return tensor


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """Return the form in which a storage is sent."""
    kind = storage.element_kind if isinstance(storage, TypedStorage) else None
    whole = wrap(storage._root)
    share(whole)
    return _received_storage, (_Memory(owner(whole._array)), kind)


def _received_storage(root: Array, kind: Any) -> UntypedStorage:
    return UntypedStorage.over(root) if kind is None else TypedStorage.of(root, kind)


def dumps(content: Any) -> bytes:
    """Return the pickle of `content` in the form that queues and pipes use."""
    return bytes(reduction.ForkingPickler.dumps(content))


def loads(message: bytes) -> Any:
    """Undo `dumps`."""
    return pickle.loads(message)


def init_reductions() -> None:
    """Make the queues and pipes of `multiprocessing` share tensors, if the system has Unix sockets to send descriptors."""
    if os.name != "posix":
        return
    for kind in SENT_TYPES:
        reduction.ForkingPickler.register(kind, reduce_tensor)
    for storage in (UntypedStorage, TypedStorage):
        reduction.ForkingPickler.register(storage, reduce_storage)
