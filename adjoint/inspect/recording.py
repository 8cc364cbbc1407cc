"""`recording` stores the values of intermediate tensors for pictures.

A recorder takes the place of the profiler's recorder. While a recorder is set, operators and the engine run through it.
Nothing is registered on nodes or tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

import numpy

from .._runtime.uninterrupted import uninterrupted
from .._runtime.weak_keys import WeakKeys
from ..codegen.observed_kernels import KERNELS
from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.meta_array import Unread
from ..tape import modes
from ..tape.interpreters import Handler
from ..tape.node import Node
from ..tensor import Tensor

MOST_ELEMENTS = 1000
"""Larger tensors are not stored."""

_kept: WeakKeys[Node, dict[int | str, Any]] = WeakKeys()
"""The arrays of outputs by their numbers, and the arrays of operands outside the graph by their names."""


def recording() -> watching:
    """A context manager that stores the values of small tensors (at most 1000 elements) of this thread for pictures.

    A graph stores only the values that its derivatives need. Without `recording`, a picture therefore shows the values
    of only some intermediate tensors. The values are released with the graph. The context also records the names of
    compiled kernels and the time of each operation.

    >>> import adjoint as torch
    >>> w = torch.tensor(3.0, requires_grad=True)
    >>> with torch.inspect.recording():
    ...     y = (w * 2.0 + 1.0).exp()
    >>> [tensor.data for tensor in torch.inspect.graph(y).snapshot.tensors if tensor.kind == "intermediate"]
    ['6', '7', '1097']
    """
    return watching(Values())


KERNEL_NAMES, SECONDS = "compiled kernels", "seconds"


def kernels_of(node: Node) -> list[str]:
    """Return the compiled kernels that computed the outputs of `node` under `recording`."""
    found: list[str] = _kept.get(node, {}).get(KERNEL_NAMES, [])
    return found


def seconds_of(node: Node) -> float | None:
    """Return the seconds that the operation of `node` took under `recording`, or None."""
    found: float | None = _kept.get(node, {}).get(SECONDS)
    return found


def value_of(node: Node, which: int | str) -> Any:
    """Return the array of an output of `node`, or of an operand outside the graph, at the time of `recording`.

    Otherwise return None.
    """
    kept = _kept.get(node)
    return None if kept is None else kept.get(which)


class watching:
    """A context manager in which `recorder` records this thread. The previous recorder still receives everything."""

    def __init__(self, recorder: Passing) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorder.outer = modes.STATE.recorder
        self.recorder.start()
        modes.put({"recorder": self.recorder})

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.put({"recorder": self.recorder.outer})
        self.recorder.forget()


class Passing(Handler):
    """A recorder that passes all calls to `outer`, which is the previous recorder or None."""

    def __init__(self) -> None:
        self.outer: Any = None

    def start(self) -> None:
        """Prepare for recording. This is called before the recorder is set."""

    def forget(self) -> None:
        """Finish recording. This is called when the recorder is no longer set."""
        self.outer = None

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Pass operators to the previous recorder."""
        return proceed() if self.outer is None else self.outer.handle(call, proceed)

    def function(self, name: str, function: Any, args: Any, names: Any) -> Any:
        """Pass composite functions to the previous recorder."""
        return function(*args, **names) if self.outer is None else self.outer.function(name, function, args, names)

    def custom(self, name: str, function: Any, args: Any) -> Any:
        """Pass custom functions to the previous recorder."""
        return function(args) if self.outer is None else self.outer.custom(name, function, args)

    def begin(self, *args: Any, **names: Any) -> Any:
        """Pass the user's sections to the previous recorder."""
        return None if self.outer is None else self.outer.begin(*args, **names)

    def finish(self, event: Any) -> None:
        """Pass the end of a section to the previous recorder."""
        if self.outer is not None:
            self.outer.finish(event)

    def backward(self, node: Node, function: Any, grad: Any, *args: Any) -> Any:
        """Pass the run of a node to the previous recorder."""
        return function(node, grad, *args) if self.outer is None else self.outer.backward(node, function, grad, *args)


class Values(Passing):
    """A recorder that stores the values of small results, and the names of the compiled kernels that computed a result."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[str] = []

    def start(self) -> None:
        """Observe compiled kernels."""
        KERNELS.observe(self.kernel)

    def forget(self) -> None:
        """Stop observing compiled kernels."""
        KERNELS.stop_observing(self.kernel)
        super().forget()

    def kernel(self, name: str) -> AbstractContextManager[None]:
        """Record that a compiled kernel runs."""
        if modes.STATE.recorder is self:
            self.kernels.append(name)
        return nullcontext()

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Run an operator and store its result."""
        self.kernels.clear()
        began = perf_counter()
        result = super().handle(call, proceed)
        seconds = perf_counter() - began
        operands = dict(zip(call.op.names, call.given, strict=True))
        self._keep(result if isinstance(result, (tuple, list)) else (result,), operands, seconds)
        return result

    def custom(self, name: str, function: Any, args: Any) -> Any:
        """Run the forward of a custom function, and store its results."""
        node, results = super().custom(name, function, args)
        self._keep(results if isinstance(results, (tuple, list)) else (results,), {})
        return node, results

    def _keep(self, results: Iterable[Any], operands: dict[str, Any], seconds: float | None = None) -> None:
        for result in results:
            edge = result._edge if isinstance(result, Tensor) else None
            if type(edge) is tuple and not edge[0].is_nowhere:
                array = plain_array(result._array)
                kept = _kept.setdefault(edge[0], {})
                if seconds is not None:
                    kept[SECONDS] = seconds
                if self.kernels:
                    kept[KERNEL_NAMES] = list(dict.fromkeys(self.kernels))
                if array is not None and array.size <= MOST_ELEMENTS:
                    kept[edge[1]] = array.copy()
                for name, operand in operands.items():
                    value = _constant(operand)
                    if value is not None and value.size <= MOST_ELEMENTS:
                        kept[name] = value.copy()


def _constant(operand: Any) -> Any:
    """Return the array of an operand outside the graph: a number, or a tensor that does not require grad."""
    if isinstance(operand, Tensor):
        return plain_array(operand._array) if operand._edge is None else None
    return numpy.asarray(operand) if type(operand) in (int, float, complex) else None


def plain_array(array: Any) -> Any:
    """Return `array` in a form that can be read, or None."""
    if isinstance(array, Unread) or not isinstance(array, (numpy.ndarray, numpy.generic)):
        return None
    return array if type(array) is numpy.ndarray else numpy.asarray(materialize(array))
