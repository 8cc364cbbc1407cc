"""The interpreter stack of a thread, as in functorch: forward mode and batching, with the innermost last.

An interpreter is entered for the duration of a transform. It wraps the tensors that carry its data: a tangent in
forward mode, a batch dimension in batching. An operator with wrapped arguments is processed by the innermost
interpreter that wraps one of them. That interpreter computes with operators again, with only the outer interpreters on
the stack. Interpreters therefore compose to any depth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .._runtime.uninterrupted import uninterrupted
from ..tensor import LEAF, Tensor, can_require_grad
from . import modes


class Handler:
    """An object that receives the operator calls of a thread while it is in `slow_path.handlers_of_thread`.

    A call passes through the handlers one by one. Then the operator computes. A call is a `dispatch.plan.Call`. It
    contains the operator (`op`), how it is called (`way`: for a new result, with `out`, in place), and its arguments
    (`given`). `shows_programs`: whether the handler is a profile that records the instructions of compiled programs.
    `in_program`: whether such a program runs.
    """

    shows_programs = in_program = False

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Return the result of the call. Most handlers call `proceed()`, which runs the handlers after this one."""
        raise NotImplementedError


class Interpreter(Handler):
    """The base class of interpreters.

    `outside`: the previous stack of the thread that entered this interpreter. `is_mode`: whether it overrides all
    operators for the user, regardless of their arguments. `process(call)`: apply the operator. This interpreter wraps some
    of the arguments, and no inner interpreter wraps any. `process_inplace(operator, args)`: apply the in-place variant.
    `process_inplace_view(operator, args)`: apply an operator that turns its first argument into another view.
    `apply_function(function, args)`: apply a custom `Function`, like `function.apply`.
    """

    outside: tuple[Interpreter, ...] | None
    process: Callable[[Any], Any]
    process_inplace: Callable[[Any, tuple[Any, ...]], Tensor]
    process_inplace_view: Callable[[Any, tuple[Any, ...]], Tensor]
    apply_function: Callable[[Any, tuple[Any, ...]], Any]
    is_mode = False

    @uninterrupted
    def enter(self) -> None:
        """Make this the innermost interpreter of the thread."""
        self.outside = modes.STATE.stack
        modes.put({"stack": (*modes.STATE.interpreters, self)})

    @uninterrupted
    def leave(self) -> None:
        """Leave this interpreter and all interpreters that were entered after it."""
        modes.put({"stack": self.outside})

    def resumed(self) -> AbstractContextManager[None]:
        """A context that puts this interpreter back on the stack after the interpreter has been left."""
        return nullcontext()

    def wraps(self, tensor: Tensor) -> bool:
        """Return whether this interpreter wraps `tensor`."""
        raise NotImplementedError

    def forget(self, tensor: Tensor) -> None:
        """Remove from `tensor` the data that this interpreter differentiates."""

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Apply the operator to the wrapped values, if this interpreter wraps a tensor of the call. No inner one does."""
        if not any(map(self.wraps, call.tensors())):
            return proceed()
        return self.changed(call) if call.in_place else self.process(call)

    def changed(self, call: Any) -> Tensor:
        """Change the wrapped value of the first argument."""
        with modes.switched(transforms=()):  # the change has been checked as a whole
            return (self.process_inplace if call.way == "_" else self.process_inplace_view)(call.op, call.given)


class Transform:
    """A function transform while its function runs.

    `number`: the nesting depth, counted from 1. `serial`: a number that no other transform has, or 0 before the
    transform begins. `begun_in_inference`: whether the transform was called in inference mode. `begun_recording`:
    whether it was called while operators were recorded. `arguments`: the tensors that the function received. If
    `refuses_captured` is set, the function may change its arguments in place, but no other tensor that existed before.
    `notes_creation`: whether this or an outer transform records which tensors the function has created.
    `is_asked`: whether operators report changed and created tensors to this or an outer transform.
    `records`: whether it records a graph for derivatives. `recorded_batches`: the batching interpreters outside of the
    innermost such transform. Tensors that the function creates may get a history within these interpreters.
    """

    number: int
    before: dict[str, Any]
    is_asked: bool
    recorded_batches: tuple[Interpreter, ...] = ()
    records = False
    serial: int = 0
    begun_in_inference: bool
    begun_recording: bool = True
    refuses_captured = False
    notes_creation = True
    arguments: Sequence[Tensor] = ()

    def begin(self, **others: Any) -> None:
        """Begin the transform, before the function starts, in these other modes. An interpreter becomes the innermost."""
        here = modes.STATE.__dict__
        outer, interpreters = here["transforms"], here["stack"]
        if interpreters is None:
            interpreters = modes.FLAGS.levels
        self.number = len(outer) + 1
        self.begun_in_inference = here["inference"]
        self.begun_recording = here["grad_enabled"] and not here["inference"]
        self.serial = next(_serials)
        if isinstance(self, Interpreter):
            others["stack"] = (*interpreters, self)
        if self.records:
            self.recorded_batches = tuple([level for level in interpreters if hasattr(level, "shared_by_all")])
        elif outer:
            self.recorded_batches = outer[-1].recorded_batches
        # An interpreter sets the flag itself, for the operators whose arguments it wraps.
        self.is_asked = not isinstance(self, Interpreter) or (outer != () and outer[-1].is_asked)
        self.notes_creation = type(self).notes_creation or (outer != () and outer[-1].notes_creation)
        self.before = modes.exchange(others | {"transforms": (*outer, self)})

    @uninterrupted
    def end(self) -> None:
        """End the transform, when the function has returned or raised, and restore the modes outside."""
        modes.put(self.before)

    def has_created(self, tensor: Tensor) -> bool:
        """Return whether the function has created `tensor`, or the tensor whose view or alias it is."""
        counter = tensor._counter
        return type(counter) is CreationCounter and counter.created_in >= self.serial

    def owns(self, tensor: Tensor) -> bool:
        """Return whether the function has created `tensor`, or received it as an argument."""
        if self.has_created(tensor):
            return True
        counter = tensor._counter
        return any(tensor is own or (counter is not None and own._counter is counter) for own in self.arguments)


_serials = itertools.count(1)


class _Stepwise(Handler):
    """A handler under which calls run the steps of their plans, which check the modes of a thread."""

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Run a call that changes a tensor, or creates views, without straight-line code."""
        call.stepwise = call.stepwise or call.way != "" or call.op.view
        return proceed()


