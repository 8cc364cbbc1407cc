"""Threads for large arrays. Rows are divided into tiles that stay in the cache, and threads take tiles until none is left.

NumPy releases the interpreter lock inside its loops, so Python threads run in parallel if tiles are large enough. The
calling thread always works too and never waits for a thread that has not started, so a busy machine costs little.

Each thread keeps its memory for intermediate results, because the system takes longer to provide memory than a thread
takes to fill it.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy
from numpy import ndarray

from ..._runtime.tracebacks import ending_at_caller
from ..._runtime.uninterrupted import uninterrupted
from .costs import TILE_BYTES

LINE = 64
"""The number of bytes in a cache line. A vector that extends over two lines is read at half the speed."""

_here = threading.local()
_lock = threading.Lock()
_jobs: SimpleQueue[tuple[contextvars.Context, _Job, Any]] = SimpleQueue()
_workers: list[threading.Thread] = []


def _default_num_threads() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


num_threads = _default_num_threads()
"""The number of threads that a kernel may use, including the calling thread."""


def get_num_threads() -> int:
    """Return the number of threads that a kernel may use, including the calling thread."""
    return num_threads


@ending_at_caller
def set_num_threads(n: int) -> None:
    """Let kernels use up to `n` threads.

    Raises:
        RuntimeError: if `n` is not a positive int.
    """
    global num_threads
    if not isinstance(n, int) or isinstance(n, bool):  # type: ignore[redundant-expr]
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    num_threads = n


class _Job:
    """One call of `parallel_rows`: the remaining tiles, and the first error of a worker."""

    def __init__(self, function: Callable[[int, int], object], n_rows: int, tile_rows: int) -> None:
        self.function = function
        self.n_rows = n_rows
        self.tile_rows = tile_rows
        self.take = itertools.count(0, tile_rows).__next__  # atomic
        self.error: BaseException | None = None
        self.closed = False

    def work(self) -> None:
        """Process tiles until none is left, the job is closed, or a worker has failed."""
        while not self.closed and self.error is None and (start := self.take()) < self.n_rows:
            self.function(start, min(start + self.tile_rows, self.n_rows))

    def help(self, place: Any) -> None:
        """Process tiles in a worker, unless the job is closed. The worker holds its place until it has finished."""
        if place.acquire(blocking=False):
            try:
                self.work()
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                self.error = self.error or error
            place.release()


def _serve() -> None:
    _here.is_worker = True
    while True:
        context, job, place = _jobs.get()
        context.run(job.help, place)  # the caller's `numpy.errstate` applies here too
        del context, job, place


def _start_workers(n: int) -> None:
    with _lock:
        while len(_workers) < n:
            worker = threading.Thread(target=_serve, name=f"adjoint-{len(_workers)}", daemon=True)
            try:
                worker.start()
            except RuntimeError:  # the system allows no more, or the interpreter exits: the caller works alone
                return
            _workers.append(worker)


def _forget_workers() -> None:
    """Forget all workers in a forked child, which has none of its parent's threads."""
    global _jobs, _lock
    _jobs = SimpleQueue()
    _lock = threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


@uninterrupted
def _close(job: _Job, places: list[Any]) -> None:
    """Take all places. An interrupt is raised after the last worker has left, because workers write to the caller's memory."""
    job.closed = True
    try:
        for place in places:
            place.acquire()
    except BaseException:
        _close(job, places)
        raise
    job.function = _nothing  # a worker that wakes late keeps nothing alive


def _nothing(start: int, stop: int) -> None:
    """The function of a finished job, which does nothing."""


def parallel_rows(
    function: Callable[[int, int], object],
    n_rows: int,
    row_bytes: int,
    *,
    tile_rows: int | None = None,
    tile_bytes: int = TILE_BYTES,
    parallel_bytes: int = TILE_BYTES,
) -> None:
    """Call `function(start, stop)` for consecutive row ranges that together cover `range(n_rows)`, on several threads.

    Ranges do not overlap, so a function that writes only its own rows needs no lock. `row_bytes` is the amount of
    memory that one row uses. Each range has about `tile_bytes`, or `tile_rows` rows. Work on less than
    `parallel_bytes`, and work inside a worker, stays on the calling thread. The first error of `function` is raised.
    """
    if n_rows <= 0:
        return
    if n_rows * row_bytes >= parallel_bytes:
        tile_rows = tile_rows or rows_of_tile(n_rows, row_bytes, tile_bytes)
    elif tile_rows is None or tile_rows >= n_rows:
        function(0, n_rows)
        return
    threads = min(num_threads, -(-n_rows // tile_rows))
    if threads == 1 or n_rows * row_bytes < parallel_bytes or getattr(_here, "is_worker", False):
        for start in range(0, n_rows, tile_rows):
            function(start, min(start + tile_rows, n_rows))
        return
    _start_workers(threads - 1)
    job, places = _Job(function, n_rows, tile_rows), [threading.RLock() for _ in range(threads - 1)]
    try:
        for place in places:
            _jobs.put((contextvars.copy_context(), job, place))
        job.work()
    finally:
        _close(job, places)
    error = job.error
    if error is not None:
        try:
            raise error
        finally:
            del error, job  # the traceback refers to this frame: avoid a cycle


def rows_of_tile(n_rows: int, row_bytes: int, tile_bytes: int = TILE_BYTES) -> int:
    """Return the rows of a tile: at most `tile_bytes`, the same number of tiles for all threads, whole cache lines."""
    tiles = -(-n_rows * row_bytes // tile_bytes)
    rows = -(-n_rows // (-(-tiles // num_threads) * num_threads))
    return rows if rows < LINE**2 else -(-rows // LINE) * LINE


_local = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: Any) -> ndarray:
    """Return uninitialized memory that stays with the thread and starts at a cache line. Each name has one array at a time."""
    size = math.prod(shape) * dtype.itemsize
    buffers = _local.__dict__.setdefault("buffers", {})
    buffer = buffers.get(name)
    if buffer is None or buffer.size < size:
        memory = numpy.empty(size + LINE, numpy.uint8)
        start = -memory.ctypes.data % LINE
        buffer = memory[start : start + size]
        if size <= 8 * TILE_BYTES:
            buffers[name] = buffer
    return ndarray(shape, dtype, buffer)
