"""The compiled and imported code of worker processes.

Their parent compiles and imports it too, before it forks other workers.


Parts of the library are imported, and functions generated, when they are first used. Without this, the workers of each
pass over a dataset would repeat the work.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import sys
from typing import Any, NamedTuple

from .._runtime import forks

__all__ = ["New", "Work", "prepare"]

PACKAGE = __name__.partition(".")[0]


class Work(NamedTuple):
    """Work of one process that other processes need not repeat.

    `requests` are the requests to compile kernels, `modules` the names of imported modules, and `sources` the file
    names and texts of generated functions.
    """

    requests: list[tuple[Any, ...]]
    modules: list[str]
    sources: list[tuple[str, str]]


def _host() -> Any:
    """Return the machine for which kernels are compiled, or None before the first compilation."""
    module = sys.modules.get(f"{PACKAGE}.codegen.llvm.host")
    return None if module is None else module.HOST


class New:
    """Records what this process compiles and imports from now on."""

    def __init__(self) -> None:
        self._records: list[tuple[dict[Any, Any], set[Any]]] = [(sys.modules, set()), (linecache.cache, set())]
        self._counts = [-1, -1]
        host = _host()
        self._known = 0 if host is None else len(host.compiled)
        self.take()

    def take(self) -> Work | None:
        """Return the new work since the last call, in a form that can be sent."""
        host = _host()
        requests: list[tuple[Any, ...]] = []
        if host is not None and len(host.compiled) > self._known:
            requests = [tuple(request) for request in list(host.compiled)[self._known :]]
            self._known += len(requests)
        modules, files = self._names(0), self._names(1)
        sources = [(name, "".join(linecache.getlines(name))) for name in files if name.startswith(f"<{PACKAGE} ")]
        ours = [name for name in modules if name.startswith(f"{PACKAGE}.")]
        return Work(requests, ours, sources) if requests or ours or sources else None

    def _names(self, place: int) -> list[str]:
        """Return the names that have been added to a record since the last call."""
        record, known = self._records[place]
        if len(record) == self._counts[place]:
            return []
        names = [name for name in list(record) if name not in known]
        known.update(names)
        self._counts[place] = len(record)
        return names


_waiting: list[Work] = []


def note(work: Work | None) -> None:
    """Store the work of a worker."""
    if work is not None:
        _waiting.append(work)


def prepare() -> None:
    """Repeat the work of workers, so that forked processes inherit the results."""
    while _waiting:
        work = _waiting.pop()
        for name in work.modules:
            importlib.import_module(name)
        for request in work.requests:
            _compile_kernel(*request)
        for filename, source in work.sources:
            _compile_function(filename, source)


def _compile_kernel(name: str, text: str, *options: Any) -> None:
    from ..codegen.llvm.host import HOST, Request
    from ..codegen.llvm.values import CompilationError

    with contextlib.suppress(CompilationError):  # it refers to names that only the worker has defined
        HOST.compile(**Request(name, text, *options)._asdict())


def _compile_function(filename: str, source: str) -> None:
    if filename not in linecache.cache:
        forks.CODE[source, filename] = compile(source, filename, "exec")
