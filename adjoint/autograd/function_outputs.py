"""The results of `apply` of a custom function. Each output of `forward` becomes one result with its history.

A tensor that `forward` returns may be new, an unchanged argument, an argument that `forward` has changed in place
(`mark_dirty`), a view of an argument, or a tensor that `forward` has already returned. `stand_in` chooses the tensor
that `apply` returns:

| `forward` returns                              | `apply` returns, recording | `apply` returns, not recording         |
|------------------------------------------------|----------------------------|----------------------------------------|
| an argument, marked dirty                      | the argument               | the argument, or an alias if tracked   |
| an argument                                    | a view of it               | a view of it, or an alias if tracked   |
| another tensor, no view, with its own history  | an alias                   | the tensor                             |
| another tensor                                 | the tensor                 | the tensor                             |

If an argument is marked as not differentiable, `stand_in` decides as if nothing were recorded. An alias shares memory
and version counter, but has no history. A view has the history of its base. A tensor that requires grad is tracked.
`Outputs.tie` then gives the chosen tensor its place in the graph.

Missing gradients are filled in before `backward`. The results of `backward` are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._runtime.tracebacks import warn
from ..dispatch.sequential import is_batched
from ..dispatch.steps.wrap import make_view
from ..tape import modes, views
from ..tape.aliases import detached
from ..tape.torch_function import has_override
from ..tape.versions import bump, shared_counter
from ..tensor import Tensor, can_require_grad, is_recorded, make_subclass, wrap
from .function_context import check_saved, check_tuple
from .validate_grad import as_taken

if TYPE_CHECKING:
    from .function import FunctionNode


def is_simple(output: Any, node: Any, args: tuple[Any, ...]) -> bool:
    """Return whether the output is one new tensor that needs only `node` as its history."""
    if type(output) is not Tensor or output._edge is not None or output._base is not None:
        return False
    if node.dirty_tensors or node.non_differentiable or node._is_pure_view or output._array.dtype.kind not in "fc":
        return False
    for arg in args:  # noqa: SIM110  (`all` takes longer than the rest of these questions)
        if arg is output:
            return False
    return True


def tie_outputs(node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> list[Any]:
    """Return the results of `apply` for `outputs`. If `recording`, `node` becomes the history of the tracked results."""
    if recording:
        check_saved(node.to_save)
    if node._is_pure_view and (sum(node._tensor_inputs), len(outputs)) != (1, 1):
        raise RuntimeError(
            "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if you need to "
            "support more."
        )
    constant = marked(node, "non_differentiable", "mark_non_differentiable only accepts variable arguments, but got")
    dirty = marked(node, "dirty_tensors", "mark_dirty can only accept variables, but argument")
    for tensor in dirty:
        views.check_inference(tensor)
        bump(tensor, node.name(), 2)
    node.marked_dirty, node.marked_constant = numbers_of(dirty, outputs), numbers_of(constant, outputs)
    if not node._materialize_non_diff_grads:
        node._constant_outputs = node.marked_constant
    call = Outputs(node, args, outputs, recording)
    returned: dict[int, Tensor] = {}
    tied: list[Any] = []
    for number, output in enumerate(outputs):
        if isinstance(output, Tensor):
            earlier = returned.get(id(output))
            if earlier is None:
                result = call.tie(output, number)
                if result is output or id(output) not in call.given:  # an argument gets a new view or alias each time
                    returned[id(output)] = result
            else:
                result = call.move(earlier, number)
            tied.append(result)
        else:
            tied.append(output)
    check_dirty_are_returned(dirty, outputs)
    node._grad_shape = [each._array.shape if isinstance(each, Tensor) else None for each in tied]
    node._grad_dtype = [each._array.dtype if isinstance(each, Tensor) else None for each in tied]
    return tied


def marked(node: Any, name: str, refusal: str) -> tuple[Tensor, ...]:
    """Return the tensors that `forward` has marked. `refusal` is the error for other objects."""
    values = getattr(node, name)
    if values is None:
        return ()
    check_tuple(name, values)
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{refusal} {type(value).__name__}")
    return tuple(values)


def numbers_of(tensors: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions in `outputs` of the tensors that are also in `tensors`."""
    if not tensors:
        return ()
    return tuple([number for number, output in enumerate(outputs) if any(output is tensor for tensor in tensors)])


