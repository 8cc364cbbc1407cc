"""`torch.multiprocessing`: Python's `multiprocessing`, with `spawn`, and with queues and pipes that share tensors."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *
from pathlib import Path

from . import arenas, channels, compiled, reductions, sharing
from .spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"
_NAME = Path("/proc/thread-self/comm")


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the strategies for sharing tensors between processes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the selected strategy."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Select one of `get_all_sharing_strategies()`.

    Descriptors are sent in any case, because memory with a name would remain after its processes are killed.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy


def _get_thread_name() -> str:
    """Return the name of this thread in the lists of the system, such as `ps -T`. Only Linux has it."""
    return _NAME.read_text().rstrip("\n")


def _set_thread_name(name: str) -> None:
    """Give this thread a name of at most 15 bytes in the lists of the system. Only Linux has such names."""
    _NAME.write_text(name)


reductions.init_reductions()
