"""The state of a running backward, the nodes that it must run, and their order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable
from heapq import heappop, heappush
from itertools import count
from types import FrameType
from typing import Any

from .._runtime.tracebacks import variables_in
from ..tape import modes
from ..tape.modes import FLAGS, STATE
from ..tape.node import AccumulateGrad, Node, accumulator_of
from ..tensor import Tensor
from .shown import Shown

_next_id = count().__next__

_RUNNERS = {"execute": "node", "finish_leaf": "leaf"}
"""The functions that run nodes and finish leaves, and the variable of each that holds the node or the leaf."""


class Capture:
    """The inputs whose gradients are requested, by the `id` of a leaf and by (node, output_nr)."""

    __slots__ = ("leaves", "outputs")

    def __init__(self, edges: Iterable[Any]) -> None:
        """Request the gradients that arrive at `edges`."""
        self.leaves: dict[int, Any] = {}
        self.outputs: dict[Node, dict[int, Any]] = {}
        for edge in edges:
            if type(edge) is not tuple:
                self.leaves[id(edge)] = None
            elif not edge[0].is_nowhere:
                self.outputs.setdefault(edge[0], {})[edge[1]] = None

    def values(self, edges: Iterable[Any]) -> list[Any]:
        """Return the gradients that arrived at `edges`. None: no gradient."""
        leaves, outputs = self.leaves, self.outputs
        return [outputs.get(e[0], {}).get(e[1]) if type(e) is tuple else leaves[id(e)] for e in edges]


class GraphTask:
    """One run of the engine.

    `retain_graph`: whether nodes keep their saved tensors. `create_graph`: whether gradients are tensors and are
    recorded. `capture`: the requested inputs, or None for all leaves. `accumulating`: whether gradients accumulate into
    the `.grad` of leaves. `order`, `uses`, `needed`: the results of discovery. `depth`: the number of enclosing runs in
    this thread. `node`: the current node, in anomaly mode. `frame`: the user's frame that started the run, if it has
    been looked up. `root`: the only root, if there is one. The hooks of this root run whether its gradient is requested
    or not, as in PyTorch. `given`: the tensors of the initial gradients, if the caller gave them. `shown`: the tensors
    through which user code sees gradient arrays, if user code has seen any.
    """

    retain_graph = False
    create_graph = False
    capture: Capture | None = None
    accumulating = False
    given: Any = None
    order: list[Node]
    uses: dict[int, int]
    depth = 0
    callbacks: list[Callable[[], Any]] | None = None
    needed: dict[Node, tuple[Any, ...]] | None = None
    node: Node | None = None
    id: int | None = None
    stopped_recording = False
    frame: FrameType | None = None
    root: Node | Tensor | None = None
    shown: Shown | None = None

    def accumulates(self, leaf: Tensor) -> bool:
        """Return whether this run adds to the `.grad` of `leaf`, which it reaches."""
        return self.capture is None or (self.accumulating and id(leaf) in self.capture.leaves)

    def stop_recording(self) -> None:
        """Record nothing in this thread until the run ends, unless the run records gradients. Then user code may run."""
        if not self.create_graph and modes.STATE.grad_enabled:
            self.stopped_recording = True
            modes.set_grad(False)

    def will_run(self, node: Node) -> bool:
        """Return whether this run reaches `node`, or accumulates into the leaf whose `AccumulateGrad` is `node`."""
        capture = self.capture
        if isinstance(node, AccumulateGrad):
            if capture is None:
                return id(node.variable) in self.uses
            if not self.accumulating and id(node.variable) in capture.leaves:
                raise RuntimeError(
                    "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                    "This is currently not supported."
                )
            return id(node.variable) in capture.leaves
        if self.needed is None:
            self.needed = {node: node._edges for node in self.order}
        return node in self.needed or (capture is not None and node in capture.outputs and node in self.order)


def current_task_id() -> int:
    """Return the unique number of the backward that is running in this thread, or -1 outside of a backward."""
    task = modes.STATE.task
    if task is None:
        return -1
    if task.id is None:
        task.id = _next_id()
    return task.id


def is_checkpoint_valid() -> bool:
    """Return whether a nested backward may run. This requires that all leaves accumulate and no inputs are requested."""
    task = modes.STATE.task
    return task is None or task.capture is None


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback()` at the end of the backward that is running, before it returns.

    Raises:
        RuntimeError: if no backward is running.
    """
    task = modes.STATE.task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)


