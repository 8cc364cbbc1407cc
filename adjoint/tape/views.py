"""Views and in-place operations: how changing one tensor changes the history of others on the same memory.

A view refers to its base (never to another view) and shares its version counter. Changing a view in place gives the
*base* a new node, `CopySlices`: everywhere outside the view the gradient passes as before, inside it goes through the
operation. Views are not told; each notices by the version that its own edge is stale, and asks for a new one
(`AsStridedBackward0` into the base's new history) when next used.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..kernels.memory import storage
from ..kernels.runtime.lazy_conj import materialize, with_lazy_bits
from ..late_bound import LATE
from ..tensor import LEAF, Tensor, is_recorded, pending
from . import modes
from .edges import current_edge, edge_of
from .node import FREED_MESSAGE, Node, own_hooks, start

NO_GRAD = "no_grad"
INFERENCE = "inference_mode"
MULTI_OUTPUT = "multi_output"
CUSTOM = "custom"


def regenerate(view: Tensor, told: bool = False) -> None:
    """Give `view`, whose memory has changed since its edge was made, an edge into its base's present history.

    Where the way it was made hides what the change means for it, that is an error, but not where nothing is recorded (and
    nobody asks to be `told`).
    """
    base: Any = view._base
    version = view._counter[0]  # type: ignore[index]
    if type(version) is not int and int(view._view_version) == int(version):
        view._view_version = version
        return  # nothing has changed but that the base was detached
    base_edge = edge_of(base)
    if base_edge is not None or is_recorded(view._edge):  # the base may have been detached since
        if view._creation is not None:
            if told or modes.is_recording():
                raise invalid_view(view)
            return
        old = view._edge
        if modes.STATE.view_replay and view._extra is not None and view._extra.made_by is not None:
            view._edge = LATE.replay(base, view._extra.made_by)
        else:
            view._edge = (LATE.as_strided_node(base, view, base_edge), 0)
        leave_hooks(view, old)
        view._view_version = view._counter[0]  # type: ignore[index]  # else it has yet to see where a history begins


LATE.regenerate = regenerate


def note_making(view: Tensor, source: Tensor, step: tuple[Any, tuple[Any, ...]]) -> None:
    """Note the operations that lead from the base to `view`, of which `step` is the last, if those to `source` are known."""
    earlier: Any = ()
    if source._base is not None:
        earlier = None if source._extra is None else source._extra.made_by
    if earlier is not None:
        view._own_extra().made_by = (*earlier, step)


def invalid_view(view: Tensor) -> RuntimeError:
    """The error for a view whose base has been changed in place, made in a way that hides what that means for it."""
    what = "its base or another view of its base has been modified inplace"
    if view._creation == MULTI_OUTPUT:
        tracked = type(view._edge) is tuple
        made = f"{_made_by(view)} is a view and" if tracked else _made_by(view)
        return RuntimeError(f"{made} {what}{'' if tracked else ' with grad mode enabled'}. {_MULTI_OUTPUT}")
    if view._creation == CUSTOM:
        tracked = is_recorded(view._edge)
        made = f"{_made_by(view)} is a view and" if tracked else _made_by(view)
        return RuntimeError(f"{made} {what}{'' if tracked else ' with grad mode enabled'}. {_CUSTOM}")
    if view._creation == INFERENCE:
        return RuntimeError(f"A view was created in inference mode and {what} in normal mode. {_ambiguous(view)}")
    return RuntimeError(f"A view was created in no_grad mode and {what} with grad mode enabled. {_ambiguous(view)}")


_MULTI_OUTPUT = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
_CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def _made_by(view: Tensor) -> str:
    edge = view._edge
    return (
        f"Output {edge[1]} of {edge[0].operation()}" if is_recorded(edge) else "A view was created in no_grad mode and"
    )


def _ambiguous(view: Tensor) -> str:
    mode = "inference_mode" if view._creation == INFERENCE else "no_grad"
    return (
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        f"both the view and the inplace either both inside the {mode} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )


def check_inference(tensor: Tensor) -> None:
    """Raise if `tensor` was made in inference mode, outside of which nothing counts its changes."""
    if tensor._extra is None or not tensor._extra.inference or modes.STATE.inference:
        return
    versions: Any = tensor._counter
    if versions.counter is None:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
            "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def check_inplace(tensor: Tensor) -> None:
    """Raise if autograd does not allow `tensor` to be changed in place, as far as anything is recorded."""
    if modes.is_recording():
        check_history(tensor)


def check_history(tensor: Tensor) -> None:
    """Raise if a change of `tensor` in place cannot become part of its history."""
    base = tensor._base
    if base is None:
        if tensor._edge is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    elif tensor.requires_grad:
        check_view_creation(tensor, True)
        if not is_recorded(base._edge):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if not is_recorded(tensor._edge):  # the base has a history since, but nobody has asked this view for its own
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        current_edge(tensor)


def check_view_creation(view: Tensor, requires_grad: bool) -> None:
    """Raise if `view` was made in a way that in-place operations cannot be tracked through."""
    creation = view._creation
    if creation is None or not requires_grad or not modes.is_recording():
        return
    if creation == MULTI_OUTPUT:
        tracked = type(view._edge) is tuple
        made = f"{_made_by(view)} is a view and" if tracked else _made_by(view)
        raise RuntimeError(
            f"{made} is being modified inplace{'' if tracked else ' with grad mode enabled'}. {_MULTI_OUTPUT}"
        )
    if creation == CUSTOM:
        tracked = is_recorded(view._edge)
        made = f"{_made_by(view)} is a view and" if tracked else _made_by(view)
        raise RuntimeError(f"{made} is being modified inplace{'' if tracked else ' with grad mode enabled'}. {_CUSTOM}")
    mode, where = (
        ("inference mode", "in normal mode") if creation == INFERENCE else ("no_grad mode", "with grad mode enabled")
    )
    what = "A view was"
    if is_recorded(view._edge):
        what = f"Output {view._edge[1]} of {view._edge[0].operation()} is a view of a view which was"
    raise RuntimeError(f"{what} created in {mode} and is being modified inplace {where}. {_ambiguous(view)}")


class Geometry:
    """Shape, strides and offset of a view within its base's storage, in elements."""

    __slots__ = ("offset", "shape", "steps")

    def __init__(self, array: Any) -> None:
        self.shape = array.shape
        self.steps = storage.element_strides(array)
        self.offset = storage.storage_offset(array)


