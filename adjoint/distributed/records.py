"""Collectives and messages as events of profiles: the start and the end of each call, its bytes, and waits for it.

Only the calls of a profiled thread are recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from ..profiler.recorder import WAIT, Communication
from ..tape import modes
from ..tensor import Tensor

if TYPE_CHECKING:
    from .process_group import ProcessGroup

_labels: list[str] = []
"""The purposes of the calls that begin now. The innermost purpose is last."""


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """A context that labels the calls inside it in profiles, for example with their bucket of gradients."""
    _labels.append(label)
    try:
        yield
    finally:
        _labels.pop()


def begin(group: ProcessGroup, name: str, number: int, given: Any, result: Any) -> Communication | None:
    """Record that a call begins, if this thread is being profiled."""
    recorder = modes.STATE.recorder
    if recorder is None:
        return None
    size = max(_bytes(given), _bytes(result))
    label = _labels[-1] if _labels else ""
    return recorder.communicate(
        f"mpi:{name}", Communication(name, group.group_name, list(group.ranks), number, size, label)
    )


def _bytes(values: Any) -> int:
    """Return the number of bytes of the tensors and arrays in nested lists."""
    if isinstance(values, (Tensor, ndarray)):
        return int(values.nbytes)
    if isinstance(values, Iterable) and not isinstance(values, str):
        return sum(map(_bytes, values))
    return 0


@contextmanager
def waiting(call: Communication) -> Iterator[None]:
    """A context that records a wait for a call as a separate event, if the waiting thread is profiled."""
    recorder = modes.STATE.recorder
    if recorder is None:
        yield
        return
    event = recorder.begin(f"mpi:{call.name}{WAIT}")
    try:
        yield
    finally:
        recorder.finish(event)
