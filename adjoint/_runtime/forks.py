"""Forks: in a forked child no thread of the parent holds a lock, and guarded data is consistent.

A fork waits for all of these locks, and holds them while it copies the process.
"""

from __future__ import annotations

import linecache
import os
import threading
import weakref
from types import CodeType
from typing import Any

from .tracebacks import PACKAGE

_locks: set[weakref.ref[Any]] = set()
_held: list[Any] = []


def lock_across_forks() -> Any:
    """Return a new reentrant lock that is held during a fork."""
    lock = threading.RLock()
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def _hold() -> None:
    global _held
    first: Any = threading.RLock()
    while True:  # never wait for one lock while holding another, so that threads may acquire locks in any order
        with first:
            held: list[Any] = []
            for lock in [found for each in list(_locks) if (found := each()) is not None]:
                if not lock.acquire(blocking=False):
                    first = lock
                    break
                held.append(lock)
            else:
                _held = held
                return
            for one in held:
                one.release()


def _give_back() -> None:
    global _held
    held, _held = _held, []
    for lock in held:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_give_back, after_in_child=_give_back)


CODE: dict[tuple[str, str], CodeType] = {}
"""Code that a process has compiled for its forked children, by source and file name."""


def compile_source(source: str, filename: str, names: dict[str, Any]) -> dict[str, Any]:
    """Execute generated source as code of this package, which tracebacks and debuggers show. Return its `names`."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names.setdefault("__package__", PACKAGE)
    code = CODE.pop((source, filename), None)
    exec(code or compile(source, filename, "exec"), names)
    return names
