"""Saved tensors that a pack hook has replaced, and the step that passes saved tensors to the pack hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._runtime.extra import Tangents
from .._runtime.uninterrupted import uninterrupted
from ..kernels.runtime.lazy_conj import materialize
from ..tensor import LEAF, Tensor, ndarray, wrap
from .aliases import alias, detached
from .edges import current_edge
from .modes import FLAGS, STATE, switched
from .node import Node
from .versions import shared_counter


@uninterrupted
def set_packing(hooks: tuple[Any, ...], recording: bool) -> None:
    """Set the saved-tensor hooks of this thread, and switch recording on or off, around the packing of a tensor."""
    here = STATE.__dict__
    here["saved_tensor_hooks"], here["grad_enabled"] = hooks, recording
    number = here["number"]
    if hooks != ():
        FLAGS.hooked[number] = True
    elif number in FLAGS.hooked:
        del FLAGS.hooked[number]
    if not recording:
        FLAGS.no_grad[number] = True
    elif number in FLAGS.no_grad:
        del FLAGS.no_grad[number]


class Packed:
    """A saved tensor that a pack hook has replaced. `unpack_hook(packed)` restores it without edge and tangents."""

    __slots__ = ("edge", "packed", "tangents", "unpack_hook")
    _counter: ClassVar[None] = None

    packed: Any
    unpack_hook: Callable[[Any], Any]
    edge: Any
    tangents: Tangents | None

    def tensor(self) -> Tensor:
        """Return the result of the unpack hook, or a new tensor with the saved edge if there is history."""
        tensor = self._unpacked()
        if self.edge is None and self.tangents is None and tensor._edge is None:
            return tensor
        result = detached(tensor, shared_counter(tensor))
        result._edge = self.edge
        if self.tangents is not None:
            result._own_extra().tangents = self.tangents
        return result

    @property
    def _array(self) -> Any:
        array = self._unpacked()._array
        return array if type(array) is ndarray else materialize(array)

    def _unpacked(self) -> Tensor:
        if STATE.grad_enabled and STATE.task is not None:
            STATE.task.stop_recording()
        tensor = self.unpack_hook(self.packed)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
            )
        return tensor


def bare(tensor: Any) -> Any:
    """Return a new tensor without history on the memory of `tensor`, or of the whole batch of a batched tensor."""
    return tensor.without_history() if hasattr(tensor, "without_history") else wrap(tensor._array)


def pack(tensor: Tensor, hooks: Any, edge: Any) -> Packed:
    """Run the pack hook of `hooks`, a pair (pack, unpack). `edge`: the edge that the unpacked tensor will have."""
    counter = tensor._counter
    version = 0 if counter is None else counter[0]
    pack_hook, unpack_hook = hooks
    result = Packed()
    result.packed = pack_hook(tensor)
    result.unpack_hook = unpack_hook
    result.edge = edge
    result.tangents = None if tensor._extra is None else tensor._extra.tangents
    counter = tensor._counter
    if counter is not None and counter[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
            "hook cannot be modified by in-place operations as this can lead to unexpected side-effects. "
            "Please open an issue if you need to perform in-place operations on the input to a pack hook."
        )
    return result


def shown(tensor: Tensor, edge: Any) -> Tensor:
    """Return a tensor on the memory of `tensor` with the edge `edge`, for pack hooks that must not receive the object itself."""
    result = detached(tensor, tensor._counter or shared_counter(tensor))
    result._edge = edge
    return result


def without_hooks() -> switched:
    """Return the context in which pack hooks run: without saved-tensor hooks and recording."""
    return switched(saved_tensor_hooks=(), grad_enabled=False)


def pack_saved(node: Node, results: Any) -> None:
    """Pass the saved tensors of `node` to the pack hook: inputs of the operation, and its `results` if they are given."""
    hooks, grad_enabled = STATE.saved_tensor_hooks, STATE.grad_enabled
    if not hooks:
        return  # the hooks belong to another thread
    innermost = hooks[-1]
    set_packing((), False)
    try:
        for slot in node.input_slots:
            saved = getattr(node, slot)
            if isinstance(saved, Tensor) and (saved._extra is None or saved._extra.number is None):
                edge = saved._edge if saved._base is None else current_edge(saved)
                setattr(node, slot, pack(saved, innermost, saved if edge is LEAF else edge))
        for item in node.saved_list_names:
            saved = getattr(node, f"saved_{item}")
            if type(saved) is not tuple and saved.packed is None:
                setattr(node, f"saved_{item}", saved.packed_by(innermost))
        if results:
            for slot, number, differentiable in node.result_slots:
                saved = getattr(node, slot)
                edge = (node, number) if differentiable else None
                if type(saved) is ndarray:
                    setattr(node, slot, pack(alias(saved, results[number]._counter, edge), innermost, None))
                elif saved is not None and type(saved) is not Packed:  # a batched tensor of `vmap`
                    setattr(node, slot, pack(shown(results[number], edge), innermost, None))
    finally:
        set_packing(hooks, grad_enabled)
