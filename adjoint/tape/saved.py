"""Saved tensors: reading them back, with the version check, the hooks that pack and unpack them, and their errors.

A node keeps a saved input as the tensor itself and a saved result as its bare array with the version counter (the result
holds the node: the other way round would be a cycle). A packed tensor and a released one stand in the same slots and
answer to the same attributes, so that the generated code of a backward meets them only when they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..kernels.runtime.lazy_conj import Pending, resolved
from ..tensor import LEAF, Tensor, is_recorded, ndarray, new_tensor, wrap
from . import modes, origin
from .edges import current_edge, edge_of
from .modes import STATE
from .node import FREED_MESSAGE, Node
from .versions import Mark, shared_counter


class _Released:
    """Stands where a saved tensor was before backward let go of it."""

    __slots__ = ()

    @property
    def _counter(self) -> Any:
        raise RuntimeError(FREED_MESSAGE)

    _array = _counter

    def __repr__(self) -> str:
        return "<released>"


RELEASED = _Released()


_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please use "
    "out-of-place `.detach()` instead"
)


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
        return array if type(array) is ndarray else resolved(array)

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


def save_input(node: Node, item: str, tensor: Tensor | None) -> None:
    """Save an input of the operation on the general path."""
    setattr(node, f"saved_{item}", tensor)
    version = 0 if tensor is None or tensor._counter is None else tensor._counter[0]
    if tensor is not None and isinstance(tensor._array, Pending):
        version = Mark(int(shared_counter(tensor)[0]))
    setattr(node, f"version_{item}", version)


def save_result(node: Node, item: str, result: Tensor) -> None:
    """Save an output of the operation on the general path; its version counter is shared, not the tensor."""
    counter = shared_counter(result)
    setattr(node, f"counter_{item}", counter)
    setattr(node, f"version_{item}", counter[0])
    without_history = getattr(result, "without_history", None)
    setattr(node, f"saved_{item}", result._array if without_history is None else without_history())


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


def detached(tensor: Tensor, counter: list[Any] | None) -> Tensor:
    """A tensor on the same memory and version counter, without history."""
    if type(tensor) is not Tensor and hasattr(tensor, "without_history"):  # examples of a batch
        result: Tensor = tensor.without_history()
        result._counter = counter
        return result
    return alias(tensor._array, counter, None)


def alias(array: Any, counter: list[Any] | None, edge: Any) -> Tensor:
    """A tensor on `array` with a version counter and a place in the graph."""
    result = new_tensor()
    result._array = array
    result._grad = result._base = result._extra = None
    result._counter = counter
    result._edge = edge
    return result


def unpack(node: Node, item: str) -> Tensor | None:
    """The saved tensor `item` as the derivative sees it: a result comes back as an output of `node`."""
    saved = getattr(node, f"saved_{item}")
    if saved is None:
        return None
    if saved is RELEASED:
        raise released(node)
    is_result = item in node.operator.saved_results
    if type(saved) is Packed:
        tensor = saved.tensor()
        return _as_output(node, item, bare(tensor)) if is_result else tensor
    check_version(node, item, saved)
    if isinstance(saved, ndarray):
        return _as_output(node, item, wrap(saved))
    if is_result and hasattr(saved, "without_history"):
        return _as_output(node, item, saved.without_history())
    return saved


def unpack_list(node: Node, item: str) -> Any:
    """The saved list of tensors `item`, each through its unpack hook."""
    saved = getattr(node, f"saved_{item}")
    if saved is RELEASED:
        raise released(node)
    return saved if saved.packed is None else saved.unpacked()


def unpack_array(node: Node, item: str, saved: Any) -> Any:
    """The array of `unpack`, `saved` being what stands in the slot; that of a packed tensor needs no place in the graph."""
    if type(saved) is Packed:
        return saved._array
    tensor = unpack(node, item)
    return None if tensor is None else resolved(tensor._array)


def _as_output(node: Node, item: str, result: Tensor) -> Tensor:
    result._counter = getattr(node, f"counter_{item}")
    hooks = node.hooks
    if item not in node.operator.nondifferentiable_outputs:
        history = None if hooks is None or hooks.of_view is None else hooks.of_view()
        result._edge = (node, _output_index(node, item)) if history is None else (history, 0)
    if hooks is not None and item in hooks.tangents:
        result._own_extra().tangents = hooks.tangents[item]
    return result


def released(node: Node) -> RuntimeError:
    """The error for using what backward has let go of."""
    error = RuntimeError(FREED_MESSAGE)
    error.add_note(f"{node.name()} was recorded at {node.describe_origin()}")
    return error


def check_version(node: Node, item: str, saved: Any) -> None:
    """Raise if a saved tensor has been changed in place since."""
    counter = getattr(node, f"counter_{item}", None) or saved._counter
    expected = getattr(node, f"version_{item}")
    if counter is None or type(saved) is Packed:
        return
    version = counter[0]
    if int(version) == int(expected):
        marked = type(version) is Mark and version is not expected
        if marked and version.tensor() is saved and modes.STATE.task is not None:
            raise RuntimeError(_DETACHED)
        return
    is_result = isinstance(saved, ndarray)
    output_nr = _output_index(node, item) if is_result else None
    if not is_result and saved._base is not None:
        current_edge(saved)  # raises where a view could not be followed through the change
    array, edge = (saved, None) if is_result else (saved._array, saved._edge)
    if not is_result and saved._extra is not None and saved._extra.stands_for is not None:
        itself = saved._extra.stands_for()
        edge = edge if itself is None else edge_of(itself)
    raise stale_error(node, array, counter, expected, output_nr, edge)


_TRACE = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_TRACED = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was "
    "changed in there or anywhere later. Good luck!"
)


def stale_error(
    node: Node | None, array: Any, counter: list[Any], expected: int, output_nr: int | None, edge: Any
) -> RuntimeError:
    """The error for a saved tensor that was changed in place: who saved it, and who changed it."""
    described = f"[{_tensor_type(array)} [{', '.join(map(str, array.shape))}]]"
    if output_nr is not None and node is not None:
        described += f", which is output {output_nr} of {node.operation()},"
    elif is_recorded(edge):
        described += f", which is output {edge[1]} of {edge[0].operation()},"
    error = RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{described} is at version {int(counter[0])}; expected version {int(expected)} instead. "
        f"{_TRACED if modes.ANOMALY.enabled else _TRACE}"
    )
    error.node = node  # type: ignore[attr-defined]
    if node is not None:
        error.add_note(f"{node.name()} saved it at {node.describe_origin()}")
    if len(counter) > 1:
        error.add_note(f"{counter[3]} changed it in place at {origin.describe(counter[1], counter[2])}")
    return error


def _output_index(node: Node, item: str) -> int:
    outputs = node.operator.outputs
    return outputs.index(item) if outputs else 0


def _tensor_type(array: Any) -> str:
    from ..dtypes import from_numpy

    return f"torch.{from_numpy(array.dtype).scalar_type}Tensor"
