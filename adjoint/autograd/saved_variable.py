"""The tensors that a custom function saves, with versions and hooks. The node and `_raw_saved_tensors` hold them."""

from __future__ import annotations

from typing import Any

from ..tape import modes
from ..tape.aliases import detached
from ..tape.edges import edge_of
from ..tape.packing import Packed, pack, shown, without_hooks
from ..tape.saved import released
from ..tape.saved_attributes import SavedTensor
from ..tape.stale_error import stale_error
from ..tape.versions import shared_counter
from ..tensor import Tensor, history


class SavedVariable(SavedTensor):
    """One tensor given to `save_for_backward`. An output is stored without its history, which is the node itself."""

    __slots__ = ("counter", "output_nr", "tensor", "version")

    def __init__(self, tensor: Tensor, output_nr: int | None) -> None:
        self.output_nr = output_nr
        self.counter = None if output_nr is None else shared_counter(tensor)
        self.version = 0 if tensor._counter is None else tensor._counter[0]
        self.tensor: Any = tensor if self.counter is None else detached(tensor, self.counter)
        if modes.FLAGS.hooked and (hooks := modes.STATE.saved_tensor_hooks):
            edge = edge_of(tensor)
            with without_hooks():
                if output_nr is None:
                    self.tensor = pack(tensor, hooks[-1], edge)
                else:
                    self.tensor = pack(shown(tensor, edge), hooks[-1], None)

    def unpack(self) -> Tensor:
        """Return the tensor that was given. If there is a hook, the tensor is read back through the hook.

        Raises:
            RuntimeError: if the tensor is an output, because only the node knows its history.
        """
        if self.output_nr is not None:
            raise RuntimeError("The tensor is an output of the node that has saved it: read it from the node.")
        return self.tensor_for(None)

    def tensor_for(self, node: Any) -> Tensor:
        """Return the tensor as the backward of `node` sees it."""
        tensor = self.tensor
        if type(tensor) is Packed:
            tensor = tensor.tensor()
        elif tensor._counter is not None and int(tensor._counter[0]) != int(self.version):
            raise stale_error(node, tensor._array, tensor._counter, self.version, self.output_nr, tensor._edge)
        if self.counter is None:
            if tensor._base is not None:
                history(tensor)  # a view that `forward` has made may have become ambiguous
            return tensor
        result = detached(tensor, self.counter)
        result._edge = (node, self.output_nr)
        if tensor._extra is not None and tensor._extra.tangents is not None:
            result._own_extra().tangents = tensor._extra.tangents
        return result

    def _held(self) -> Any:
        return self.tensor

    stored = _held

    def _pack(self, saved: Any, hooks: Any) -> None:
        edge = None if self.output_nr is not None else edge_of(saved)
        self.tensor = pack(shown(saved, None), hooks, edge)


class SavedNone(SavedTensor):
    """The None given to `save_for_backward`, as `_raw_saved_tensors` returns it."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def _held(self) -> None:
        """Return None."""

    stored = unpack = _held


def check_tuple(name: str, value: Any) -> None:
    """Raise an error unless `value`, an attribute of a `ctx` that `forward` may assign, is a tuple."""
    if not isinstance(value, tuple):
        raise RuntimeError(
            f"autograd internal error: {name} attribute is expected to be a tuple but is {type(value).__name__}"
        )


def check_saved(values: Any) -> None:
    """Raise an error unless `values`, which `save_for_backward` has received, are tensors or None."""
    if values is None:
        return
    check_tuple("to_save", values)
    for position, value in enumerate(values):
        if not isinstance(value, Tensor) and value is not None:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {position} is of type {type(value).__name__}"
            )


def save(node: Any, outputs: list[Any]) -> None:
    """Store in `node` the values given to `save_for_backward`, some of which may be outputs of the custom function."""
    if node.to_save is None:
        return
    check_tuple("to_save", node.to_save)
    values, node.to_save = (
        node.to_save,
        None,
    )  # first, because a hook may raise an error, and an output refers to the node
    saved: list[SavedVariable | None] = []
    for tensor in values:
        if not isinstance(tensor, Tensor):
            check_saved(values)  # raises an error, unless the value is None
            saved.append(None)
            continue
        edge = tensor._edge
        number = edge[1] if type(edge) is tuple and edge[0] is node else None
        if number is None and node.marked_dirty:
            # A view that was changed in place leads to the node through its base.
            number = next((number for number in node.marked_dirty if outputs[number] is tensor), None)
        saved.append(SavedVariable(tensor, number))
    node._saved = saved


class _Cleared(tuple[Any, ...]):
    """A marker for the saved tensors of a node that have been read once and must not be read again."""

    __slots__ = ()


CLEARED = _Cleared()


def unpacked(node: Any) -> tuple[Any, ...]:
    """Return the tensors that the node of a custom function has saved. Some functions release the tensors on access."""
    if node._saved is None:
        raise released(node)
    if node._saved is CLEARED:
        raise RuntimeError(
            "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
            "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
        )
    found = tuple([None if saved is None else saved.tensor_for(node) for saved in node._saved])
    if node._forward_cls.clear_saved_tensors_on_access:
        node._saved = CLEARED
    return found
