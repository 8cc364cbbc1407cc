"""`allow_mutation_on_saved_tensors` and `linearize` copy a saved tensor before its memory is changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from .._runtime.uninterrupted import uninterrupted
from .._runtime.weak_keys import WeakKeys
from ..kernels.memory import storage
from ..kernels.runtime.addresses import address
from ..tape import mode_switches, modes
from ..tape.stale_error import stale_error
from ..tape.versions import shared_counter
from ..tensor import Tensor, lazy_bits


class _Handle:
    """A replacement of a saved tensor in the graph. The context holds the tensor, which was saved at `version`."""

    __slots__ = ("__weakref__", "version")

    def __init__(self, version: int) -> None:
        self.version = version


class _AllowMutationOnSavedContext:
    """The tensors that were saved within one context: the unchanged ones, and copies of the changed ones."""

    def __init__(self) -> None:
        self.cloned: WeakKeys[_Handle, Tensor] = WeakKeys()
        self.original: WeakKeys[_Handle, Tensor] = WeakKeys()
        self.tid_to_weakhandle: WeakValueDictionary[Any, _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[int, set[Any]] = {}

    def begin(self) -> None:
        """Collect the tensors that this thread saves from now on, and observe its changes."""
        mode_switches.push_saved_tensor_hooks((self.pack, self.unpack))
        modes.put({"before_change": self.before_change})

    @uninterrupted
    def end(self) -> None:
        """Stop collecting tensors, and keep the collected tensors."""
        modes.put({"before_change": None})
        mode_switches.pop_saved_tensor_hooks()

    def clear(self) -> None:
        """Release all tensors. Graphs that were recorded within the context can no longer run backward."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        """Return the handle of `tensor`. There is one handle for each combination of memory, layout and version."""
        array = tensor._array
        identity = (address(array), array.shape, array.strides, array.dtype, tensor._version, lazy_bits(tensor))
        handle = self.tid_to_weakhandle.get(identity)
        if handle is None or handle not in self.original:
            handle = _Handle(tensor._version)
            self.tid_to_weakhandle[identity] = handle
            self.sid_to_tid.setdefault(_storage(tensor), set()).add(identity)
            self.original[handle] = tensor.detach()
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """Return the value that the tensor of `handle` had when it was saved."""
        copy = self.cloned.get(handle)
        if copy is not None:
            return copy
        found = self.original.get(handle)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally "
                "recorded."
            )
        if found._version != handle.version:
            raise stale_error(None, found._array, shared_counter(found), handle.version, None, None)
        return found

    def before_change(self, tensor: Tensor) -> None:
        """Copy the saved tensors on the memory of `tensor` before this memory is changed."""
        for identity in self.sid_to_tid.pop(_storage(tensor), ()):
            handle = self.tid_to_weakhandle.get(identity)
            if handle is not None and handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()


def _storage(tensor: Tensor) -> int:
    return id(storage.owner(tensor._array))


class allow_mutation_on_saved_tensors:
    """A context manager in which saved tensors may be changed in place.

    Gradients are computed from the values before the change.

    A saved tensor is copied before it is changed. Graphs that were recorded within the context can run backward only
    within it. Entering the context returns an object. Its method `clear()` releases all saved tensors.

    Raises:
        RuntimeError: if such a context is already active.
        AssertionError: in a backward after the context has ended or has been cleared.

    >>> import adjoint as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     y.zero_()
    ...     torch.autograd.grad(z, x)
    tensor([0., 0.], grad_fn=<ZeroBackward0>)
    (tensor([2., 4.]),)
    """

    def __enter__(self) -> _AllowMutationOnSavedContext:
        if modes.STATE.before_change is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.context = _AllowMutationOnSavedContext()
        self.context.begin()
        return self.context

    @uninterrupted
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.context.end()
        self.context.clear()


@contextmanager
def copies_of_overwritten() -> Iterator[None]:
    """Copy saved tensors before they are changed in place, unless other code observes the changes of this thread."""
    if modes.STATE.before_change is not None or modes.STATE.hooks_disabled is not None:
        yield
        return
    context = _AllowMutationOnSavedContext()
    context.begin()
    try:
        yield
    finally:
        context.end()
