"""The engine: walks the recorded graph from the roots and brings every gradient to where it belongs.

Nodes are numbered as they are recorded, and an edge always leads to a node that existed before; so descending order of
their numbers is an order in which all gradients into a node have arrived when its turn comes. A first pass finds
the reachable nodes and counts how often each leaf is used; a second visits the nodes in that order. A leaf accumulates
as soon as its last gradient is in. There is no recursion: a graph may be a million nodes deep.

In an ordinary backward gradients are bare arrays; under `create_graph=True` they are tensors, and what is computed on
them is recorded. State is local to the call, so backward may run in many threads and within a backward.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..tape.node import Node, explain, live_accumulator
from ..tensor import Tensor
from .accumulate import accumulate
from .anomaly_mode import ANOMALY, check_for_nan, report
from .conform import conform
from .hooks import run_accumulator, run_leaf_hooks, run_post_accumulate_hooks, run_tensor_hooks, run_with_hooks
from .task import WATCHERS, Task

_by_sequence = attrgetter("sequence")


class Capture:
    """The inputs whose gradients are asked for: by leaf, and by (node, output_nr)."""

    def __init__(self) -> None:
        self.leaves: dict[Tensor, Any] = {}
        self.outputs: dict[Node, dict[int, Any]] = {}

    def add(self, edge: Any) -> None:
        """Ask for the gradient that arrives at `edge`."""
        if type(edge) is tuple and edge[0].is_nowhere:
            return
        if type(edge) is tuple:
            self.outputs.setdefault(edge[0], {})[edge[1]] = None
        else:
            self.leaves[edge] = None

    def value(self, edge: Any) -> Any:
        """The gradient that arrived, None if none did."""
        if type(edge) is tuple and edge[0].is_nowhere:
            return None
        return self.outputs[edge[0]][edge[1]] if type(edge) is tuple else self.leaves[edge]


def run(
    roots: list[Any], grads: list[Any], keep: bool, create_graph: bool, capture: Capture | None, accumulating: bool
) -> None:
    """Send `grads` (arrays, or tensors with `create_graph`) into the edges `roots`.

    Leaves accumulate into `.grad` if `accumulating`, all of them or those in `capture`; otherwise captured gradients are
    only stored in `capture`.
    """
    order, uses = discover(roots)
    needed = None
    if capture is not None:
        needed = find_needed(order, capture)
    arguments = (roots, grads, keep, create_graph, capture, accumulating, order, uses, needed)
    if not WATCHERS.count:
        walk(*arguments)
        return
    if capture is None or needed is None:
        task = Task(order, uses)
    else:
        task = Task(needed | capture.outputs.keys(), capture.leaves)
    with task:
        walk(*arguments)


def walk(
    roots: list[Any],
    grads: list[Any],
    keep: bool,
    create_graph: bool,
    capture: Capture | None,
    accumulating: bool,
    order: list[Node],
    uses: dict[Tensor, int],
    needed: set[Node] | None,
) -> None:
    """Run the nodes in `order`, those that are `needed`, and complete leaves after their last of `uses`."""
    anomaly = ANOMALY.enabled
    buffers: dict[Any, Any] = {}
    for edge, grad in zip(roots, grads, strict=True):
        if edge is not None:
            deliver(edge, grad, buffers)
            if type(edge) is not tuple:
                uses[edge] -= 1
                if not uses[edge]:
                    finish_leaf(edge, buffers.pop(edge), create_graph, capture, accumulating)
    arrived = buffers.pop
    complete: list[Tensor] = []
    for node in order:
        grad = arrived(node, None)
        if grad is None or capture is not None or node.hooks is not None or anomaly:
            results = visit(node, grad, keep, create_graph, capture, needed)
            if results is None:
                results = (None,) * len(node.edges)
        else:
            try:
                results = node.backward_recorded(grad, keep) if create_graph else node.backward(grad, keep)
            except Exception as error:
                explain(error, node)
                raise
        for edge, result in zip(node.edges, results):  # noqa: B905  (of one length, and this is the inner loop)
            if edge is None:
                continue
            if type(edge) is tuple:
                if result is None:
                    continue
                target = edge[0]
                if result.shape != target.shape or result.dtype is not target.dtype:
                    if type(target.shape) is list:
                        deliver(edge, result, buffers, node)
                        continue
                    if target.is_nowhere:
                        continue
                    result = conform(result, target.shape, target.dtype, node, edge)
                buffers[target] = buffers[target] + result if target in buffers else result
                continue
            if result is not None:
                array = edge._array
                if result.shape != array.shape or result.dtype is not array.dtype:
                    result = conform(result, array.shape, array.dtype, node, edge)
                buffers[edge] = buffers[edge] + result if edge in buffers else result
            left = uses[edge] = uses[edge] - 1
            if not left and edge in buffers:
                complete.append(edge)
        if complete:
            grad = result = results = None  # so that accumulation sees whether anybody else has a gradient
            for leaf in complete:
                finish_leaf(leaf, arrived(leaf), create_graph, capture, accumulating)
            complete.clear()


def visit(node: Node, grad: Any, keep: bool, create_graph: bool, capture: Capture | None, needed: Any) -> Any:
    """Run a node of which something is out of the ordinary; None if it does not run."""
    if grad is None:
        if not node.runs_undefined:
            return None
        grad = [None] * len(node.shape)
    runs = needed is None or node in needed
    if capture is not None and node in capture.outputs:
        capture_outputs(node, grad, capture, create_graph, hooks=not runs)
    if not runs:
        return None
    try:
        if node.hooks is not None:
            results = run_with_hooks(node, grad, keep, create_graph)
        else:
            results = node.backward_recorded(grad, keep) if create_graph else node.backward(grad, keep)
        if ANOMALY.enabled:
            check_for_nan(node, results)
    except Exception as error:
        if ANOMALY.enabled:
            report(node)
        explain(error, node)
        raise
    return results


def discover(roots: list[Any]) -> tuple[list[Node], dict[Tensor, int]]:
    """The nodes reachable from the roots, latest first, and how many edges lead to each leaf."""
    seen: set[Node] = set()
    uses: dict[Tensor, int] = {}
    order: list[Node] = []
    stack: list[Node] = []
    for edge in roots:
        if type(edge) is tuple:
            if edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
        elif edge is not None:
            uses[edge] = uses.get(edge, 0) + 1
    while stack:
        node = stack.pop()
        order.append(node)
        for edge in node.edges:
            if edge is None:
                continue
            if type(edge) is tuple:
                target = edge[0]
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
            else:
                uses[edge] = uses.get(edge, 0) + 1
    order.sort(key=_by_sequence, reverse=True)
    return order, uses


def find_needed(order: list[Node], capture: Capture) -> set[Node]:
    """The nodes that lie on a path to something captured; only they run."""
    needed: set[Node] = set()
    for node in reversed(order):
        for edge in node.edges:
            if edge is None:
                continue
            if type(edge) is tuple:
                if edge[0] in needed or edge[0] in capture.outputs:
                    needed.add(node)
                    break
            elif edge in capture.leaves:
                needed.add(node)
                break
    return needed


def deliver(edge: Any, grad: Any, buffers: dict[Any, Any], source: Node | None = None) -> None:
    """Add `grad` to what has arrived at `edge`, any kind of edge."""
    if type(edge) is not tuple:
        array = edge._array
        grad = conform(grad, array.shape, array.dtype, source, edge)
        buffers[edge] = grad if edge not in buffers else buffers[edge] + grad
        return
    node, number = edge
    if node.is_nowhere:
        return
    if type(node.shape) is list:
        grad = conform(grad, node.shape[number], node.dtype[number], source, edge)
        held = buffers.get(node)
        if held is None:
            held = buffers[node] = [None] * len(node.shape)
        held[number] = grad if held[number] is None else held[number] + grad
    else:
        grad = conform(grad, node.shape, node.dtype, source, edge)
        buffers[node] = grad if node not in buffers else buffers[node] + grad


def capture_outputs(node: Node, grad: Any, capture: Capture, create_graph: bool, hooks: bool) -> None:
    """Store what arrived at the outputs of `node` that are asked for.

    Hooks of those tensors go first where the node itself does not run; where it does, they run with it.
    """
    if hooks and node.hooks is not None:
        grad = run_tensor_hooks(node, grad, create_graph)
    wanted = capture.outputs[node]
    for number in wanted:
        wanted[number] = grad[number] if type(grad) is list else grad


def finish_leaf(leaf: Tensor, grad: Any, create_graph: bool, capture: Capture | None, accumulating: bool) -> None:
    """All gradients of `leaf` are in: run its hooks and accumulate, or capture."""
    extra = leaf._extra
    if capture is not None and leaf not in capture.leaves:
        return
    if extra is not None and extra.hooks:
        grad = run_leaf_hooks(leaf, grad, create_graph)
    if capture is not None and not accumulating:
        capture.leaves[leaf] = grad
        return
    if leaf._edge is None:
        return  # it has been frozen since
    if extra is None:
        accumulate(leaf, grad, create_graph)
        return
    node = live_accumulator(leaf)
    if node is not None and node.hooks is not None:
        run_accumulator(node, grad, create_graph)
    else:
        accumulate(leaf, grad, create_graph)
        run_post_accumulate_hooks(leaf)
