"""`torch.multiprocessing`: the standard library's `multiprocessing`, and `spawn`. Tensors travel by value."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *

from .spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_STRATEGIES = {"file_system"}

__all__ = [
    *(
        name
        for name in dir(multiprocessing)
        if name[0] != "_" and name not in ("process", "reduction", "sys", "context")
    ),
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


def get_all_sharing_strategies() -> set[str]:
    """The ways to share tensors between processes: "file_system" alone; it is a name, tensors are copied."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The way in use."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept one of `get_all_sharing_strategies()`, or "file_descriptor"; tensors are copied in any case."""
    if new_strategy not in {*_STRATEGIES, "file_descriptor"}:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
