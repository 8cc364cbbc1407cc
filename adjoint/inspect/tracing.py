"""`trace_backward` records the incoming and outgoing gradients of every node in a backward, and the released tensors.

The tracer takes the place of the profiler's recorder. While a tracer is set, the engine runs nodes through it. Nothing
is registered on nodes or tensors.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy

from .._runtime.tracebacks import frame_of_caller
from ..autograd.backward import backward
from ..autograd.roots import as_tuple
from ..autograd.validate_grad import as_taken
from ..kernels.runtime.floating import unwarned
from ..tape import modes
from ..tape.node import AccumulateGrad, Node
from ..tape.saved import RELEASED
from ..tensor import Tensor
from .drawing import Graph, check
from .model import Flow, NodeBox, Step
from .names import variables_of
from .reading import items_of
from .recording import Passing, watching
from .snapshot import Walk, walked
from .text import size
from .values import in_short, statistics


def trace_backward(
    tensors: Any,
    gradient: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    params: Any = None,
) -> Trace:
    """Run `backward`, and record each step: incoming and outgoing gradients, accumulation, hooks, released tensors.

    Args:
        tensors, gradient, retain_graph, create_graph, inputs: as in `adjoint.autograd.backward`.
        params: the names of parameters, as for `graph`.

    The result can be saved as a page (`.save("backward.html")`) that shows the steps as an animation.

    >>> import adjoint as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> trace = torch.inspect.trace_backward((w * w).sum())
    >>> trace
    backward of sum(…): 3 steps, 0 bytes freed
    1  SumBackward0 n3   1
         → MulBackward0 n2 (self)  [1, 1]
    2  MulBackward0 n2   [1, 1]
         → w (self)  [1, 2]
         → w (other)  [1, 2]
         freed other, self
    3  AccumulateGrad n1   [2, 4]
         w.grad = [2, 4]
    >>> w.grad
    tensor([2., 4.])
    """
    return run(
        Tracer(walk_of(tensors, params, frame_of_caller(), "trace_backward")),
        tensors, gradient, retain_graph, create_graph, inputs,
    )  # fmt: skip


def walk_of(tensors: Any, params: Any, frame: Any, function: str) -> Walk:
    """Return the walk over the graph to be differentiated."""
    roots = as_tuple(tensors)
    for tensor in roots:
        check(tensor, function)
    return walked(roots, params, variables_of(frame))


def run(tracer: Tracer, tensors: Any, gradient: Any, retain_graph: Any, create_graph: bool, inputs: Any) -> Trace:
    """Run backward with `tracer` as the recorder."""
    with watching(tracer):
        backward(tensors, gradient, retain_graph, create_graph, inputs=inputs)
    return Trace(tracer.picture)


class Trace(Graph):
    """The picture of a graph together with the steps of its backward."""

    @property
    def steps(self) -> list[Step]:
        """The steps in the order of execution."""
        return self.snapshot.steps

    def text(self, full: bool = True) -> str:
        """Return the graph as a tree, and the steps."""
        return f"{super().text(full)}\n\n{self.table()}"

    def table(self) -> str:
        """Return the steps as lines."""
        nodes = {node.id: node for node in self.snapshot.nodes}
        names = leaf_names(self.snapshot.tensors)
        freed = sum(step.freed_bytes for step in self.steps)
        called = self.snapshot.title.removeprefix("graph of ")
        lines = [f"backward of {called}: {len(self.steps)} steps, {size(freed)} freed"]
        for number, step in enumerate(self.steps, start=1):
            lines += describe(step, f"{number}  ", nodes, names)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def __rich__(self) -> str:
        """The steps."""
        from rich.markup import escape

        return escape(self.table())


def leaf_names(tensors: Any) -> dict[str, str]:
    """Return the names of the leaves, by the ids of their `AccumulateGrad` nodes."""
    return {tensor.node: tensor.name or tensor.id for tensor in tensors if tensor.kind == "leaf"}


def describe(step: Step, first: str, nodes: dict[str, NodeBox], names: dict[str, str]) -> list[str]:
    """Describe a step as lines."""
    node = nodes[step.node]
    lines = [f"{first}{node.name} {node.id}   {', '.join(flow.data or 'none' for flow in step.incoming)}"]
    lines += [f"     {line}" for line in results(step, nodes, names)]
    return lines


def results(step: Step, nodes: dict[str, NodeBox], names: dict[str, str]) -> list[str]:
    """Return the results of a step as lines."""
    node = nodes[step.node]
    lines = [f"hook: {hook}" for hook in step.hooks]
    for flow, name in zip(step.outgoing, node.inputs, strict=True):
        if flow.node is not None:
            target = names.get(flow.node) or f"{nodes[flow.node].name} {flow.node}"
            number = f" output {flow.index}" if flow.index else ""
            lines.append(f"→ {target}{number} ({name})  {flow.data or 'none'}")
    if step.accumulated is not None:
        lines.append(f"{names[step.node]}.grad = {step.accumulated}")
    if step.freed:
        lines.append(f"freed {', '.join(step.freed)}")
    return lines


class Tracer(Passing):
    """Records the steps of one backward."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        self.picture = walk.picture
        self.walk: Walk | None = walk
        self.task: Any = None
        self.boxes = {node.id: node for node in self.picture.nodes}
        self.holders: dict[str, int] = {}
        for node in self.picture.nodes:
            for storage in {saved.storage for saved in node.saved if saved.storage is not None}:
                self.holders[storage] = self.holders.get(storage, 0) + 1

    def forget(self) -> None:
        """Release the graph."""
        super().forget()
        self.walk = self.task = None

    def backward(self, node: Node, function: Any, grad: Any, *args: Any) -> Any:
        """Run `function(node, grad, *args)`, which runs `node`. Record it if the node belongs to the traced graph."""
        own = self.walk
        leaf = node.variable if isinstance(node, AccumulateGrad) else None
        key = None if own is None else own.ids.get(id(node if leaf is None else leaf))
        if self.task is None:
            self.task = modes.STATE.task
        run = function if self.outer is None else self.outer.backward
        first = () if self.outer is None else (function,)
        if key is None or modes.STATE.task is not self.task:  # a nested backward
            return run(node, *first, grad, *args)
        held = _held(node)
        with unwarned():
            step = Step(key, incoming=_arrived(key, grad))
        box = self.boxes[key]
        step.hooks = [f"{hook.when}: {hook.text}" for hook in box.hooks]
        self.arrived(step, node, grad)
        began = perf_counter()
        outcome = run(node, *first, grad, *args)
        box.seconds["backward"] = perf_counter() - began
        with unwarned():
            if leaf is None:
                step.outgoing = self._sent(node, box, outcome)
            elif leaf._grad is not None:
                step.accumulated = in_short(leaf._grad._array)
        box.gradient = [flow.statistics for flow in step.incoming]
        self._note_freed(step, box, held, node)
        self.picture.steps.append(step)
        self.done(step)
        return outcome

    def _sent(self, node: Node, box: NodeBox, outcome: Any) -> list[Flow]:
        """Return the gradients that a node has computed, in the form that their receivers expect."""
        return [
            _flow(target, index, None if result is None or target is None else as_taken(result, edge, node))
            for edge, result, (target, index) in zip(node._edges, outcome, box.next, strict=True)
        ]

    def _note_freed(self, step: Step, box: NodeBox, held: list[str], node: Node) -> None:
        """Record the saved tensors that the node has released, and the memory that only the node held."""
        still = set(_held(node))
        step.freed = [name for name in held if name not in still]
        gone = {saved.storage for saved in box.saved if saved.name in step.freed and saved.storage is not None}
        walk = self.walk
        for storage in gone:
            self.holders[storage] -= 1
            if not self.holders[storage] and walk is not None and storage not in walk.leaf_bytes:
                step.freed_bytes += walk.held[storage]

    # --- for subclasses ---------------------------------------------------------------------------------------------

    def arrived(self, step: Step, node: Node, grad: Any) -> None:
        """Prepare for a node of the graph. This is called before the node runs."""

    def done(self, step: Step) -> None:
        """Record a node of the graph. This is called after the node has run."""


def _held(node: Node) -> list[str]:
    """Return the names of the saved tensors that `node` holds."""
    return [item.name for item in items_of(node) if item.value is not None and item.value is not RELEASED]


def _arrived(key: str, grad: Any) -> list[Flow]:
    return [_flow(key, number, each) for number, each in enumerate(grad if type(grad) is list else [grad])]


def _flow(key: str | None, index: int, grad: Any) -> Flow:
    if grad is None:
        return Flow(key, index, None, None)
    array = grad._array if isinstance(grad, Tensor) else numpy.asarray(grad)
    return Flow(key, index, in_short(array), list(array.shape), statistics(array))
