"""What worker processes have compiled: their parent compiles it too, before it forks others, which then have it."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["New", "prepare"]


def _host() -> Any:
    """The machine that kernels are compiled for; None while none has been."""
    module = sys.modules.get("adjoint.codegen.llvm.host")
    return None if module is None else module.HOST


class New:
    """What this process compiles from now on."""

    def __init__(self) -> None:
        host = _host()
        self._known = 0 if host is None else len(host.compiled)

    def take(self) -> list[tuple[Any, ...]]:
        """The requests for what is new since the last call, in a form that can be sent."""
        host = _host()
        if host is None or len(host.compiled) == self._known:
            return []
        found = list(host.compiled)[self._known :]
        self._known += len(found)
        return [tuple(request) for request in found]


_waiting: dict[tuple[Any, ...], None] = {}


def note(requests: list[tuple[Any, ...]]) -> None:
    """Remember what a worker has compiled."""
    _waiting.update(dict.fromkeys(requests))


def prepare() -> None:
    """Compile what workers have compiled: a forked process then has it from its begin."""
    while _waiting:
        request, _ = _waiting.popitem()
        from ..codegen.llvm.host import HOST
        from ..codegen.llvm.values import CompilationError

        name, text, explicit, plain, also = request
        try:
            HOST.compile(name, text, explicit=explicit, plain=plain, also=also)
        except CompilationError:  # it refers to what only the worker has defined
            pass
