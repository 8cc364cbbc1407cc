"""Saved tensors: reading them back, with the version check, the hooks that pack and unpack them, and their errors.

A node keeps a saved input as the tensor itself and a saved result as its bare array with the version counter (the result
holds the node: the other way round would be a cycle). A packed tensor and a released one stand in the same slots and
answer to the same attributes, so that the generated code of a backward meets them only when they are there.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import adjoint.tensor as tensor_module

from ..kernels.runtime.lazy_conj import Pending, resolved
from ..tensor import LEAF, Tensor, current_edge, is_recorded, ndarray, new, wrap
from . import modes, origin
from .anomaly import BY_DEFINITION, note_cut
from .edges import edge_of
from .modes import STATE
from .node import FREED_MESSAGE, Node

FREED_BEFORE_HOOKS = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when "
    "you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second "
    "time or if you need to access saved variables after calling backward."
)
HOOKS_ARE_SET = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a "
    "time."
)

_counter_lock = threading.Lock()


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


class DetachedVersion(int):
    """The version at which `tensor` was cut from its history in place.

    It equals the number it is, but differs from all others, so that what was saved of the tensor before is looked at again.
    """

    tensor: weakref.ref[Tensor]

    def __ne__(self, other: object) -> bool:
        return other is not self

    __hash__ = int.__hash__


class PendingVersion(int):
    """The version of a tensor whose array is to be resolved when it is read; it differs from all others for who asks that."""

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def detach_in_place(tensor: Tensor) -> None:
    """Cut `tensor` from its history; those who have saved it find out by its version."""
    if is_recorded(tensor._edge):
        counter = shared_counter(tensor)
        if counter is not _NO_VERSIONS:
            counter[0] = DetachedVersion(counter[0])
            counter[0].tensor = weakref.ref(tensor)
    tensor._edge = None


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
        version = PendingVersion(shared_counter(tensor)[0])
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


class InferenceVersions:
    """The version counter of inference tensors: asking it for a version, as saving does, is an error.

    `counter`: what counts changes nevertheless, where the tensor was not itself made in inference mode, but is an alias of one
    that was.
    """

    __slots__ = ("counter",)

    def __init__(self, counter: list[Any] | None) -> None:
        self.counter = counter

    def counted(self) -> list[Any]:
        """What counts changes; RuntimeError where nothing does."""
        if self.counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.counter

    def __getitem__(self, index: Any) -> Any:
        # A transform in reverse, or one that was called in inference mode, may save one: its graph is used within it.
        state = modes.STATE
        if state.task is not None or any(
            transform.begun_in_inference or not hasattr(transform, "concerns") for transform in state.transforms
        ):
            return 0 if self.counter is None else self.counter[index]
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or "
            "use `torch.no_grad()` instead of `torch.inference_mode()`."
        )


_NO_VERSIONS: Any = InferenceVersions(None)


def mark_inference(tensor: Tensor) -> None:
    """Make `tensor` one that was made in inference mode: it has no versions and can never be saved."""
    tensor._own_extra().inference = True
    tensor._counter = _NO_VERSIONS


def born(tensor: Tensor) -> None:
    """Make `tensor`, which no operator has made, an inference tensor if this thread is in inference mode."""
    if modes.STATE.inference:
        mark_inference(tensor)


def share_inference(alias: Tensor, tensor: Tensor, name: str = "data") -> Tensor:
    """Make `alias`, no view, which has got the memory of `tensor`, an inference tensor if that is one.

    Outside of inference mode its changes are counted. `name`: what has made the alias, which ends the history.
    """
    if modes.ANOMALY.enabled and tensor.requires_grad:
        note_cut(name, BY_DEFINITION, [tensor], [alias])
    if tensor._extra is None or not tensor._extra.inference:  # asked without going through doors
        return alias
    if (alias._extra is None or not alias._extra.inference) and alias._base is None:
        alias._own_extra().inference = True
        versions: Any = _NO_VERSIONS if modes.STATE.inference and alias._counter is None else shared_counter(alias)
        versions = InferenceVersions(versions) if isinstance(versions, list) else versions
        alias._counter = versions
    return alias


tensor_module.share_inference, tensor_module.born = share_inference, born


def counting(tensor: Tensor) -> list[Any] | None:
    """The version counter of `tensor`, shared with whoever asks for it; None if nothing counts its changes now."""
    counter: Any = shared_counter(tensor)
    if type(counter) is InferenceVersions:
        return None if modes.STATE.inference else counter.counter
    return counter


def detached(tensor: Tensor, counter: list[Any] | None) -> Tensor:
    """A tensor on the same memory and version counter, without history."""
    if type(tensor) is not Tensor and hasattr(tensor, "without_history"):  # examples of a batch
        result: Tensor = tensor.without_history()
        result._counter = counter
        return result
    return alias(tensor._array, counter, None)


def alias(array: Any, counter: list[Any] | None, edge: Any) -> Tensor:
    """A tensor on `array` with a version counter and a place in the graph."""
    result: Tensor = new(Tensor)
    result._array = array
    result._grad = result._base = result._extra = None
    result._counter = counter
    result._edge = edge
    return result


def shared_counter(tensor: Tensor) -> list[Any]:
    """The version counter of `tensor`, made if it has none yet, for somebody to share."""
    counter = tensor._counter
    if counter is None:
        with _counter_lock:
            counter = tensor._counter
            if counter is None:
                counter = tensor._counter = [0]
    return counter


def about_to_change(tensor: Tensor) -> None:
    """Tell who wants to know it that `tensor` is about to be changed in place (by the general path of an operation)."""
    watch = modes.STATE.before_change
    if watch is not None:
        watch(tensor)


def bump(tensor: Tensor, name: str, depth: int = 1) -> None:
    """Note an in-place change of `tensor` by operation `name`, and the user's line that made it."""
    counter = counting(tensor)
    if counter is None:
        return
    frame = origin.user_frame(depth + 1)
    counter[1:] = (frame.f_code, frame.f_lasti, name)
    counter[0] += 1