modes.FLAGS.stepwise = _Stepwise()


class CreationCounter(list[Any]):
    """The version counter of a tensor that was created in a function transform, with the `serial` of the transform."""

    __slots__ = ("created_in",)

    created_in: int


def note_creation(tensor: Tensor, source: Tensor | None = None) -> None:
    """Record in which transform a new tensor was created. `source`: a tensor whose memory it shares."""
    transforms = modes.STATE.transforms
    if not transforms or not transforms[-1].notes_creation or (tensor._counter is not None and source is None):
        return
    created_in = transforms[-1].serial
    if source is not None:
        tensor._counter = None
        if not transforms[-1].owns(source):
            return
        created_in = source._counter.created_in if type(source._counter) is CreationCounter else created_in
    tensor._counter = counter = CreationCounter((0, None))
    counter.created_in = created_in


def note_created(results: Any, saved: Sequence[str] = ()) -> Any:
    """Call `note_creation` on the results of an operator, and return them. `saved`: the results that the node saves."""
    transforms = modes.STATE.transforms
    if not transforms or not transforms[-1].notes_creation:
        return results
    several = isinstance(results, (tuple, list))
    for result in results if several else (results,):
        if isinstance(result, Tensor):
            note_creation(result)
            if saved:
                _note_saved(result, saved, transforms[-1].serial)
    if not transforms[-1].recorded_batches:
        return results
    seen = [
        within_batches(result) if type(result) is Tensor else result for result in (results if several else (results,))
    ]
    if not several:
        return seen[0]
    return type(results)(*seen) if hasattr(results, "_fields") else type(results)(seen)


