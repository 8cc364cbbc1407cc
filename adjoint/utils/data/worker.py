"""A worker process of a loader. It fetches the requested batches until the loader stops it."""

from __future__ import annotations

import dataclasses
import os
import random
import traceback
from collections.abc import Callable
from typing import Any

import numpy

import adjoint as torch

from ..._runtime.platform import signal
from ..._runtime.tracebacks import shorten
from .collate import fetcher
from .dataset import IterableDataset
from .worker_info import WorkerInfo, become
from .worker_info import get_worker_info as get_worker_info

__all__ = ["BATCH", "END", "ERROR", "Task", "WorkerError", "work"]

BATCH, END, ERROR = range(3)
"""The kinds of results of a task: a batch, the end of the samples, or an error."""


@dataclasses.dataclass
class Task:
    """The data that a worker receives at its start.

    The worker then receives `(places, number, item)`: the places of its arena that are free, the number of the task,
    and the indices of the task. The worker returns the number of the task with the batch. A message without a number
    starts a new pass.
    """

    dataset: Any
    dataset_kind: int
    is_batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    number: int
    num_workers: int
    init: Callable[[int], None] | None


_HEADER = "Traceback (most recent call last):\n"


class WorkerError:
    """An error that is sent to the loader's process: its class, and its message with the traceback."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind: Any = type(error)
        self.name = self.kind.__name__
        # Drop the objects of the chain, because some may not be picklable.
        shorten(error)
        self.text = "".join(traceback.format_exception(error))
        if error.__traceback__ is None:
            self.text = _HEADER + self.text
        self.where = where

    def reraise(self) -> None:
        """Raise an error of the same class again.

        If the class cannot be constructed from a message alone, raise a RuntimeError.
        """
        message = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Text(message))
        try:
            error = self.kind(message=message) if getattr(self.kind, "message", None) else self.kind(message)
        except Exception:  # noqa: BLE001
            raise RuntimeError(message) from None
        raise error


class _Text(str):
    """A message whose `repr` is its text, so that `KeyError` shows its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def seed_all(base_seed: int, number: int) -> int:
    """Seed the random numbers of Python, this library and NumPy as PyTorch does in this worker, and return the seed."""
    seed = base_seed + number
    random.seed(seed)
    torch.manual_seed(seed)
    numpy.random.seed(_generate_state(base_seed, number))  # noqa: NPY002
    return seed


def _generate_state(base_seed: int, number: int) -> list[int]:
    """Return the seed for NumPy's random numbers in the worker with this number."""
    words = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(words).generate_state(4).tolist()


def work(task: Task, end: Any, descriptor: Any, reader: int) -> None:
    """Run a worker.

    `end` is the worker's end of the channel. `descriptor` is the descriptor of the file for batches. `reader` is the
    number of its reader.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process is interrupted too, and ends its workers
    torch.multiprocessing.spawning.end_with_parent(at_once=True)
    torch.set_num_threads(1)
    seed = seed_all(task.base_seed, task.number)
    become(WorkerInfo(task.number, task.num_workers, seed, task.dataset))
    arena = torch.multiprocessing.arenas.Arena(
        os.dup(descriptor) if isinstance(descriptor, int) else descriptor.detach(), reader
    )
    torch.multiprocessing.arenas.set_own_arena(arena)
    new_code = torch.multiprocessing.compiled.New()
    failure: WorkerError | None = None
    try:
        if task.init is not None:
            task.init(task.number)
    except Exception as error:  # noqa: BLE001
        failure = _error(task, error)
    fetch: Any = None
    try:
        while True:
            places, number, item = torch.multiprocessing.reductions.loads(end.receive())
            for place, times in places:
                arena.give_back(place, times)
            if number is None:
                fetch = None
                continue
            kind, content = ERROR, failure
            if failure is None:
                try:
                    if fetch is None:
                        fetch = fetcher(task.dataset_kind, task.dataset, task.is_batched, task.collate, task.drop_last)
                    kind, content = BATCH, fetch(item)
                except Exception as error:  # noqa: BLE001
                    kind, content = _outcome(task, error)
            end.send(_message(task, arena, number, kind, content, new_code.take()))
            failure = content = item = None
    except (EOFError, OSError, KeyboardInterrupt):  # the other process has ended
        pass


def _outcome(task: Task, error: Exception) -> tuple[int, Any]:
    """Return the message that is sent instead of a batch: the end of the samples, or an error."""
    if isinstance(error, StopIteration) and isinstance(task.dataset, IterableDataset):
        return END, None
    return ERROR, _error(task, error)


def _error(task: Task, error: Exception) -> WorkerError:
    return WorkerError(error, f"in DataLoader worker process {task.number}")


def _message(task: Task, arena: Any, number: int, kind: int, content: Any, new_code: Any) -> bytes:
    """Return the message about a task. If it cannot be pickled, return a message about this error."""
    try:
        message: bytes = arena.message((number, kind, content, new_code))
    except Exception as error:  # noqa: BLE001
        failure = _error(task, error)
        if kind == ERROR:  # an error of this class cannot be sent
            failure = content
            failure.kind = RuntimeError
        message = arena.message((number, ERROR, failure, new_code))
    return message
