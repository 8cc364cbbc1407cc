"""What a custom function saves: tensors with their versions and hooks, as its node and `_raw_saved_tensors` have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tape import modes
from ..tape.aliases import detached
from ..tape.edges import edge_of
from ..tape.node import Node
from ..tape.packing import Packed, modes_without_hooks, pack, shown
from ..tape.saved_attributes import HOOKS_ARE_SET, SavedTensor, check_callable
from ..tape.stale_error import stale_error
from ..tape.versions import shared_counter
from ..tensor import Tensor


class SavedVariable(SavedTensor):
    """One tensor given to `save_for_backward`; an output is kept without its history, which is the node itself."""

    __slots__ = ("counter", "output_nr", "tensor", "version")

    def __init__(self, tensor: Tensor, output_nr: int | None) -> None:
        self.output_nr = output_nr
        self.counter = None if output_nr is None else shared_counter(tensor)
        self.version = 0 if tensor._counter is None else tensor._counter[0]
        self.tensor: Any = tensor if self.counter is None else detached(tensor, self.counter)
        if modes.FLAGS.hooked and (hooks := modes.STATE.saved_tensor_hooks):
            edge = edge_of(tensor)
            with modes_without_hooks():
                if output_nr is None:
                    self.tensor = pack(tensor, hooks[-1], edge)
                else:
                    self.tensor = pack(shown(tensor, edge), hooks[-1], None)

    def unpack(self, node: Node) -> Tensor:
        """The tensor as backward sees it."""
        tensor = self.tensor
        if type(tensor) is Packed:
            tensor = tensor.tensor()
        elif tensor._counter is not None and int(tensor._counter[0]) != int(self.version):
            raise stale_error(node, tensor._array, tensor._counter, self.version, self.output_nr, tensor._edge)
        if self.counter is None:
            return tensor
        result = detached(tensor, self.counter)
        result._edge = (node, self.output_nr)
        if tensor._extra is not None and tensor._extra.tangents is not None:
            result._own_extra().tangents = tensor._extra.tangents
        return result

    @property
    def data(self) -> Any:
        """The packed object if hooks are registered, else the tensor."""
        return self.tensor.packed if type(self.tensor) is Packed else self.tensor

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Replace the saved tensor by `pack_hook(tensor)`, and read it back through `unpack_hook`."""
        if type(self.tensor) is Packed:
            raise RuntimeError(HOOKS_ARE_SET)
        check_callable(pack_hook, unpack_hook)
        edge = None if self.output_nr is not None else edge_of(self.tensor)
        with modes_without_hooks():
            self.tensor = pack(shown(self.tensor, None), (pack_hook, unpack_hook), edge)


class SavedNone(SavedTensor):
    """The None that was given to `save_for_backward`, as `_raw_saved_tensors` shows it."""

    __slots__ = ()
    data = None

    def __init__(self) -> None:
        pass

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Refuse."""
        raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")


def save(node: Any, outputs: list[Any]) -> None:
    """Store in `node` what `save_for_backward` was given, of the outputs of the custom function among it."""
    if node.to_save is None:
        return
    saved: list[SavedVariable | None] = []
    for tensor in node.to_save:
        if tensor is None:
            saved.append(None)
        elif isinstance(tensor, Tensor):
            edge = tensor._edge
            number = edge[1] if type(edge) is tuple and edge[0] is node else None
            if number is None and node.marked_dirty:
                # A view that was changed in place leads to the node through its base.
                number = next((number for number in node.marked_dirty if outputs[number] is tensor), None)
            saved.append(SavedVariable(tensor, number))
        else:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(saved)} is of type {type(tensor).__name__}"
            )
    node._saved = saved
