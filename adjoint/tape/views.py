"""Views and in-place operations: how a change of one tensor changes the history of other tensors on the same memory.

A view refers to its base (never to another view) and shares its version counter. Changing a view in place gives the
*base* a new node, `CopySlices`: outside the view the gradient passes unchanged, inside it goes through the operation.
Other views are not notified. On its next use, each compares versions, finds its edge stale, and gets a new edge
(`AsStridedBackward0`) into the new history of the base.
"""

from __future__ import annotations

from typing import Any

import numpy

from .._runtime.late_bound import LATE
from ..dtypes import from_numpy
from ..kernels.memory import storage
from ..kernels.runtime.lazy_conj import materialize, with_lazy_bits
from ..kernels.sparse.layouts import to_dense
from ..tensor import LEAF, Tensor, is_recorded, lazy_bits
from . import modes
from .edges import current_edge, edge_of
from .node import FREED_MESSAGE, Node, own_hooks, start

NO_GRAD = "no_grad"
INFERENCE = "inference_mode"
MULTI_OUTPUT = "multi_output"
CUSTOM = "custom"


def regenerate(view: Tensor, told: bool = False, places: tuple[Geometry, Geometry] | None = None) -> None:
    """Give `view` a new edge into the current history of its base, because their memory has changed.

    `places`: where base and view lie, if that is known.

    Raises for a view that cannot be regenerated, because it was created by a custom function or in a mode that hides
    its origin. Without recording it raises only if `told` is set.
    """
    base: Any = view._base
    version = view._counter[0]  # type: ignore[index]
    if type(version) is not int and int(view._view_version) == int(version):
        view._view_version = version
        return  # nothing has changed except that the base was detached
    base_edge = edge_of(base)
    if base_edge is not None or is_recorded(view._edge):  # the base may have been detached since then
        if view._creation is not None:
            if told or modes.is_recording():
                raise invalid_view(view)
            return
        old = view._edge
        if modes.STATE.view_replay and view._extra is not None and view._extra.made_by is not None:
            view._edge = LATE.replay(base, view._extra.made_by)
        else:
            view._edge = (LATE.as_strided_node(base, view, base_edge, places), 0)
        leave_hooks(view, old)
        view._view_version = view._counter[0]  # type: ignore[index]  # else it has not yet seen its history begin


LATE.regenerate = regenerate


def note_making(view: Tensor, source: Tensor, step: tuple[Any, tuple[Any, ...]]) -> None:
    """Store the operations that lead from the base to `view`, `step` being the last, if those up to `source` are known."""
    earlier: Any = ()
    if source._base is not None:
        earlier = None if source._extra is None else source._extra.made_by
    if earlier is not None:
        view._own_extra().made_by = (*earlier, step)


def creation_unrecorded(source: str | None) -> str:
    """How a view has been created that is not recorded; `source`: how the tensor that it is a view of has been."""
    return INFERENCE if source == INFERENCE else NO_GRAD


def invalid_view(view: Tensor) -> RuntimeError:
    """The error for a view that cannot be regenerated after an in-place change of its base."""
    return _refusal(view, "its base or another view of its base has been modified inplace")


def _refusal(view: Tensor, event: str) -> RuntimeError:
    """The error for `event`, an in-place change, after which the history of `view` would be wrong or ambiguous."""
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
    """Raise if `tensor` is an inference tensor and inference mode is off."""
    if tensor._extra is None or not tensor._extra.inference or modes.STATE.inference:
        return
    versions: Any = tensor._counter
    if versions.counter is None:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
            "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def check_inplace(tensor: Tensor) -> None:
    """Raise if autograd forbids an in-place change of `tensor`, in the current recording mode."""
    if modes.is_recording():
        check_history(tensor)


def check_history(tensor: Tensor) -> None:
    """Raise if an in-place change of `tensor` cannot become part of its history."""
    base = tensor._base
    if base is None:
        if tensor._edge is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    elif tensor.requires_grad:
        check_view_creation(tensor, True)
        if not is_recorded(base._edge):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if not is_recorded(tensor._edge):  # the base got a history later, and this view has not been used since
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        current_edge(tensor)


def check_view_creation(view: Tensor, requires_grad: bool) -> None:
    """Raise if `view` was created in a way that forbids in-place operations on it."""
    creation = view._creation
    if creation is None or not requires_grad or not modes.is_recording():
        return
    raise _refusal(view, "is being modified inplace")


class Geometry:
    """Shape, strides and offset of a view within the storage of its base, in elements."""

    __slots__ = ("offset", "shape", "steps")

    def __init__(self, array: Any) -> None:
        self.shape = array.shape
        self.steps = storage.element_strides(array)
        self.offset = storage.storage_offset(array)


