"""Recording what runs, for the profiler: operators, nodes in backward, and the user's own sections, with their times.

A thread that is being profiled sends its operators through the general path, which asks its recorder to run them. Nothing
of this costs anything while nobody profiles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from ..tensor import Tensor
from . import node as nodes
from . import origin

FUNCTION, BACKWARD, USER = 0, 1, 7
"""The scopes of events, as PyTorch numbers them."""


class Event:
    """Something that ran: when, in which thread, within what, and how much memory its results took."""

    __slots__ = (
        "end",
        "forward_thread",
        "memory",
        "name",
        "parent",
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
        self.thread = threading.get_native_id()
        self.forward_thread = 0
        self.sequence = -1
        self.shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.memory = 0
        self.end = 0
        self.start = perf_counter_ns()


class Recorder:
    """The events of one profile, in the order in which they began."""

    def __init__(self, shapes: bool = False, memory: bool = False, stack: bool = False) -> None:
        self.events: list[Event] = []
        self.running: list[Event] = []
        self.told = False
        self.shapes, self.memory, self.stack = shapes, memory, stack

    def begin(self, name: str, scope: int = FUNCTION, inputs: Any = ()) -> Event:
        """Note that something begins, within what is running."""
        event = Event(name, scope, self.running[-1] if self.running else None)
        if self.shapes:
            event.shapes = [list(getattr(item, "shape", ())) for item in inputs]
        if self.stack:
            frame = origin.user_frame(2)
            event.stack = [origin.describe(frame.f_code, frame.f_lasti)]
        self.events.append(event)
        self.running.append(event)
        return event

    def finish(self, event: Event) -> None:
        """Note that it has ended; what began within it and was left by an exception, too."""
        event.end = perf_counter_ns()
        while self.running:
            last = self.running.pop()
            last.end = last.end or event.end
            if last is event:
                return

    def asks(self) -> bool:
        """Whether an operator that is about to run is to be run by `operation`, which has not just called it."""
        self.told = not self.told
        return self.told

    def operation(self, name: str, function: Callable[..., Any], inputs: Any, *args: Any, **names: Any) -> Any:
        """`function(*args)`, which is operator `name` on `inputs`, as an event."""
        event = self.begin(f"aten::{name}", inputs=inputs)
        before = nodes.next_sequence()
        try:
            result = function(*args, **names)
        finally:
            self.finish(event)
        outputs = [item for item in (result if isinstance(result, tuple) else (result,)) if isinstance(item, Tensor)]
        recorded = next((each._edge[0] for each in outputs if type(each._edge) is tuple), None)
        if recorded is not None and recorded.sequence > before:
            event.sequence = recorded.sequence
        if self.memory and not any(item is output for item in inputs for output in outputs):
            event.memory = sum(output._array.nbytes for output in outputs if output._base is None)
        return result

    def backward(self, node: Any, function: Callable[..., Any], grad: Any, *args: Any) -> Any:
        """`function(node, grad, *args)`, which runs `node`, as an event within one of the engine's."""
        outer = self.begin(f"autograd::engine::evaluate_function: {node.name()}", BACKWARD)
        inner = self.begin(node.name(), BACKWARD, grad if isinstance(grad, list) else (grad,))
        outer.sequence = inner.sequence = -1 if isinstance(node, nodes.AccumulateGrad) else node.sequence
        outer.forward_thread = inner.forward_thread = outer.thread
        try:
            results = function(node, grad, *args)
        finally:
            self.finish(outer)
        if self.memory and isinstance(results, tuple):
            inner.memory = sum(each.nbytes for each in results if each is not None)
        return results