def bump_all(tensors: list[Tensor], name: str, depth: int = 1) -> None:
    """Note an in-place change of each of `tensors`, made by one operation at one line."""
    frame = origin.user_frame(depth + 1)
    change = (frame.f_code, frame.f_lasti, name)
    for tensor in tensors:
        counter: Any = tensor._counter
        if type(counter) is not list:
            counter = counting(tensor)
            if counter is None:
                continue
        counter[1:] = change
        counter[0] += 1


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
    if version == expected:
        detached = type(version) is DetachedVersion and version is not expected and version.tensor() is saved
        if detached and modes.STATE.task is not None:
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
        f"{described} is at version {counter[0]}; expected version {expected} instead. "
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


def check_callable(pack_hook: Any, unpack_hook: Any) -> None:
    """Raise unless both hooks can be called."""
    if not (callable(pack_hook) and callable(unpack_hook)):
        raise TypeError(
            "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
            "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, "
            "arg1: collections.abc.Callable) -> None"
        )


class SavedTensor:
    """A saved tensor as `node._raw_saved_<name>` shows it: not unpacked, open to hooks."""

    __slots__ = ("_item", "_node")

    def __init__(self, node: Node, item: str) -> None:
        self._node = node
        self._item = item

    def __repr__(self) -> str:
        return f"<torch._C._autograd.SavedTensor object at {hex(id(self))}>"

    @property
    def data(self) -> Any:
        """The packed object if hooks are registered, else the tensor."""
        saved = getattr(self._node, f"saved_{self._item}")
        if saved is RELEASED:
            raise released(self._node)
        return saved.packed if type(saved) is Packed else unpack(self._node, self._item)

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Replace the saved tensor by `pack_hook(tensor)`, and read it back through `unpack_hook`."""
        saved = getattr(self._node, f"saved_{self._item}")
        if saved is RELEASED:
            raise RuntimeError(FREED_BEFORE_HOOKS)
        if type(saved) is Packed:
            raise RuntimeError(HOOKS_ARE_SET)
        if saved is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        check_callable(pack_hook, unpack_hook)
        edge = None
        if isinstance(saved, ndarray):
            saved = detached(wrap(saved), getattr(self._node, f"counter_{self._item}"))
        else:
            edge = edge_of(saved)
        with modes_without_hooks():
            setattr(self._node, f"saved_{self._item}", pack(shown(saved, None), (pack_hook, unpack_hook), edge))


class SavedElement(SavedTensor):
    """One tensor of a saved list, as `node._raw_saved_<name>[position]` shows it."""

    __slots__ = ("_position",)

    def __init__(self, node: Node, item: str, position: int) -> None:
        super().__init__(node, item)
        self._position = position

    @property
    def data(self) -> Any:
        """The packed object if hooks are registered, else the tensor, which may be None."""
        saved = getattr(self._node, f"saved_{self._item}")
        if saved is RELEASED:
            raise released(self._node)
        packed = saved.packed.get(self._position) if saved.packed is not None else None
        return saved.element(self._position) if packed is None else packed.packed

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Replace the tensor by `pack_hook(tensor)`, and read it back through `unpack_hook`."""
        saved = getattr(self._node, f"saved_{self._item}")
        if saved is RELEASED:
            raise RuntimeError(FREED_BEFORE_HOOKS)
        if saved.packed is not None and self._position in saved.packed:
            raise RuntimeError(HOOKS_ARE_SET)
        if saved.element(self._position) is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        check_callable(pack_hook, unpack_hook)
        with modes_without_hooks():
            packed = saved.packed_by((pack_hook, unpack_hook), (self._position,))
        setattr(self._node, f"saved_{self._item}", packed)


