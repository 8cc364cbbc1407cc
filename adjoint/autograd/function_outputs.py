"""What `apply` of a custom function returns for each output of `forward`, and which history that tensor has.

A tensor that `forward` returns may be new, an argument as it was given, an argument that `forward` has changed in place
(`mark_dirty`), a view of an argument, or a tensor that it has returned already. `stand_in` chooses what `apply` returns:

| `forward` returns                              | `apply` returns, recording | `apply` returns, not recording         |
|------------------------------------------------|----------------------------|----------------------------------------|
| an argument, marked dirty                      | the argument               | the argument, or an alias if it is     |
|                                                |                            | tracked                                |
| an argument, marked as not differentiable      | an alias                   | a view of it, or an alias if tracked   |
| an argument                                    | a view of it               | a view of it, or an alias if tracked   |
| another tensor, no view, with its own history  | an alias                   | the tensor                             |
| another tensor                                 | the tensor                 | the tensor                             |

An alias shares memory and version counter, but has no history; a view has the history of its base. A tensor that requires
grad is tracked. Then `Outputs.tie` gives that tensor its place in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..tape import views
from ..tape.aliases import detached
from ..tape.inference_tensors import mark_inference
from ..tape.torch_function import has_override
from ..tape.versions import bump, shared_counter
from ..tensor import Tensor, can_require_grad, is_recorded, make_subclass


def is_simple(output: Any, node: Any, args: tuple[Any, ...]) -> bool:
    """Whether the output is one new tensor, of which there is nothing to be seen to but that `node` becomes its history."""
    if type(output) is not Tensor or output._edge is not None or output._base is not None:
        return False
    if node.dirty_tensors or node.non_differentiable or output._array.dtype.kind not in "fc":
        return False
    for arg in args:  # noqa: SIM110  (`all` takes longer than the rest of these questions)
        if arg is output:
            return False
    return True


def tie_outputs(node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> list[Any]:
    """What `apply` returns for each of `outputs`; if it is `recording`, `node` is the history of those that are tracked."""
    check_dirty_are_returned(node.dirty_tensors, outputs)
    node.marked_dirty = numbers_of(node.dirty_tensors, outputs)
    node.marked_constant = numbers_of(node.non_differentiable, outputs)
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
                if result is output or id(output) not in call.given:  # an argument gets another view or alias each time
                    returned[id(output)] = result
            else:
                result = call.move(earlier, number)
            tied.append(result)
        else:
            tied.append(output)
    node.shape = [each._array.shape if isinstance(each, Tensor) else None for each in tied]
    node.dtype = [each._array.dtype if isinstance(each, Tensor) else None for each in tied]
    return tied


def numbers_of(tensors: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, ...]:
    """Which of `outputs` are among `tensors`."""
    if not tensors:
        return ()
    return tuple([number for number, output in enumerate(outputs) if any(output is tensor for tensor in tensors)])


def check_dirty_are_returned(dirty: Sequence[Tensor], outputs: list[Any]) -> None:
    """Raise unless all tensors that `forward` has marked dirty are among its outputs."""
    for tensor in dirty:
        if not any(tensor is output for output in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )


class Role(NamedTuple):
    """What a tensor that `forward` has returned is to the call."""

    is_argument: bool
    is_dirty: bool
    is_constant: bool
    """Marked as not differentiable."""


class Outputs:
    """The outputs of one call of a custom function, which are tied to its node one after the other."""

    __slots__ = ("args", "given", "node", "outputs", "recording")

    def __init__(self, node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> None:
        self.node = node
        self.args = args
        self.given = set(map(id, args))
        self.outputs = outputs
        self.recording = recording

    def tie(self, output: Tensor, number: int) -> Tensor:
        """The tensor that is returned for `output`, with its place in the graph."""
        node = self.node
        role = Role(id(output) in self.given, number in node.marked_dirty, number in node.marked_constant)
        if role.is_dirty:
            bump(output, node.name(), 2)
            if self.recording:
                check_dirty(output)
        result = stand_in(output, role, self.recording)
        tracked = self.recording and not role.is_constant and can_require_grad(result._array)
        if tracked and role.is_dirty:
            self.rebase(result, number)
        elif tracked:
            self.lead_to_node(result, number)
        elif not role.is_dirty:
            self.leave_untracked(result, role)
        return result

    def rebase(self, changed: Tensor, number: int) -> None:
        """Let the history of an argument that `forward` has changed in place go on with the node."""
        if changed._base is None:
            changed._grad = None  # as PyTorch has it here, but not in other changes
        elif self.are_several():
            raise RuntimeError(DIRTY_VIEW)
        else:
            views.check_view_creation(changed, True)
        views.rebase_history(changed, self.node, 2, number)

    def lead_to_node(self, result: Tensor, number: int) -> None:
        """Make the node the history of a result; a view of an argument may not be changed in place, which would replace it."""
        result._edge = (self.node, number)
        if result._base is not None:
            result._view_version = shared_counter(result)[0]
            if self.shows_argument(result):
                result._creation = views.MULTI_OUTPUT if self.are_several() else views.CUSTOM

    def leave_untracked(self, result: Tensor, role: Role) -> None:
        """Leave a result out of the graph; a view of an argument may not be changed in place."""
        if role.is_constant:
            result._edge = None
        if result._base is not None and not is_recorded(result._edge) and self.shows_argument(result):
            result._creation = views.CUSTOM

    def are_several(self) -> bool:
        """Whether more than one of the outputs is a tensor."""
        return len(self.outputs) > 1 and sum(isinstance(output, Tensor) for output in self.outputs) > 1

    def shows_argument(self, view: Tensor) -> bool:
        """Whether `view` is a view of an argument, or of the base of one."""
        args = [arg for arg in self.args if isinstance(arg, Tensor)]
        return any(view._base is (arg if arg._base is None else arg._base) for arg in args)

    def move(self, earlier: Tensor, number: int) -> Tensor:
        """A tensor that is returned once more: it stays one tensor, and the last of its places in the graph counts."""
        if type(earlier._edge) is tuple and earlier._edge[0] is self.node:
            earlier._edge = (self.node, number)
        return earlier


def stand_in(output: Tensor, role: Role, recording: bool) -> Tensor:
    """What `apply` returns for `output`: itself, or another tensor on its memory, which may have another history."""
    if role.is_dirty:
        is_alias = not recording and output.requires_grad
    elif role.is_argument:
        is_alias = role.is_constant if recording else output.requires_grad
        if not is_alias:
            return viewed(output)
    else:
        is_alias = recording and output._base is None and type(output._edge) is tuple
    return detached(output, shared_counter(output)) if is_alias else output


def viewed(tensor: Tensor) -> Tensor:
    """A view of the whole of `tensor`."""
    if hasattr(tensor, "without_history"):  # `vmap` has a batch of it
        view = tensor.without_history()
    else:
        view = make_subclass(type(tensor) if has_override(tensor) else Tensor, tensor._array.view())
    if tensor.is_inference():
        mark_inference(view)
        return view
    view._base = tensor if tensor._base is None else tensor._base
    view._counter = shared_counter(tensor)
    view._view_version = view._counter[0]
    view._creation = None
    return view


def check_dirty(tensor: Tensor) -> None:
    """Raise if autograd does not allow `tensor` to have been changed in place."""
    if tensor.requires_grad and not is_recorded(tensor._edge):
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    views.check_history(tensor)


DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
    "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one "
    "doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the "
    "forum https://discuss.pytorch.org/ if you need help to do this change."
)
