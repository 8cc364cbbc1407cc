"""Views and in-place operations: which changes of tensors on shared memory are allowed, and which histories they change.

A view refers to its base (never to another view) and shares its version counter. Changing a view in place gives the
*base* a new node, `CopySlices`. Outside the view the gradient passes unchanged. Inside the view it goes through the
operation. Other views are not notified. On its next use, each view compares versions, finds that its edge is stale, and
gets a new edge (`AsStridedBackward0`) into the new history of the base. `operators.memory.changed_views` contains these
two nodes.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..kernels.memory import storage
from ..tensor import LEAF, Tensor, is_recorded
from . import modes
from .edges import current_edge
from .node import Node, own_hooks

NO_GRAD = "no_grad"
INFERENCE = "inference_mode"
MULTI_OUTPUT = "multi_output"
CUSTOM = "custom"


def note_making(view: Tensor, source: Tensor, step: tuple[Any, tuple[Any, ...]]) -> None:
    """Store the operations up to `step` that lead from the base to `view`, if those up to `source` are known."""
    earlier: Any = ()
    if source._base is not None:
        earlier = None if source._extra is None else source._extra.made_by
    if earlier is not None:
        view._own_extra().made_by = (*earlier, step)


def creation_unrecorded(source: str | None) -> str:
    """Return how an unrecorded view has been created. `source`: how the tensor to which the view belongs has been created."""
    return INFERENCE if source == INFERENCE else NO_GRAD


def refusal(view: Tensor, event: str) -> RuntimeError:
    """Return the error for `event`, an in-place change that would make the history of `view` wrong or ambiguous."""
    edge: Any = view._edge
    recorded = is_recorded(edge)
    made = f"Output {edge[1]} of {edge[0]._operation()} is a view" if recorded else "A view was created"
    if view._creation in (MULTI_OUTPUT, CUSTOM):
        mode, now = ("", "") if recorded else (" in no_grad mode", " with grad mode enabled")
        why = _MULTI_OUTPUT if view._creation == MULTI_OUTPUT else _CUSTOM
        return RuntimeError(f"{made}{mode} and {event}{now}. {why}")
    mode, now = (
        ("inference mode", "in normal mode")
        if view._creation == INFERENCE
        else ("no_grad mode", "with grad mode enabled")
    )
    of = " of a view which was created" if recorded else ""
    return RuntimeError(f"{made}{of} in {mode} and {event} {now}. {_ambiguous(view)}")


_MULTI_OUTPUT = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
_CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def _ambiguous(view: Tensor) -> str:
    mode = "inference_mode" if view._creation == INFERENCE else "no_grad"
    return (
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        f"both the view and the inplace either both inside the {mode} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )


def check_inference(tensor: Tensor) -> None:
    """Raise an error if `tensor` is an inference tensor and inference mode is off."""
    if tensor._extra is None or not tensor._extra.inference or modes.STATE.inference:
        return
    versions: Any = tensor._counter
    if versions.counter is None:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
            "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def check_inplace(tensor: Tensor) -> None:
    """Raise an error if autograd forbids an in-place change of `tensor` in the current recording mode."""
    if modes.is_recording():
        check_history(tensor)


def check_history(tensor: Tensor) -> None:
    """Raise an error if an in-place change of `tensor` cannot become part of its history."""
    base = tensor._base
    if base is None:
        if tensor._edge is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    elif tensor.requires_grad:
        check_view_creation(tensor)
        if not is_recorded(base._edge):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if not is_recorded(tensor._edge):  # the base got a history later, and this view has not been used since
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        current_edge(tensor)


def check_view_creation(view: Tensor) -> None:
    """Raise an error if `view` was created in a way that forbids in-place operations on it."""
    if view._creation is not None and modes.is_recording():
        raise refusal(view, "is being modified inplace")


class Geometry:
    """The shape, strides and offset of a view within the storage of its base, in elements."""

    __slots__ = ("offset", "shape", "steps")

    def __init__(self, array: Any) -> None:
        self.shape = array.shape
        self.steps = storage.element_strides(array)
        self.offset = storage.storage_offset(array)


def may_be_rebased(view: Tensor) -> bool:
    """Return whether a recorded change of `view` needs only new histories of it and its base, and no slow path."""
    base: Any = view._base
    if (
        view._creation is not None
        or view._extra is not None
        or base._extra is not None
        or type(base._array) is not numpy.ndarray
    ):
        return False
    if 0 in view._array.strides:
        return False
    edge, base_edge = current_edge(view), base._edge
    if base_edge is None:
        return edge is None
    return type(edge) is tuple and type(base_edge) is tuple and edge[0]._hooks is None and base_edge[0]._hooks is None


def rebase_history(tensor: Tensor, node: Node, depth: int, output_nr: int = 0) -> None:
    """Make `node` the history of `tensor`, which the operation of `node` has just changed in place."""
    base = tensor._base
    if base is None:
        point_at(tensor, (node, output_nr))
        return
    tensor._rebase(node, depth + 1)


def point_at(tensor: Tensor, edge: tuple[Node, int]) -> None:
    """Set the edge of `tensor`."""
    old = tensor._edge
    tensor._edge = edge
    leave_hooks(tensor, old)


def leave_hooks(tensor: Tensor, old: Any) -> None:
    """Keep the hooks of `tensor` at the old node, the node of its edge `old`. Move its `retain_grad` to the new node."""
    if type(old) is tuple and tensor._extra is not None:
        tensor._extra.hooks = None
    if type(old) is tuple and old[0]._hooks is not None:
        retained = old[0]._hooks.retained
        if old[1] in retained and retained[old[1]]() is tensor:
            node, number = tensor._edge
            own_hooks(node).retained[number] = retained.pop(old[1])
