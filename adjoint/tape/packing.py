"""Saved tensors that went through a pack hook, and the step that sends what a node saves through the hooks of the thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..kernels.runtime.lazy_conj import materialize
from ..tensor import LEAF, Tensor, ndarray, wrap
from . import modes
from .aliases import alias, detached
from .edges import current_edge
from .modes import STATE
from .node import Node
from .versions import shared_counter


class Packed:
    """A saved tensor that went through a pack hook: `unpack_hook(packed)` gives it back."""

    __slots__ = ("edge", "packed", "unpack_hook")
    _counter: ClassVar[None] = None

    packed: Any
    unpack_hook: Callable[[Any], Any]
    edge: Any

    def tensor(self) -> Tensor:
        """What the unpack hook makes of it: a new tensor, with the place in the graph of the one that was saved."""
        tensor = self._unpacked()
        result = detached(tensor, shared_counter(tensor))
        result._edge = self.edge
        return result

    @property
    def _array(self) -> Any:
        array = self._unpacked()._array
        return array if type(array) is ndarray else materialize(array)

    def _unpacked(self) -> Tensor:
        if STATE.grad_enabled and STATE.task is not None:
            STATE.task.stop_recording()
        tensor = self.unpack_hook(self.packed)
        return tensor if type(tensor) is Tensor else _checked(tensor)


def _checked(tensor: Any) -> Tensor:
    """What an unpack hook has returned, if that is a tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    return tensor


def bare(tensor: Any) -> Any:
    """A new tensor on the memory of `tensor`, or of its examples, without history."""
    return tensor.without_history() if hasattr(tensor, "without_history") else wrap(tensor._array)


def pack(tensor: Tensor, hooks: Any, edge: Any) -> Packed:
    """Run the pack hook of `hooks`, a pair (pack, unpack), on `tensor`; it runs in `modes_without_hooks`.

    `edge` is the place in the graph that what is unpacked will have.
    """
    counter = tensor._counter
    version = 0 if counter is None else counter[0]
    pack_hook, unpack_hook = hooks
    result = Packed()
    result.packed = pack_hook(tensor)
    result.unpack_hook = unpack_hook
    result.edge = edge
    counter = tensor._counter
    if counter is not None and counter[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
            "hook cannot be modified by in-place operations as this can lead to unexpected side-effects. "
            "Please open an issue if you need to perform in-place operations on the input to a pack hook."
        )
    return result


def shown(tensor: Tensor, edge: Any) -> Tensor:
    """`tensor` as a pack hook sees it where it must not see the very object: another one, with the place `edge` in the graph."""
    result = detached(tensor, tensor._counter or shared_counter(tensor))
    result._edge = edge
    return result


class modes_without_hooks:
    """No saved-tensor hooks, and nothing recorded, while a pack hook runs."""

    __slots__ = ("grad_enabled", "hooks")

    def __enter__(self) -> None:
        state = modes.STATE
        self.hooks, self.grad_enabled = state.saved_tensor_hooks, state.grad_enabled
        state.saved_tensor_hooks = ()
        modes.set_grad(False)

    def __exit__(self, *exception: object) -> None:
        modes.STATE.saved_tensor_hooks = self.hooks
        modes.set_grad(self.grad_enabled)


def pack_saved(node: Node, results: Any) -> None:
    """Send what `node` has saved through the pack hook: inputs of the operation, and its `results` if there are any yet."""
    state = STATE.__dict__
    hooks = state.get("saved_tensor_hooks")
    if not hooks:
        return  # they are another thread's
    innermost = hooks[-1]
    grad_enabled = state["grad_enabled"]  # put there by who pushed the hooks, who has also counted that it may be False
    state["saved_tensor_hooks"], state["grad_enabled"] = (), False
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
                elif saved is not None and type(saved) is not Packed:  # examples of a batch
                    setattr(node, slot, pack(shown(results[number], edge), innermost, None))
    finally:
        state["saved_tensor_hooks"], state["grad_enabled"] = hooks, grad_enabled