def check_dirty_are_returned(dirty: Sequence[Tensor], outputs: list[Any]) -> None:
    """Raise an error unless all tensors that `forward` has marked dirty are among its outputs."""
    for tensor in dirty:
        if not any(tensor is output for output in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )


class Role(NamedTuple):
    """The relation of an output of `forward` to the arguments of the call."""

    is_argument: bool
    is_dirty: bool
    is_constant: bool
    """Whether the tensor is marked as not differentiable."""


class Outputs:
    """The outputs of one call of a custom function. The outputs are connected to the node of the function one by one."""

    __slots__ = ("args", "given", "node", "outputs", "recording", "saved")

    def __init__(self, node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> None:
        self.node = node
        self.args = args
        self.given = set(map(id, args))
        self.outputs = outputs
        self.recording = recording
        self.saved: set[int] = set()
        """The tensors that `setup_context` saves. It cannot save the view that replaces an argument."""
        if node.has_own_context():
            self.saved.update(map(id, (*(node.to_save or ()), *(node.saved_for_forward or ()))))

    def tie(self, output: Tensor, number: int) -> Tensor:
        """Return the result for `output`, with its edge."""
        node = self.node
        role = Role(id(output) in self.given, number in node.marked_dirty, number in node.marked_constant)
        if role.is_dirty and not role.is_constant and self.recording:
            self.check_dirty(output, role)
        # A `vmap` method may return one of its arguments.
        is_saved = id(output) in self.saved and not is_batched(output)
        result = stand_in(output, role, self.recording, is_saved)
        tracked = self.recording and not role.is_constant and can_require_grad(result._array)
        if tracked and role.is_dirty:
            self.rebase(result, number)
        elif tracked:
            self.lead_to_node(result, number)
        elif not role.is_dirty:
            self.leave_untracked(result, role)
        return result

    def check_dirty(self, tensor: Tensor, role: Role) -> None:
        """Raise an error if autograd forbids the in-place change. Warn if `tensor` is neither an argument nor a view."""
        if tensor.requires_grad and not is_recorded(tensor._edge):
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if not role.is_argument:
            if tensor._base is not None:
                raise RuntimeError(DIRTY_OTHER)
            warn(DIRTY_OTHER)
        if tensor._base is not None and len(self.outputs) > 1 and can_require_grad(tensor._array):
            raise RuntimeError(DIRTY_VIEW)
        views.check_history(tensor)

    def rebase(self, changed: Tensor, number: int) -> None:
        """Append the node to the history of an argument that `forward` has changed in place."""
        if changed._base is None:
            changed._grad = None  # PyTorch clears it here, but not for other in-place changes
        else:
            views.check_view_creation(changed)
        views.rebase_history(changed, self.node, 2, number)

    def lead_to_node(self, result: Tensor, number: int) -> None:
        """Make the node the history of a result. A view is marked, so that an in-place change of it raises an error."""
        result._edge = (self.node, number)
        if result._base is not None:
            result._view_version = shared_counter(result)[0]
            result._creation = self.creation()

    def leave_untracked(self, result: Tensor, role: Role) -> None:
        """Leave a result out of the graph, and forbid in-place changes of it if it is a view of an argument."""
        if role.is_constant:
            result._edge = None
        args = [arg for arg in self.args if isinstance(arg, Tensor)] if result._base is not None else ()
        if any(result._base is (arg if arg._base is None else arg._base) for arg in args):
            result._creation = self.creation()

    def creation(self) -> str | None:
        """Return the mark of a view, which decides whether the view may be changed in place."""
        if self.node._is_pure_view:
            return None
        constant = self.node.marked_constant
        differentiable = [
            number not in constant and isinstance(output, Tensor) and can_require_grad(output._array)
            for number, output in enumerate(self.outputs)
        ]
        return views.MULTI_OUTPUT if sum(differentiable) > 1 else views.CUSTOM

    def move(self, earlier: Tensor, number: int) -> Tensor:
        """Handle a tensor that is returned more than once. The outputs become one tensor, with the edge of the last output."""
        if type(earlier._edge) is tuple and earlier._edge[0] is self.node:
            earlier._edge = (self.node, number)
        return earlier


def stand_in(output: Tensor, role: Role, recording: bool, is_saved: bool) -> Tensor:
    """Return the result of `apply` for `output`: the output itself, or another tensor on its memory with another history."""
    if role.is_dirty or role.is_argument:
        is_alias = (role.is_constant or not recording) and output.requires_grad
        if not role.is_dirty and not is_alias:
            if is_saved:
                raise RuntimeError(SAVED_ARGUMENT)
            return viewed(output)
    else:
        is_alias = recording and output._base is None and type(output._edge) is tuple
    return detached(output, shared_counter(output)) if is_alias else output


def viewed(tensor: Tensor) -> Tensor:
    """Return a view of the whole `tensor`."""
    if hasattr(tensor, "without_history"):  # a batched tensor of `vmap`
        view = tensor.without_history()
    else:
        view = make_subclass(type(tensor) if has_override(tensor) else Tensor, tensor._array.view())
    make_view(view, tensor, True, None)
    return view


SAVED_ARGUMENT = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
    "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
    "forward function itself."
)
DIRTY_OTHER = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to "
    "ctx.mark_dirty()."
)
DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
    "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one "
    "doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the "
    "forum https://discuss.pytorch.org/ if you need help to do this change."
)


