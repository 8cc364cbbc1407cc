"""In-place changes of a tensor: the values that a change saves, its count, and the node that it adds to the history."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...kernels.memory.copying import clone
from ...kernels.runtime.lazy_conj import materialize
from ...kernels.runtime.meta_array import Meta
from ...kernels.runtime.sparse_array import SparseArray
from ...tape import modes, views
from ...tape.aliases import detached
from ...tape.anomaly import note_operation
from ...tape.node import Node, own_hooks
from ...tape.packing import pack_saved
from ...tape.refusals import count_change
from ...tape.saved import save_input
from ...tape.versions import about_to_change, shared_counter
from ...tensor import Tensor, can_require_grad, is_recorded, wrap
from ..array_functions import computed
from ..declaration import Operator
from ..plan import IN_PLACE, Call
from .promote import with_constants
from .record import find_edges


def record_change(call: Call, change: Callable[[], object], on_tensors: bool = False) -> None:
    """Run `change`, which changes the first argument in place, and append its node to the history of the tensor."""
    op, args = call.op, call.args
    if args is call.given and call.recording:  # an interpreter has computed the change
        args = call.args = with_constants(op, args)
    target: Tensor = args[0]
    array = target._array
    recording = call.recording and (array.dtype.kind == "f" or can_require_grad(array))  # integers have no gradient
    node: Any = None
    if recording:
        node = op.code.saving.started(call, op.inplace_node_name, on_tensors, target, 6)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, ())
    about_to_change(target)
    given = (
        before_change([args[each] for each in op.tensor_positions], target, recording)
        if modes.ANOMALY.enabled
        else None
    )
    count_change(target, f"{op.function_name}_", change, depth=5)
    if recording:
        node._grad_shape, node._grad_dtype = target._array.shape, target._array.dtype
        if op.saved_results:
            op.code.saving.results(node, (target,))
        views.rebase_history(target, node, 5)
        if modes.STATE.saved_tensor_hooks:
            pack_saved(node, [target])  # a hook that raises leaves the history of the changed tensor behind
        if target._base is not None and op.saved_results and is_recorded(target._edge):
            # A saved result has the history of the view, which contains `node`.
            own_hooks(node).of_view = weakref.ref(target._edge[0])
    if given is not None:
        note_operation(f"{op.function_name}_", *given, recording)


def check_change(op: Operator, call: Call) -> None:
    """Raise an error if the first argument of a call must not be changed in place. Find the edges of the arguments."""
    target: Tensor = call.args[0]
    if modes.is_recording():
        views.check_history(target)
    find_edges(op, call)
    recorded = call.way == IN_PLACE and call.recording
    if target._base is not None and (recorded or target._base.requires_grad):
        views.check_view_creation(target)
    views.check_inference(target)


def before_change(operands: list[Any], target: Tensor, recording: bool) -> tuple[list[Any], list[Tensor]]:
    """Return the operands, the base of a view, and the target before an in-place change."""
    changed = [target] if target._base is None else [target, target._base]
    copies = {id(tensor): detached_copy(tensor) for tensor in changed}
    for copy in () if recording else copies.values():
        copy._edge = None
    return [copies.get(id(value), value) for value in (*operands, *changed[1:])], changed


def save_operand(node: Node, item: str, tensor: Any, changed: Tensor | None, is_target: bool) -> None:
    """Save an input or several. If it is about to be `changed`, save a copy of the target, or an alias of another operand."""
    if isinstance(tensor, (list, tuple)):
        setattr(node, f"saved_{item}", list(tensor))
        setattr(node, f"version_{item}", 0)
        return
    if changed is not None and tensor is changed:
        if is_target:
            tensor = detached_copy(changed)
        else:
            tensor = detached(changed, shared_counter(changed))
            tensor._edge = changed._edge
            tensor._own_extra().stands_for = weakref.ref(changed)
    save_input(node, item, tensor)


def copied(array: Any) -> Any:
    """Return a copy of an array, with the same layout."""
    return clone(materialize(array))


def detached_copy(tensor: Tensor) -> Tensor:
    """Return the value of a tensor before an in-place change, with its history and its tangents."""
    of_batch = getattr(tensor, "without_history", None)
    array: Any = tensor._array
    if of_batch is not None:
        copy: Any = of_batch(copy=True)
    else:
        copy = wrap(array.copy()) if type(array) in (SparseArray, Meta) else computed(copied, tensor)
    copy._edge = tensor._edge
    if tensor._extra is not None and tensor._extra.tangents is not None:
        for level, tangent in tensor._extra.tangents.items():
            if tangent is not None:
                level.attach(copy, tangent.clone())
    return copy