_SHOWN_AS = {"_shape": "_sym_sizes", "_strides": "_sym_strides"}
_SIZES_FROM_THE_END = frozenset(
    "dim dims dim0 dim1 dim2 dimension index start end offset diagonal shifts ignore_index k".split()
)


def shown_name(item: str) -> str:
    """The name by which PyTorch shows the saved `item`."""
    for ending, shown in _SHOWN_AS.items():
        if item.endswith(ending):
            return item.removesuffix(ending) + shown
    return item


def saved_attributes(node_class: Any) -> dict[str, property]:
    """`_saved_<name>` and `_raw_saved_<name>` of the nodes of a class, by what it says they save.

    A `__getattr__` would make every reading of any attribute slower.
    """
    shown = node_class.shown
    hidden = {name for name, show in shown.items() if show is None}
    names = [f"_saved_{name}" for name in (*map(shown_name, node_class.saved_names), *shown)]
    raw = [f"_raw_saved_{name}" for name in (*node_class.saved_tensor_names, *node_class.saved_list_names)]
    return {
        name: property(functools.partial(read_saved, attribute=name))
        for name in (*names, *raw)
        if name.rpartition("_saved_")[2] not in hidden
    }


def read_saved(node: Node, attribute: str) -> Any:
    """`node._saved_<name>` and `node._raw_saved_<name>`, for people who look."""
    raw = attribute.startswith("_raw_saved_")
    name = attribute.removeprefix("_raw_saved_" if raw else "_saved_")
    if raw and name in node.saved_list_names:
        return tuple([SavedElement(node, name, position) for position in range(len(node.shown[name](node)))])
    if node.shown.get(name) is not None:
        return _unsigned(name, node.shown[name](node))
    item = next(item for item in node.saved_names if shown_name(item) == name)
    if item not in node.saved_tensor_names:
        value = getattr(node, f"saved_{item}")
        if item.endswith("_strides") and value is not None:
            return tuple(step // node.dtype.itemsize for step in value)
        return _unsigned(name, value)
    if raw:
        return SavedTensor(node, item)
    tensor = unpack(node, item)
    if tensor is not None and tensor._extra is not None and tensor._extra.number is not None:
        return tensor._extra.number()
    return tensor


def _unsigned(name: str, value: Any) -> Any:
    """Negative dimensions and positions as PyTorch shows them: as unsigned numbers of 64 bits."""
    if name not in _SIZES_FROM_THE_END:
        return value
    if isinstance(value, tuple):
        return tuple(_unsigned(name, item) for item in value)
    return value + (1 << 64) if type(value) is int and value < 0 else value
