"""The recorder of the profiler: times of operators, of nodes in backward, and of the user's own sections.

A thread that is being profiled sends its operators through the slow path, which calls the recorder. While no thread is
profiled, the recorder costs nothing.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from numpy import ndarray

from ..aten.schemas import overload_names
from ..kernels.memory.storage import root_of
from ..tape import node as nodes
from ..tape import origin
from ..tape.interpreters import Handler
from ..tensor import Tensor

FUNCTION, BACKWARD, USER = 0, 1, 7
"""The scopes of events, as PyTorch numbers them."""

MEMORY = "[memory]"
"""The name of the event for memory that is released outside of all events."""


WAIT = " (wait)"
"""The suffix of events in which a program waits for a call between processes."""


class Communication:
    """A collective or a message: its group, its bytes, and when it began and was complete.

    `label`: the purpose of the call, such as a bucket of gradients. `ended` is 0 until the call is complete.
    """

    __slots__ = ("ended", "group", "label", "name", "nbytes", "number", "ranks", "started")

    def __init__(self, name: str, group: str, ranks: list[int], number: int, nbytes: int, label: str) -> None:
        self.name, self.group, self.ranks, self.number = name, group, ranks, number
        self.nbytes, self.label = nbytes, label
        self.ended = 0
        self.started = perf_counter_ns()

    def finish(self) -> None:
        """Record that the call is complete."""
        self.ended = perf_counter_ns()


class Event:
    """One event of a profile: its time, its thread, the events that enclose it, and the memory that it allocated.

    `open`: whether the event is a composite function that has not called an operator yet. `communication`: the call
    between processes that the event represents. It runs in parallel to the following events, and encloses none.
    """

    __slots__ = (
        "communication",
        "end",
        "forward_thread",
        "memory",
        "name",
        "open",
        "parent",
        "result_shape",
        "scope",
        "sequence",
        "shapes",
        "stack",
        "start",
        "thread",
    )

    def __init__(self, name: str, scope: int, parent: Event | None) -> None:
        self.name = name
        self.scope = scope
        self.parent = parent
        self.open = False
        self.thread = threading.get_native_id()
        self.forward_thread = 0
        self.sequence = -1
        self.shapes: list[list[int]] = []
        self.result_shape: tuple[int, ...] = ()
        self.stack: list[str] = []
        self.memory = 0
        self.communication: Communication | None = None
        self.end = 0
        self.start = perf_counter_ns()


class Recorder(Handler):
    """The events of one profile, in the order in which they began."""

    def __init__(self, shapes: bool = False, memory: bool = False, stack: bool = False) -> None:
        self.events: list[Event] = []
        self.running: list[Event] = []
        self.shapes, self.memory, self.stack = shapes, memory, stack
        self.shows_programs = not (shapes or memory or stack)
        self.thread = threading.get_native_id()
        self.held: dict[int, weakref.ref[Any]] = {}

    def begin(self, name: str, scope: int = FUNCTION, inputs: Any = ()) -> Event:
        """Begin an event inside the running event."""
        parent = self.running[-1] if self.running else None
        if parent is not None:
            parent.open = False
        event = Event(name, scope, parent)
        if self.shapes:
            event.shapes = [list(getattr(item, "shape", ())) for item in inputs]
        if self.stack:
            event.stack = origin.user_stack(2)
        self.events.append(event)
        self.running.append(event)
        return event

    def finish(self, event: Event) -> None:
        """End an event, and inner events that an exception has left open."""
        if event.end:
            return
        event.end = perf_counter_ns()
        while self.running:
            last = self.running.pop()
            last.end = last.end or event.end
            if last is event:
                return

    @contextmanager
    def program(self) -> Iterator[None]:
        """Let a compiled program run in this context."""
        outer, self.in_program = self.in_program, True
        try:
            yield
        finally:
            self.in_program = outer

    def communicate(self, name: str, call: Communication) -> Communication:
        """Record a call between processes, which runs in parallel to the following events."""
        event = Event(name, FUNCTION, None)
        event.communication, event.start = call, call.started
        self.events.append(event)
        return call

    def close(self) -> None:
        """End the profile. End all open events, including running calls between processes, and stop tracking memory."""
        while self.running:
            self.finish(self.running[-1])
        now = perf_counter_ns()
        for event in self.events:
            if event.communication is not None:
                event.end = event.communication.ended or now
        self.memory = False
        self.held.clear()

    # --- calls --------------------------------------------------------------------------------------------------

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Run the call of an operator as an event."""
        name = f"aten::{call.name}"
        event = self.running[-1] if self.running else None
        around = event is not None and event.open and event.name == name  # the operator is all that the composite does
        if event is None or not around:
            event = self.begin(name, inputs=call.given)
        event.open = False
        before = next(nodes.sequence_numbers)
        try:
            result = proceed()
        finally:
            if not around:
                self.finish(event)
        outputs = _tensors((result,))
        if self.shapes and outputs:
            event.result_shape = outputs[0]._array.shape
        recorded = next((each._edge[0] for each in outputs if type(each._edge) is tuple), None)
        if recorded is not None and recorded._sequence > before:
            event.sequence = recorded._sequence
        if self.memory:
            self.hold(event, [each._array for each in outputs], (call.given, (call.out,)))
        return result

    def function(self, name: str, function: Callable[..., Any], args: Any, names: dict[str, Any]) -> Any:
        """Run `function(*args, **names)`, which is composed of operators, as an event that encloses their events."""
        event = self.running[-1] if self.running else None
        if (
            event is not None and event.open and event.name == f"aten::{name}"
        ):  # a function and the operator that it calls share one name
            return function(*args, **names)
        event = self.begin(f"aten::{name}", inputs=(*args, *names.values()))
        event.open = True
        try:
            result = function(*args, **names)
        finally:
            self.finish(event)
        if self.shapes and type(result) is Tensor:
            event.result_shape = result._array.shape
        if self.memory:
            self.hold(event, [each._array for each in _tensors((result,))], (*args, *names.values()))
        return result

    def custom(self, name: str, function: Callable[..., Any], args: Any) -> Any:
        """Run `function(args)`, the forward of a custom function, as an event. It returns (node, results)."""
        event = self.begin(name, inputs=args)
        try:
            node, results = function(args)
        finally:
            self.finish(event)
        if any(type(each._edge) is tuple and each._edge[0] is node for each in _tensors((results,))):
            event.sequence = node._sequence
        return node, results

    def backward(self, node: Any, function: Callable[..., Any], grad: Any, *args: Any) -> Any:
        """Run `function(node, grad, *args)`, which runs `node`, as an event inside an event of the engine."""
        outer = self.begin(f"autograd::engine::evaluate_function: {node.name()}")
        inner = self.begin(node.name(), BACKWARD, grad if isinstance(grad, list) else (grad,))
        outer.sequence = inner.sequence = -1 if isinstance(node, nodes.AccumulateGrad) else node._sequence
        outer.forward_thread = inner.forward_thread = outer.thread
        if (name := _name_of_gradient(node)) is not None:
            self.begin(f"aten::{name}", inputs=grad if isinstance(grad, list) else (grad,))
        try:
            results = function(node, grad, *args)
        finally:
            self.finish(outer)
        if self.memory and isinstance(results, tuple):
            self.hold(inner, [_array(each) for each in results], (grad,))
        return results

    # --- memory -------------------------------------------------------------------------------------------------

    def hold(self, event: Event, arrays: Any, inputs: Any) -> None:
        """Add to `event` the memory of `arrays` that no input owns, and observe the release of this memory."""
        known = {id(root_of(_array(item))) for item in _flat(inputs) if _array(item) is not None}
        for array in arrays:
            root = None if array is None else root_of(array)
            if type(root) is ndarray and root.nbytes and id(root) not in known and id(root) not in self.held:
                self.held[id(root)] = weakref.ref(root, functools.partial(self.released, id(root), root.nbytes))
                event.memory += root.nbytes

    def released(self, key: int, size: int, reference: object) -> None:
        """Subtract released memory from the running event, or record the release as a separate event."""
        del self.held[key]
        if self.running and self.thread == threading.get_native_id():
            self.running[-1].memory -= size
            return
        event = Event(MEMORY, FUNCTION, None)
        event.end, event.memory = event.start, -size
        self.events.append(event)


def _name_of_gradient(node: Any) -> str | None:
    """Return PyTorch's name of the operator that computes the gradients of a node, such as "convolution_backward", or None."""
    op = getattr(node, "operator", None)
    if op is None:
        return None
    other = {"relu": "threshold_backward", "embedding": "embedding_dense_backward"}.get(op.aten_name)
    candidates = (other or f"{op.aten_name}_backward", f"_{op.aten_name.lstrip('_')}_backward_data")
    return next((name for name in candidates if overload_names(name)), None)


def _flat(values: Any) -> Iterator[Any]:
    """Flatten `values`, including the lists and tuples in it."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in _flat(values) if isinstance(value, Tensor)]


def _array(value: Any) -> Any:
    """Return the array of a tensor, or an array itself, or None for any other value."""
    return value._array if isinstance(value, Tensor) else value if type(value) is ndarray else None