def current_node() -> Node | None:
    """Return the node that this thread is running in a backward, or None. The frames of the engine contain it."""
    assert FLAGS.engine is not None
    runners = {FLAGS.engine[name].__code__: variable for name, variable in _RUNNERS.items()}
    frame: FrameType | None = sys._getframe(1) if modes.STATE.task is not None else None
    while frame is not None and frame.f_code not in runners:
        frame = frame.f_back
    found = None if frame is None else variables_in(frame).get(runners[frame.f_code])
    return accumulator_of(found) if isinstance(found, Tensor) else found


def nodes_without_watch(task: GraphTask) -> Container[Node] | None:
    """Return the nodes that run without requested gradients. Return None if all nodes run without requested gradients."""
    plain: Container[Node] | None = None
    capture = task.capture
    if capture is not None and not all_are_needed(task.order, task.uses, capture):
        plain = needed = task.needed = find_needed(task.order, capture)
        if task.accumulating:
            # The `.grad` of outputs counts too: such nodes run, as leaves do, and their gradients are dropped.
            for node in capture.outputs.keys() & set(task.order):
                needed.setdefault(node, (None,) * len(node._edges))
        if capture.outputs:
            plain = needed.keys() - capture.outputs.keys()
    return () if modes.ANOMALY.enabled or STATE.recorder is not None else plain


def all_are_needed(order: list[Node], uses: dict[int, int], capture: Capture) -> bool:
    """Return whether every leaf is requested and every node leads to a leaf."""
    if capture.outputs or not uses.keys() <= capture.leaves.keys():
        return False
    for node in order:
        for edge in node._edges:
            if edge is not None:
                break
        else:
            return False
    return True


def find_needed(order: list[Node], capture: Capture) -> dict[Node, tuple[Any, ...]]:
    """Find the nodes on a path to a captured edge. Only these nodes run. Return the nodes, with their edges on such paths."""
    needed: dict[Node, tuple[Any, ...]] = {}
    leaves, outputs = capture.leaves, capture.outputs

    for node in reversed(order):
        found = False
        edges = []
        for edge in node._edges:
            if edge is not None:
                if edge[0] in needed or edge[0] in outputs if type(edge) is tuple else id(edge) in leaves:
                    found = True
                else:
                    edge = None
            edges.append(edge)
        if found:
            needed[node] = tuple(edges)
    return needed


class _Ready:
    """An entry of a heap of nodes. The highest sequence number comes first; equal numbers have PyTorch's order in a heap."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __lt__(self, other: _Ready) -> bool:
        return self.node._sequence > other.node._sequence


def by_dependencies(roots: list[Any], found: list[Node]) -> list[Node]:
    """Sort the nodes of `found` so that each follows all nodes that lead to it, even if the user has set sequence numbers."""
    awaited = dict.fromkeys(found, 0)
    for node in found:
        for edge in node._edges:
            if type(edge) is tuple:
                awaited[edge[0]] += 1
    ready: list[_Ready] = []
    order: list[Node] = []
    for node in dict.fromkeys(edge[0] for edge in roots if type(edge) is tuple):
        if not awaited[node]:
            heappush(ready, _Ready(node))
    while ready:
        node = heappop(ready).node
        order.append(node)
        for edge in node._edges:
            if type(edge) is tuple:
                awaited[edge[0]] -= 1
                if not awaited[edge[0]]:
                    heappush(ready, _Ready(edge[0]))
    return order
