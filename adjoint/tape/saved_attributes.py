"""The public attributes for saved tensors: `node._saved_<name>`, and `node._raw_saved_<name>`, which accepts hooks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..tensor import ndarray, wrap
from .aliases import detached
from .edges import edge_of
from .node import Node
from .packing import Packed, pack, shown, without_hooks
from .saved import RELEASED, released, unpack

FREED_BEFORE_HOOKS = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when "
    "you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second "
    "time or if you need to access saved variables after calling backward."
)
HOOKS_ARE_SET = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a "
    "time."
)


class SavedTensor:
    """A saved tensor that `node._raw_saved_<name>` returns. It is not unpacked, and hooks can be registered on it."""

    __slots__ = ("_item", "_node")

    def __init__(self, node: Node | None = None, item: str = "") -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node = node
        self._item = item

    def __repr__(self) -> str:
        return f"<torch._C._autograd.SavedTensor object at {hex(id(self))}>"

    def _held(self) -> Any:
        """Return the content of the slot: a tensor, an array of a result, a `Packed` if hooks are registered, or None."""
        return getattr(self._node, f"saved_{self._item}")

    def stored(self) -> Any:
        """Return the tensor, or a `Packed` if hooks are registered."""
        saved = self._held()
        if saved is RELEASED:
            raise released(self._node)
        return saved if type(saved) is Packed else unpack(self._node, self._item)

    @property
    def data(self) -> Any:
        """The packed object if hooks are registered, otherwise the tensor."""
        saved = self.stored()
        return saved.packed if type(saved) is Packed else saved

    @property
    def unpack_hook(self) -> Callable[[Any], Any] | None:
        """The second hook if hooks are registered, otherwise None."""
        saved = self.stored()
        return saved.unpack_hook if type(saved) is Packed else None

    def unpack(self) -> Any:
        """Return the tensor, read back through the hook if there is one."""
        return read_saved(self._node, f"_saved_{shown_name(self._item)}")

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Replace the saved tensor by the result of the first of two hooks, and read it back through the second hook."""
        saved = self._held()
        if saved is RELEASED:
            raise RuntimeError(FREED_BEFORE_HOOKS)
        if type(saved) is Packed:
            raise RuntimeError(HOOKS_ARE_SET)
        if saved is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, "
                "arg1: collections.abc.Callable) -> None"
            )
        with without_hooks():
            self._pack(saved, hooks)

    def _pack(self, saved: Any, hooks: tuple[Callable[[Any], Any], ...]) -> None:
        edge = None
        if isinstance(saved, ndarray):
            saved = detached(wrap(saved), getattr(self._node, f"counter_{self._item}"))
        else:
            edge = edge_of(saved)
        setattr(self._node, f"saved_{self._item}", pack(shown(saved, None), hooks, edge))


class SavedElement(SavedTensor):
    """One tensor of a saved list, as `node._raw_saved_<name>[position]` returns it."""

    __slots__ = ("_position",)

    def __init__(self, node: Node, item: str, position: int) -> None:
        super().__init__(node, item)
        self._position = position

    def _held(self) -> Any:
        saved = super()._held()
        if saved is RELEASED:
            return saved
        packed = None if saved.packed is None else saved.packed.get(self._position)
        return saved.element(self._position) if packed is None else packed

    def stored(self) -> Any:
        """Return the tensor or None, or a `Packed` if hooks are registered."""
        saved = self._held()
        if saved is RELEASED:
            raise released(self._node)
        return saved

    def unpack(self) -> Any:
        """Return the tensor, restored by the hook if there is one, or None."""
        return super().unpack()[self._position]

    def _pack(self, saved: Any, hooks: tuple[Callable[[Any], Any], ...]) -> None:
        slot = f"saved_{self._item}"
        setattr(self._node, slot, getattr(self._node, slot).packed_by(hooks, (self._position,)))


_SHOWN_AS = {"_shape": "_sym_sizes", "_strides": "_sym_strides"}
_SIZES_FROM_THE_END = frozenset(
    "dim dims dim0 dim1 dim2 dimension index start end offset diagonal shifts ignore_index k".split()
)


def shown_name(item: str) -> str:
    """Return PyTorch's name of the saved `item`."""
    for ending, theirs in _SHOWN_AS.items():
        if item.endswith(ending):
            return item.removesuffix(ending) + theirs
    return item


def saved_attributes(node_class: Any) -> dict[str, property]:
    """Build the properties `_saved_<name>` and `_raw_saved_<name>` of a class of nodes."""
    shown = node_class.saved_display
    hidden = {name for name, show in shown.items() if show is None}
    names = [f"_saved_{name}" for name in (*map(shown_name, node_class.saved_names), *shown)]
    raw = [f"_raw_saved_{name}" for name in (*node_class.saved_tensor_names, *node_class.saved_list_names)]
    return {
        name: property(functools.partial(read_saved, attribute=name))
        for name in (*names, *raw)
        if name.rpartition("_saved_")[2] not in hidden
    }


def read_saved(node: Node, attribute: str) -> Any:
    """Read `node._saved_<name>` or `node._raw_saved_<name>`."""
    raw = attribute.startswith("_raw_saved_")
    name = attribute.removeprefix("_raw_saved_" if raw else "_saved_")
    if raw and name in node.saved_list_names:
        return tuple([SavedElement(node, name, position) for position in range(len(node.saved_display[name](node)))])
    if node.saved_display.get(name) is not None:
        return _unsigned(name, node.saved_display[name](node))
    item = next(item for item in node.saved_names if shown_name(item) == name)
    if item not in node.saved_tensor_names:
        value = getattr(node, f"saved_{item}")
        if item.endswith("_strides") and value is not None:
            dtype = node._grad_dtype[0] if isinstance(node._grad_dtype, list) else node._grad_dtype
            return tuple(step // dtype.itemsize for step in value)
        return (
            float(value) if type(value) is int and node.operator.types.get(item) == "Float" else _unsigned(name, value)
        )
    if raw:
        return SavedTensor(node, item)
    tensor = unpack(node, item)
    if tensor is not None and tensor._extra is not None and tensor._extra.number is not None:
        return tensor._extra.number()
    return tensor


def _unsigned(name: str, value: Any) -> Any:
    """Convert negative dimensions and positions to unsigned 64-bit numbers, as PyTorch shows them."""
    if name not in _SIZES_FROM_THE_END:
        return value
    if isinstance(value, tuple):
        return tuple(_unsigned(name, item) for item in value)
    return value + (1 << 64) if type(value) is int and value < 0 else value
