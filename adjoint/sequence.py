"""The order of recording: a number for each node, and between which numbers each call of a module lay.

`Module.__call__` notes its calls here and the graph's pictures read them, so that a picture knows the module that recorded
each node. A note costs less than a tenth of a microsecond. The latest notes are kept, without keeping any module alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from threading import get_ident, main_thread
from typing import Any

MOST_CALLS = 16384

sequence_numbers = count()

next_number = sequence_numbers.__next__


InThread = tuple[int, tuple[int, ...]]
"""In which thread a module was called, and the numbers of the nodes of its results."""


class Threads:
    """Whether several threads may record at once. Then two numbers do not say which nodes a call recorded."""

    __slots__ = ("several",)

    def __init__(self) -> None:
        self.several = False


threads = Threads()

MAIN_THREAD = main_thread().ident

module_calls: deque[tuple[Any, type, int, int, InThread | None]] = deque(maxlen=MOST_CALLS)
"""Calls in the order in which they ended: a weak reference to the module, its class, a number before its first node, one after
its last, and, once another thread than the main one has called a module, what `in_thread` returns.

Calls that recorded nothing are not among them.
"""


def in_thread(result: Any) -> InThread:
    """What is noted of a call that returned `result`."""
    edge = getattr(result, "_edge", None)
    if type(edge) is tuple:
        return get_ident(), (edge[0]._sequence,)
    return get_ident(), tuple(_nodes_of(result))


def _nodes_of(result: Any) -> Iterator[int]:
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _nodes_of(item)
    elif isinstance(result, Mapping):
        for item in result.values():
            yield from _nodes_of(item)
    else:
        edge = getattr(result, "_edge", None)
        if type(edge) is tuple:
            yield edge[0]._sequence
