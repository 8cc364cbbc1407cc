"""Which of the nodes that a backward reaches must run, and in which order if the user has set sequence numbers."""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush
from typing import Any

from ..tape import modes
from ..tape.modes import STATE
from ..tape.node import Node
from ..tensor import Tensor
from .graph_task import Capture, GraphTask


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
