"""Reporting each operator and each backward node of a thread to an observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

from .._runtime.uninterrupted import uninterrupted
from .._runtime.weak_keys import WeakKeys
from ..dispatch.arguments import MISSING
from ..dispatch.declaration import Operator
from ..tape import modes
from ..tape.interpreters import innermost
from ..tensor import Tensor
from .recorder import Recorder


class Observer(Protocol):
    """The receiver of the reports."""

    def forward(self, name: str, inputs: tuple[Any, ...], result: Any, place: frozenset[str]) -> None:
        """Report an operator that has run in forward or in a recorded backward."""

    def backward(
        self, name: str, inputs: tuple[Any, ...], result: Any, needed: tuple[bool, ...], place: frozenset[str]
    ) -> None:
        """Report that the node of an operator has run.

        `inputs` are the inputs of the operator, and `result` is its first result, with shapes in place of tensors.
        `needed` tells which tensors need gradients.
        """

    def place(self) -> frozenset[str]:
        """Return the names of the enclosing parts of the program.

        A node stores these names. The report of the node contains the names.
        """


class OperatorCalls:
    """A context in which an observer receives the operators of this thread.

    Operators take the slow path inside the context. Without such a context, the reports cost nothing.

    Args:
        observer: an object with the methods `forward`, `backward` and `place` of `Observer`.

    Raises:
        RuntimeError: if this thread is being profiled, or is in another such context.

    >>> import adjoint as torch
    >>> class Printer:
    ...     def place(self):
    ...         return frozenset()
    ...     def forward(self, name, inputs, result, place):
    ...         print("forward", name, tuple(result.shape))
    ...     def backward(self, name, inputs, result, needed, place):
    ...         print("backward", name, inputs, result, needed)
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.profiler.OperatorCalls(Printer()):
    ...     x.exp().sum().backward()
    forward exp (3,)
    forward sum ()
    backward sum (torch.Size([3]),) torch.Size([]) (True,)
    backward exp (torch.Size([3]),) torch.Size([3]) (True,)
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.recorder: _CallReporter | None = None

    def __enter__(self) -> Self:
        if modes.STATE.recorder is not None:
            raise RuntimeError("A profiler, or another counter of operators, is already enabled on this thread")
        self.recorder = _CallReporter(self.observer)
        modes.put({"recorder": self.recorder})
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        if self.recorder is not None:
            modes.put({"recorder": None})
            self.recorder = None


_ONE = ("alpha", "beta")
"""Parameters with the default 1 in every operator."""


def _given(op: Operator, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an operator without trailing default values, as PyTorch passes them on."""
    for name, value in reversed(list(zip(op.names, inputs, strict=False))):
        default = 1 if name in _ONE else op.defaults.get(name, MISSING)
        if isinstance(value, Tensor) or type(value) is not type(default) or value != default:
            break
        inputs = inputs[:-1]
    return inputs


class _CallReporter(Recorder):
    """A handler that takes the place of the profiler's recorder."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer
        self.nodes: WeakKeys[Any, tuple[str, tuple[Any, ...], Any, frozenset[str]]] = WeakKeys()
        self.places: list[frozenset[str]] = []  # the places of the running nodes

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        if innermost(call.tensors()) is not None:  # the operators that the interpreter calls are reported
            return proceed()
        result, name = proceed(), call.name
        place = self.observer.place() | (self.places[-1] if self.places else frozenset())
        inputs = _given(call.op, call.given)
        self.observer.forward(name, inputs, result, place)
        first = result[0] if isinstance(result, tuple) and result else result
        edge = getattr(first, "_edge", None)
        if type(edge) is tuple:
            shapes = tuple(getattr(item, "shape", item) for item in inputs)
            self.nodes[edge[0]] = name, shapes, first.shape, place
        return result

    def function(self, name: str, function: Callable[..., Any], args: Any, names: dict[str, Any]) -> Any:
        return function(*args, **names)

    def custom(self, name: str, function: Callable[..., Any], args: Any) -> Any:
        return function(args)

    def backward(self, node: Any, function: Callable[..., Any], grad: Any, *args: Any) -> Any:
        name, shapes, shape, place = self.nodes.get(node, ("", (), None, self.observer.place()))
        self.places.append(place)
        try:
            results = function(node, grad, *args)
        finally:
            self.places.pop()
        if name:
            _, create_graph, edges = args
            if not create_graph:  # otherwise the operators of its formula are reported
                self.observer.backward(name, shapes, shape, tuple(edge is not None for edge in edges), place)
        return results