def materialized(node: FunctionNode, grads: list[Any]) -> list[Any]:
    """Replace None among the gradients by zeros."""
    absent = () if node._materialize_non_diff_grads else node._constant_outputs
    completed = list(grads)
    several = type(node._grad_shape) is list
    shapes, dtypes = (node._grad_shape, node._grad_dtype) if several else ([node._grad_shape], [node._grad_dtype])
    for number, (grad, shape, dtype) in enumerate(zip(grads, shapes, dtypes, strict=True)):
        if grad is None and shape is not None and number not in absent:
            completed[number] = wrap(numpy.zeros(shape, dtype))
            if modes.STATE.capture is not None:
                modes.STATE.capture.constant(completed[number]._array)
    return completed


def checked_grads(node: FunctionNode, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the gradients of the tensor arguments, and return one for each edge."""
    if len(results) != len(node._tensor_inputs):
        results = counted(node, results)
    checked: list[Tensor | None] = []
    position = 0
    for result, is_tensor in zip(results, node._tensor_inputs):  # noqa: B905  (of equal length)
        position += 1  # noqa: SIM113
        if is_tensor:
            if result is not None:
                if not isinstance(result, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                if result._array.dtype.kind in "cW":
                    result = taken(result, node._edges[len(checked)], node)
            checked.append(result)
        elif result is not None:
            raise RuntimeError(
                f"function {node.name()} returned a gradient different than None at position {position}, but the "
                "corresponding forward input was not a Variable"
            )
    return tuple(checked)


def counted(node: FunctionNode, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check that there is one gradient for each argument. Additional gradients must be None."""
    expected = len(node._tensor_inputs)
    if len(results) < expected or any(result is not None for result in results[expected:]):
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
        )
    return results[:expected]


def taken(grad: Tensor, edge: Any, node: FunctionNode) -> Tensor:
    """Convert a complex gradient to the form that its receiver, which must be complex, expects."""
    if edge is None:
        return grad
    result: Tensor = as_taken(grad, edge, node)
    if result._array.dtype.kind not in "cW":
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false."
        )
    return result


def check_unwanted(node: FunctionNode, results: tuple[Any, ...], edges: Any) -> None:
    """Raise an error if an unneeded gradient does not fit its input, as the engine does for needed gradients."""
    for result, edge, wanted in zip(results, node._edges, edges, strict=True):
        if result is not None and edge is not None and wanted is None:
            as_taken(result, edge, node)