class CopySlices(Node):
    """The history of a base after one of its views was changed in place by the operation of node `function`.

    A backward that keeps nothing lets go of `function`, but not of what `function` has saved: the saved result of the operation
    may lead to that node directly. `function_class` stays.
    """

    __slots__ = ("base", "bits", "function", "function_class", "other_kind", "view")
    function: Node | None

    def name(self) -> str:
        """PyTorch's full name."""
        return "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, view: Tensor, function: Node, depth: int) -> None:
        start(self, (edge_of(base), *function.edges[1:]), depth + 1)
        kind = view._array.dtype.kind
        self.other_kind = None if (base._array.dtype.kind == "c") == (kind == "c") else kind
        self.base = Geometry(base._array)
        self.view = Geometry(view._array)
        self.bits = pending(base), pending(view)
        self.function = function
        self.function_class = type(function)
        self.shape = base._array.shape
        self.dtype = base._array.dtype

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Inside the view the gradient goes through the operation; outside it passes."""
        function = self._function(retain_graph)
        whole, part = self._split(grad)
        inner = function.backward(_for_function(function, part.copy()), True, _inner(function, edges))
        if inner[0] is None and function.runs_undefined:  # a custom function that gives no gradient
            return (None, *inner[1:])
        part[...] = 0 if inner[0] is None else _reduced(inner[0], part.shape)
        return (materialize(whole), *inner[1:])

    def _split(self, grad: Any) -> tuple[Any, Any]:
        """A copy of `grad` laid out like the base, and the part of it under the view."""
        offset = self._offset()
        end = offset + _span(self.view)
        needed = 2 * end if self.other_kind == "c" else end if self.other_kind is None else -(-end // 2)
        length = max(_span(self.base), needed)
        flat = numpy.zeros(length + length % 2, numpy.asarray(grad).dtype)
        whole = with_lazy_bits(storage.strided(flat, self.base.shape, self.base.steps, 0), self.bits[0])
        whole[...] = grad
        elements = flat
        if self.other_kind is not None:
            elements = flat.view(numpy.result_type(flat.dtype, 1j) if self.other_kind == "c" else flat.real.dtype)
        return whole, with_lazy_bits(storage.strided(elements, self.view.shape, self.view.steps, offset), self.bits[1])

    def _offset(self) -> int:
        """Where the view begins within the base, in its own elements."""
        if self.other_kind is None:
            return self.view.offset - self.base.offset
        return self.view.offset - (self.base.offset // 2 if self.other_kind == "c" else 2 * self.base.offset)

    def _function(self, retain_graph: bool) -> Node:
        """The node of the operation, which may run once unless `keep`."""
        function = self.function
        if function is None:
            raise RuntimeError(FREED_MESSAGE)
        if not retain_graph:
            self.function = None
        return function

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same with tensors."""
        whole = grad.new_empty_strided(self.base.shape, self.base.steps)
        whole.copy_(LATE.lazy_view(grad, self.bits[0]))
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
    """The edges of the operation among those of `CopySlices`: the first is its own, where it has one."""
    return (edges[0] and function.edges[0], *edges[1:])


def _for_function(function: Node, grad: Any) -> Any:
    """The gradient of the view as the node of the operation takes it."""
    return [grad] if type(function.shape) is list else grad


def _span(geometry: Geometry) -> int:
    """How many elements of memory lie between the first and the last."""
    if 0 in geometry.shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(geometry.shape, geometry.steps, strict=True))


def _reduced(array: Any, shape: tuple[int, ...]) -> Any:
    from ..kernels.reduce.reduction import sum_to_shape

    return array if array.shape == shape else sum_to_shape(array, shape)


def rebase_history(tensor: Tensor, node: Node, depth: int, output_nr: int = 0) -> None:
    """Make `node` the history of `tensor`, which the operation of `node` has just changed in place."""
    base = tensor._base
    if base is None:
        point_at(tensor, (node, output_nr))
        return
    point_at(base, (CopySlices(base, tensor, node, depth + 1), 0))
    regenerate(tensor)


def point_at(tensor: Tensor, edge: tuple[Node, int]) -> None:
    """Give `tensor` a new history."""
    old = tensor._edge
    tensor._edge = edge
    leave_hooks(tensor, old)


def leave_hooks(tensor: Tensor, old: Any) -> None:
    """Leave the hooks of `tensor`, whose edge was `old`, with the old node; its `retain_grad` follows it to the new one."""
    if type(old) is tuple and tensor._extra is not None:
        tensor._extra.hooks = None
    if type(old) is tuple and old[0].hooks is not None:
        retained = old[0].hooks.retained
        if old[1] in retained and retained[old[1]]() is tensor:
            node, number = tensor._edge
            own_hooks(node).retained[number] = retained.pop(old[1])
