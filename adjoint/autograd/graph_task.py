"""The state of a running backward, for hooks and custom functions that query it, and for nested backwards.

Which of the nodes that a backward reaches must run, and in which order if the user has set sequence numbers, is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from heapq import heappop, heappush
from itertools import count
from types import FrameType
from typing import Any

from ..tape import modes
from ..tape.modes import STATE
from ..tape.node import AccumulateGrad, Node, accumulator_of
from ..tensor import Tensor
from .shown import Shown

_next_id = count().__next__


class Capture:
    """The inputs whose gradients are requested: by leaf, and by (node, output_nr)."""

    __slots__ = ("leaves", "outputs")

    def __init__(self) -> None:
        self.leaves: dict[Tensor, Any] = {}
        self.outputs: dict[Node, dict[int, Any]] = {}

    def add(self, edge: Any) -> None:
        """Request the gradient that arrives at `edge`."""
        if type(edge) is not tuple:
            self.leaves[edge] = None
        elif not edge[0].is_nowhere:
            self.outputs.setdefault(edge[0], {})[edge[1]] = None

    def value(self, edge: Any) -> Any:
        """The gradient that arrived, or None."""
        if type(edge) is not tuple:
            return self.leaves[edge]
        return None if edge[0].is_nowhere else self.outputs[edge[0]][edge[1]]


class GraphTask:
    """One run of the engine.

    `retain_graph`: nodes keep what they saved; `create_graph`: gradients are tensors, and recorded; `capture`: the inputs asked
    for, None for all leaves; `accumulating`: leaves accumulate into `.grad`; `order`, `uses`, `needed`: what discovery
    found; `depth`: how many runs of this thread it is inside of; `node`: what it is at, where somebody may ask (a leaf
    stands for its `AccumulateGrad`); `frame`: the user's, from which it was started, if somebody has looked for that; `root`:
    where it begins, if that is one place: the hooks of a tensor there run whatever is asked for, as they do in PyTorch;
    `given`: the tensors of the gradients that it begins with, if the caller has given any; `shown`: the tensors as which
    gradients that are arrays are known outside, once somebody has been shown one.
    """

    retain_graph = False
    create_graph = False
    capture: Capture | None = None
    accumulating = False
    given: Any = None
    order: list[Node]
    uses: dict[Tensor, int]
    depth = 0
    callbacks: list[Callable[[], Any]] | None = None
    needed: dict[Node, tuple[Any, ...]] | None = None
    node: Node | Tensor | None = None
    id: int | None = None
    stopped_recording = False
    frame: FrameType | None = None
    root: Node | Tensor | None = None
    shown: Shown | None = None

    def accumulates(self, leaf: Tensor) -> bool:
        """Whether this run adds to the `.grad` of `leaf`, which it reaches."""
        return self.capture is None or (self.accumulating and leaf in self.capture.leaves)

    def stop_recording(self) -> None:
        """Record nothing in this thread until the run ends, unless it records gradients; called before user code runs."""
        if not self.create_graph and modes.STATE.grad_enabled:
            self.stopped_recording = True
            modes.set_grad(False)

    def will_run(self, node: Node) -> bool:
        """Whether this run reaches `node`, or accumulates into the leaf whose `AccumulateGrad` is `node`."""
        capture = self.capture
        if isinstance(node, AccumulateGrad):
            if capture is None:
                return node.variable in self.uses
            if not self.accumulating and node.variable in capture.leaves:
                raise RuntimeError(
                    "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                    "This is currently not supported."
                )
            return node.variable in capture.leaves
        if self.needed is None:
            self.needed = {node: node._edges for node in self.order}
        return node in self.needed or (capture is not None and node in capture.outputs)


def current_task_id() -> int:
    """The unique number of the backward that is running in this thread; -1 outside of a backward."""
    task = modes.STATE.task
    if task is None:
        return -1
    if task.id is None:
        task.id = _next_id()
    return task.id


def execution_order() -> list[Node]:
    """The nodes that the backward of this thread runs from where it is, in order; each `AccumulateGrad` as soon as it can.

    Raises:
        RuntimeError: outside of a backward, or if the backward may use several threads, as PyTorch's may.
    """
    task = modes.STATE.task
    if task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if modes.STATE.multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, "
            "e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(...)\n"
        )
    nodes = [node for node in task.order if task.will_run(node)]
    if task.node in nodes:
        nodes = nodes[nodes.index(task.node) :]
    assert task.needed is not None  # `will_run` has found what is needed
    leading_on = [[edge for edge in task.needed.get(node, ()) if isinstance(edge, Tensor)] for node in nodes]
    awaited = Counter(leaf for leaves in leading_on for leaf in leaves)
    order: list[Node] = []
    for node, leaves in zip(nodes, leading_on, strict=True):
        order.append(node)
        awaited.subtract(leaves)
        order += [accumulator_of(leaf) for leaf in dict.fromkeys(leaves) if not awaited[leaf]]
    return order


def is_checkpoint_valid() -> bool:
    """Whether a nested backward may run: only if all leaves accumulate and no inputs are requested."""
    task = modes.STATE.task
    return task is None or task.capture is None


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback()` when the backward that is running has finished, before it returns.

    Raises:
        RuntimeError: outside of a backward.
    """
    task = modes.STATE.task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)


def run_callbacks(callbacks: list[Callable[[], Any]]) -> None:
    """Run the callbacks of a finished backward, including those that the callbacks queue."""
    for callback in callbacks:  # the list may grow during the loop
        callback()


def current_node() -> Node | None:
    """The node that this thread is running in a backward (in a hook, the node of that hook), or None."""
    task = modes.STATE.task
    if task is None:
        return None
    return accumulator_of(task.node) if isinstance(task.node, Tensor) else task.node


def nodes_without_watch(task: GraphTask) -> Container[Node] | None:
    """The nodes that run and whose gradients are not requested; None if that is all of them."""
    plain: Container[Node] | None = None
    capture = task.capture
    if capture is not None and not all_are_needed(task.order, task.uses, capture):
        plain = needed = task.needed = find_needed(task.order, capture)
        if task.accumulating:
            # The `.grad` of outputs counts too: such nodes run, as leaves do, and their gradients are dropped.
            for node in capture.outputs:
                needed.setdefault(node, (None,) * len(node._edges))
        if capture.outputs:
            plain = needed.keys() - capture.outputs.keys()
    return () if modes.ANOMALY.enabled or STATE.recorder is not None else plain


def all_are_needed(order: list[Node], uses: dict[Tensor, int], capture: Capture) -> bool:
    """Whether every leaf is requested and every node leads to a leaf."""
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
    """The nodes on a path to a captured edge; only these run. The values are the edges on such paths."""
    needed: dict[Node, tuple[Any, ...]] = {}
    leaves, outputs = capture.leaves, capture.outputs

    for node in reversed(order):
        found = False
        edges = []
        for edge in node._edges:
            if edge is not None:
                if edge[0] in needed or edge[0] in outputs if type(edge) is tuple else edge in leaves:
                    found = True
                else:
                    edge = None
            edges.append(edge)
        if found:
            needed[node] = tuple(edges)
    return needed


class _Ready:
    """A node whose gradients are complete, as an entry of a heap: the highest sequence number comes first."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __lt__(self, other: _Ready) -> bool:
        return self.node._sequence > other.node._sequence


def by_dependencies(roots: list[Any], found: list[Node]) -> list[Node]:
    """Sort the nodes of `found` so that each follows all nodes that lead to it, whatever sequence numbers the user has set."""
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
