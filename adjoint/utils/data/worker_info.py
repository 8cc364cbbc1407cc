"""The information that a worker process has about itself, and memory for the batches that it sends."""

from __future__ import annotations

import dataclasses
from typing import Any

import adjoint as torch

__all__ = ["WorkerInfo", "become", "get_worker_info", "memory_for_sending"]


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """A description of a worker process: its number, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_own: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the number and seed of a loader's worker process, or None in any other process."""
    return _own


def become(info: WorkerInfo) -> None:
    """Make this process the worker with this number."""
    global _own
    _own = info


def memory_for_sending(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | None:
    """In a worker, return an uninitialized tensor that can be sent without a copy. In other processes, return None."""
    return None if _own is None else torch.multiprocessing.arenas.empty_for_sending(shape, dtype)
