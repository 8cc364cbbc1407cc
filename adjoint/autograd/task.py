"""The backward under way in a thread, for hooks of several tensors, which have to know what it will reach."""

from __future__ import annotations

import threading
from typing import Any


class Task:
    """One run of the engine: the nodes that will run, the leaves that will get gradients, and notes of those who watch."""

    def __init__(self, nodes: Any, leaves: Any) -> None:
        self.nodes = frozenset(nodes)
        self.leaves = frozenset(leaves)
        self.notes: dict[Any, Any] = {}

    def reaches(self, edge: Any) -> bool:
        """Whether a gradient will arrive at `edge`."""
        return edge[0] in self.nodes if type(edge) is tuple else edge in self.leaves

    def __enter__(self) -> None:
        self.outer = _STATE.task
        _STATE.task = self

    def __exit__(self, *exception: object) -> None:
        _STATE.task = self.outer


class _State(threading.local):
    task: Task | None = None


class _Watchers:
    """How many hooks ask for the present task; while there are none, the engine makes none."""

    count = 0


_STATE = _State()
WATCHERS = _Watchers()


def present_task() -> Task | None:
    """The innermost backward under way in this thread, if anybody watches."""
    return _STATE.task
