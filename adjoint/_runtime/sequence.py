"""The order of recording: a number for each node, and between which numbers each call of a module lay.

The graph's pictures read which calls were noted, so that a picture knows the module that recorded each node. Calls are noted
only where a graph may be looked at: from the import of `adjoint.inspect` on, in an interactive session, and in a program whose
code mentions `inspect`. Elsewhere the call of a module does nothing for it. The latest notes are kept, without keeping any
module alive.
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
"""What sees the calls of all modules: the ids of global hooks, and `NOTES` where calls are noted. Usually nothing does."""

NOTES = -1


class Beginning:
    """The number from which on calls of modules are noted; None where they are not."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number: int | None = None


beginning = Beginning()


def note_calls() -> None:
    """Note the calls of modules from now on."""
    if beginning.number is None:
        beginning.number = next(sequence_numbers)
        watchers[NOTES] = True


def note_calls_if_graphs_may_be_drawn() -> None:
    """Note the calls of modules if this session is interactive, or if code that imports this package mentions `inspect`."""
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
    """Whether the code, or a function or class in it, uses `name` as a variable, an attribute or a module."""
    return name in code.co_names or any(mentions(part, name) for part in code.co_consts if isinstance(part, CodeType))


InThread = tuple[int, tuple[int, ...]]
"""In which thread a module was called, and the numbers of the nodes of its results."""


class Threads:
    """Whether several threads may record at once. Then two numbers do not say which nodes a call recorded."""

    __slots__ = ("several",)

    def __init__(self) -> None:
        self.several = False


threads = Threads()

MAIN_THREAD = main_thread().ident

module_calls: deque[tuple[Any, str, int, int, InThread | None]] = deque(maxlen=MOST_CALLS)
"""Calls in the order in which they ended: a weak reference to the module, the name of its class, a number before its first node,
one after its last, and, once another thread than the main one has called a module, what `in_thread` returns.

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
