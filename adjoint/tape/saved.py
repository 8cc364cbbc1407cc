"""Saved tensors: how a node stores them, how backward reads them with the version check, and the errors.

A node stores a saved input as the tensor itself, and a saved result as its bare array with the version counter. The
result refers to the node, so a reference back would be a cycle. A packed or released tensor occupies the same slot and
has the same attributes, so the generated backward code needs no test for them.
"""

from __future__ import annotations

from typing import Any

from ..kernels.runtime.lazy_conj import LazyConjNeg, materialize
from ..tensor import Tensor, ndarray, wrap
from . import modes
from .edges import current_edge, edge_of
from .node import FREED_MESSAGE, Node
from .packing import Packed, bare
from .versions import Mark, shared_counter


class _Released:
    """A placeholder in the slot of a saved tensor that backward has released."""

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


def save_input(node: Node, item: str, tensor: Tensor | None) -> None:
    """Save an input of the operation (slow path)."""
    setattr(node, f"saved_{item}", tensor)
    version = 0 if tensor is None or tensor._counter is None else tensor._counter[0]
    if tensor is not None and isinstance(tensor._array, LazyConjNeg):
        version = Mark(int(shared_counter(tensor)[0]))
    setattr(node, f"version_{item}", version)


def save_result(node: Node, item: str, result: Tensor) -> None:
    """Save an output of the operation (slow path): its array and its version counter, not the tensor."""
    counter = shared_counter(result)
    setattr(node, f"counter_{item}", counter)
    setattr(node, f"version_{item}", counter[0])
    without_history = getattr(result, "without_history", None)
    setattr(node, f"saved_{item}", result._array if without_history is None else without_history())


def unpack(node: Node, item: str) -> Tensor | None:
    """Return the saved tensor `item` in the form that the derivative expects. A result is connected to `node` again."""
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
    """Return the saved list of tensors `item`. Each tensor passes through its unpack hook."""
    saved = getattr(node, f"saved_{item}")
    if saved is RELEASED:
        raise released(node)
    return saved if type(saved) is tuple or saved.packed is None else saved.unpacked()


def unpack_array(node: Node, item: str, saved: Any) -> Any:
    """Return the array of the tensor that `unpack` would return. `saved` is the content of the slot."""
    if type(saved) is Packed:
        return saved._array
    tensor = unpack(node, item)
    return None if tensor is None else materialize(tensor._array)


def _as_output(node: Node, item: str, result: Tensor) -> Tensor:
    result._counter = getattr(node, f"counter_{item}")
    hooks = node._hooks
    if item not in node.operator.nondifferentiable_outputs:
        history = None if hooks is None or hooks.of_view is None else hooks.of_view()
        result._edge = (node, _output_index(node, item)) if history is None else (history, 0)
    if hooks is not None and item in hooks.tangents:
        result._own_extra().tangents = hooks.tangents[item]
    return result


def released(node: Node) -> RuntimeError:
    """Return the error for reading a saved tensor that backward has released."""
    error = RuntimeError(FREED_MESSAGE)
    error.add_note(f"{node.name()} was recorded at {node.describe_origin()}")
    return error


def check_version(node: Node, item: str, saved: Any) -> None:
    """Raise an error if a saved tensor has been changed in place since it was saved."""
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
        current_edge(saved)  # raises an error if a view could not be regenerated after the change
    array, edge = (saved, None) if is_result else (saved._array, saved._edge)
    if not is_result and saved._extra is not None and saved._extra.stands_for is not None:
        itself = saved._extra.stands_for()
        edge = edge if itself is None else edge_of(itself)
    from .stale_error import stale_error

    raise stale_error(node, array, counter, expected, output_nr, edge)


def _output_index(node: Node, item: str) -> int:
    outputs = node.operator.outputs
    return outputs.index(item) if outputs else 0