def _note_saved(result: Tensor, saved: Sequence[str], serial: int) -> None:
    """Record the transform that has created a saved result. The new node counts the changes of the result."""
    if type(result._counter) is not list or type(result._edge) is not tuple:
        return
    node, counter = result._edge[0], result._counter
    for item in saved:
        if getattr(node, f"counter_{item}", None) is counter:
            result._counter = noted = CreationCounter(counter)
            noted.created_in = serial
            setattr(node, f"counter_{item}", noted)


def within_batches(tensor: Tensor) -> Tensor:
    """Return a created tensor as a transform that records within batches sees it, and any other tensor unchanged."""
    transforms = modes.STATE.transforms
    if (
        not transforms
        or not transforms[-1].recorded_batches
        or tensor._base is not None
        or tensor._edge is LEAF
        or type(tensor._counter) is not CreationCounter
        or not can_require_grad(tensor._array)
    ):
        return tensor
    seen: Any = tensor
    level: Any
    for level in transforms[-1].recorded_batches:
        if level in modes.STATE.interpreters:
            seen = level.shared_by_all(seen)
            seen._counter.created_in = tensor._counter.created_in
    return seen


def check_owned(tensor: Tensor, name: Callable[[], str], check: Callable[[], None] = lambda: None) -> None:
    """Raise an error if a transformed function changes a captured tensor in place, which it neither created nor received.

    `name` returns PyTorch's name of the operation. `check` runs before the checks of the outer transforms.
    """
    transforms = modes.STATE.transforms
    for transform in reversed(transforms):
        if getattr(tensor, "level", None) is transform:
            tensor = tensor.value  # type: ignore[attr-defined]
        if transform.refuses_captured and not transform.owns(tensor):
            if transform is not transforms[-1]:
                check()
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                f"(aten::{name()}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
                "transformed to explicitly accept the mutated Tensor(s) as inputs."
            )


def check_data_set(tensor: Tensor) -> None:
    """Raise an error if a transformed function sets the data of a tensor that it created or received."""
    if any(transform.refuses_captured and transform.owns(tensor) for transform in modes.STATE.transforms):
        raise RuntimeError("mutating directly with `.data` inside functorch transform is not allowed.")


def lower(level: Interpreter) -> modes.switched:
    """Return a context in which only the interpreters outside `level` are active."""
    stack, interpreters = modes.STATE.stack, modes.STATE.interpreters
    return modes.switched(stack=interpreters[: interpreters.index(level)] if level in interpreters else stack)


def is_recorded(tensor: Tensor) -> bool:
    """Return whether operations on `tensor`, or on the batch that it represents, are recorded."""
    return tensor.requires_grad or (hasattr(tensor, "level") and is_recorded(tensor.value))  # type: ignore[attr-defined]


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among arguments, including tensors in sequences."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            if hasattr(value, "tensors"):  # the indices of an index
                found += [item for item, _ in value.tensors]
            else:
                found += [item for item in value if isinstance(item, Tensor)]
    return found


def mapped(function: Callable[[Tensor], Any], values: Iterable[Any]) -> list[Any]:
    """Return arguments with `function` applied to each tensor, including tensors in sequences."""
    return [
        function(value)
        if isinstance(value, Tensor)
        else mapped(function, value)
        if type(value) in (list, tuple) and any(isinstance(each, Tensor) for each in value)
        else value
        for value in values
    ]


def innermost(values: Iterable[Any]) -> Interpreter | None:
    """Return the innermost interpreter that wraps one of the tensors among `values`, or None."""
    tensors = tensors_in(values)
    for level in reversed(modes.STATE.interpreters):
        wraps = level.wraps
        for tensor in tensors:
            if wraps(tensor):
                return level
    return None
