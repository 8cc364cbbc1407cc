"""The order of recording: a number for each node, and the range of numbers of each module call.

Pictures of the graph need the calls, which are recorded only if a graph may be displayed.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from itertools import count
from threading import get_ident, main_thread
from types import CodeType, FrameType
from typing import Any

MOST_CALLS = 16384

sequence_numbers = count()

watchers: OrderedDict[int, bool] = OrderedDict()
"""The observers of the calls of all modules: the ids of global hooks, `NOTES`, `TABLES_SHOWN`. Usually there is none."""

NOTES, TABLES_SHOWN = -1, -2


class Recording:
    """The sequence number at which the recording of module calls began, or None, and whether several threads record."""

    __slots__ = ("began", "several_threads")

    def __init__(self) -> None:
        self.began: int | None = None
        self.several_threads = False


recording = Recording()


def note_calls() -> None:
    """Record the calls of modules from now on."""
    if recording.began is None:
        recording.began = next(sequence_numbers)
        watchers[NOTES] = True


def note_calls_if_graphs_may_be_drawn() -> None:
    """Record the calls of modules if this session is interactive, or if code that imports this package mentions `inspect`."""
    if sys.flags.interactive or hasattr(sys, "ps1") or "IPython" in sys.modules:
        note_calls()
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and mentions(frame.f_code, "inspect"):
            note_calls()
            return
        frame = frame.f_back


def mentions(code: CodeType, name: str) -> bool:
    """Return whether the code, or a function or class in it, uses `name` as a variable, an attribute or a module."""
    return name in code.co_names or any(mentions(part, name) for part in code.co_consts if isinstance(part, CodeType))


InThread = tuple[int, tuple[int, ...]]
"""The thread in which a module was called, and the numbers of the nodes of its results."""


MAIN_THREAD = main_thread().ident

module_calls: deque[tuple[Any, str, int, int, InThread | None]] = deque(maxlen=MOST_CALLS)
"""Calls that recorded nodes, in the order of their ends.

Each record contains a weak reference to the module, the name of its class, the numbers before its first and after its
last node, and the result of `in_thread` after a thread other than the main thread has called a module.
"""


def in_thread(result: Any) -> InThread:
    """Return the additional record of a call that returned `result`."""
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