class CopySlices(Node):
    """The history of a base after one of its views was changed in place by the operation of node `function`.

    A backward that does not retain the graph releases `function`, but not the values that `function` has saved: the
    saved result of the operation may lead to that node directly. `function_class` stays.
    """

    __slots__ = ("base", "bits", "function", "function_class", "other_kind", "view")
    takes_stand_ins = True
    function: Node | None

    def name(self) -> str:
        """PyTorch's full name."""
        return "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, view: Tensor, function: Node, depth: int) -> None:
        start(self, (edge_of(base), *function._edges[1:]), depth + 1)
        is_complex = view._array.dtype.kind in "cW"
        self.other_kind = None if (base._array.dtype.kind in "cW") == is_complex else "c" if is_complex else "f"
        self.base = Geometry(base._array)
        self.view = Geometry(view._array)
        plain = type(base._array) is numpy.ndarray is type(view._array)
        self.bits = (0, 0) if plain else (lazy_bits(base), lazy_bits(view))
        self.function = function
        self.function_class = type(function)
        self._grad_shape = base._array.shape
        self._grad_dtype = base._array.dtype

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Inside the view, pass the gradient through the operation; outside, pass it unchanged."""
        function = self._function(retain_graph)
        whole, part = self._split(to_dense(grad))
        inner = function.backward(_for_function(function, part.copy()), True, _inner(function, edges))
        if inner[0] is None and function.runs_undefined:  # a custom function that returns no gradient
            return (None, *inner[1:])
        part[...] = 0 if inner[0] is None else _reduced(inner[0], part.shape)
        return (materialize(whole), *inner[1:])

    def _split(self, grad: Any) -> tuple[Any, Any]:
        """A copy of `grad` with the layout of the base, and the part of that copy at the view."""
        offset = self._offset()
        end = offset + _span(self.view)
        needed = 2 * end if self.other_kind == "c" else end if self.other_kind is None else -(-end // 2)
        length = max(_span(self.base), needed)
        flat = numpy.zeros(length + length % 2, numpy.asarray(grad).dtype)
        whole = with_lazy_bits(storage.strided(flat, self.base.shape, self.base.steps, 0), self.bits[0])
        whole[...] = grad
        elements = flat
        if self.other_kind is not None:
            kind = from_numpy(flat.dtype)
            elements = flat.view((kind.to_complex() if self.other_kind == "c" else kind.to_real()).numpy)
        return whole, with_lazy_bits(storage.strided(elements, self.view.shape, self.view.steps, offset), self.bits[1])

    def _offset(self) -> int:
        """The offset of the view within the base, in elements."""
        if self.other_kind is None:
            return self.view.offset - self.base.offset
        return self.view.offset - (self.base.offset // 2 if self.other_kind == "c" else 2 * self.base.offset)

    def _function(self, retain_graph: bool) -> Node:
        """The node of the operation; it can run only once unless `retain_graph`."""
        function = self.function
        if function is None:
            raise RuntimeError(FREED_MESSAGE)
        if not retain_graph:
            self.function = None
        return function

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Like `backward`, on tensors."""
        whole = grad.new_empty_strided(self.base.shape, self.base.steps)
        whole.copy_(LATE.lazy_view(grad.to_dense(), self.bits[0]))
        offset = self._offset()
        if self.other_kind == "c":
            shape, steps = (*self.view.shape, 2), (*(2 * step for step in self.view.steps), 1)
            part = LATE.complex_view(whole.as_strided(shape, steps, 2 * offset))
        else:
            elements = whole if self.other_kind is None else LATE.real_view(whole)
            part = elements.as_strided(self.view.shape, self.view.steps, offset)
        part, whole = LATE.lazy_view(part, self.bits[1]), LATE.lazy_view(whole, self.bits[0])
        function = self._function(retain_graph)
        inner = function.backward_recorded(_for_function(function, part.clone()), True, _inner(function, edges))
        if inner[0] is None and function.runs_undefined:
            return (None, *inner[1:])
        if inner[0] is None:
            part.zero_()
        else:
            part.copy_(inner[0])
        return (whole, *inner[1:])


def _inner(function: Node, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """The edges of the operation: those of `CopySlices`, with the edge of the changed argument, if any, as the first."""
    return (edges[0] and function._edges[0], *edges[1:])


def _for_function(function: Node, grad: Any) -> Any:
    """The gradient of the view in the form that the node of the operation takes."""
    return [grad] if type(function._grad_shape) is list else grad


def _span(geometry: Geometry) -> int:
    """The number of elements between the first and the last element in memory, inclusive."""
    if 0 in geometry.shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(geometry.shape, geometry.steps, strict=True))


def _reduced(array: Any, shape: tuple[int, ...]) -> Any:
    from ..kernels.reduce.reduction import sum_to_shape

    return array if array.shape == shape else sum_to_shape(array, shape)


def may_be_rebased(view: Tensor) -> bool:
    """Whether a change of `view`, in a recording mode, may become part of its history and of that of its base as they are.

    The slow path knows all other cases, and raises for those that are none.
    """
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
    change = CopySlices(base, tensor, node, depth + 1)
    point_at(base, (change, 0))
    regenerate(tensor, places=(change.base, change.view))


def point_at(tensor: Tensor, edge: tuple[Node, int]) -> None:
    """Set the edge of `tensor`."""
    old = tensor._edge
    tensor._edge = edge
    leave_hooks(tensor, old)


def leave_hooks(tensor: Tensor, old: Any) -> None:
    """Keep the hooks of `tensor`, whose edge was `old`, at the old node; move its `retain_grad` to the new one."""
    if type(old) is tuple and tensor._extra is not None:
        tensor._extra.hooks = None
    if type(old) is tuple and old[0]._hooks is not None:
        retained = old[0]._hooks.retained
        if old[1] in retained and retained[old[1]]() is tensor:
            node, number = tensor._edge
            own_hooks(node).retained[number] = retained.pop(old[1])
