"""A pass over a loader's dataset with worker processes: the distribution of tasks, and the end of the pass."""

from __future__ import annotations

import os
import pickle
import time
import weakref
from typing import TYPE_CHECKING, Any

import adjoint as torch

from ..._runtime.platform import multiprocessing, select, signal
from .iteration import Batches
from .worker import BATCH, END, ERROR, Task, work

if TYPE_CHECKING:
    from .dataloader import DataLoader

__all__ = ["BatchesOfWorkers"]

LOOK_SECONDS = 1.0
"""The interval at which a waiting process checks that its workers are alive.

Usually the closed channel shows immediately that a worker has died.
"""

EXIT_SECONDS = 5.0
"""The time in which workers may finish their current batch when they are no longer needed."""


class _Worker:
    """A worker process, the channel to it, and its arena."""

    def __init__(self, context: Any, task: Task) -> None:
        library = torch.multiprocessing
        self.reader = library.arenas.Reader()
        self.channel, end = library.channels.pair()
        descriptor = self.reader.fileno() if context.get_start_method() == "fork" else self.reader.descriptor()
        self.process = context.Process(target=work, args=(task, end, descriptor, self.reader.number), daemon=True)
        try:
            self.process.start()
        finally:
            end.close()
        self.is_active = True
        self.is_overdue = False
        self.tasks = 0

    def give(self, number: int | None, item: Any = None) -> None:
        """Let the worker fetch a batch. Without a number, start a new pass."""
        self.tasks += number is not None
        self.channel.post(torch.multiprocessing.reductions.dumps((self.reader.free(), number, item)))

    def how_it_ended(self) -> RuntimeError:
        """Return the error that describes how the process died."""
        self.process.join(EXIT_SECONDS)
        code, pid = self.process.exitcode, self.process.pid
        if code is not None and code < 0:
            text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. "
            if -code == getattr(signal, "SIGBUS", None):
                text += (
                    "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory "
                    "limit."
                )
            return RuntimeError(text)
        return RuntimeError(
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are lost due to "
            "multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )


def _end(workers: list[_Worker], parent: int) -> None:
    """Stop the workers in the process that started them, and await their end. One that is late is terminated at once."""
    if os.getpid() != parent:
        return
    for worker in workers:
        worker.channel.close()
        if worker.is_overdue:
            worker.process.terminate()
    end = time.monotonic() + EXIT_SECONDS
    for stop in (None, "terminate", "kill"):
        for worker in workers:
            if stop is not None and worker.process.is_alive():
                getattr(worker.process, stop)()
        for worker in workers:
            worker.process.join(max(0.0, end - time.monotonic()))
        end = time.monotonic() + 1
    for worker in workers:
        worker.reader.leave()


class BatchesOfWorkers(Batches):
    """An iterator over batches that workers fetch in advance. The workers end with it, unless the loader keeps them."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._prefetched = loader.prefetch_factor or 0
        if self._prefetched == 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        if loader.persistent_workers:
            self._let_go(loader)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._poll = select.poll()
        self._started: list[_Worker] = []
        self._shutdown_workers = weakref.finalize(self, _end, self._started, os.getpid())
        if context.get_start_method() == "fork":
            torch.multiprocessing.compiled.prepare()
        for number in range(loader.num_workers):
            task = Task(
                loader.dataset, loader._dataset_kind, loader._auto_collation, loader.collate_fn, loader.drop_last,
                self._base_seed, number, loader.num_workers, loader.worker_init_fn,
            )  # fmt: skip
            worker = _Worker(context, task)
            self._started.append(worker)
            self._poll.register(worker.channel.fileno(), select.POLLIN)
        self._by_descriptor = {worker.channel.fileno(): worker for worker in self._started}
        self._begin_tasks()

    def _let_go(self, loader: DataLoader[Any]) -> None:
        """Use a copy of the loader that does not refer to this object: in a cycle, workers would live on."""
        self._loader = object.__new__(type(loader))
        vars(self._loader).update(vars(loader), _iterator=None)

    def begin_again(self, loader: DataLoader[Any]) -> None:
        """Start another pass with the same workers."""
        self._let_go(loader)
        self._arrived.clear()
        self._owners.clear()
        while any(worker.tasks for worker in self._started):  # batches that were not requested
            self._take(LOOK_SECONDS)
        self._begin()
        for worker in self._started:
            worker.is_active = True
            worker.give(None)
        self._begin_tasks()

    def _begin_tasks(self) -> None:
        """Give each worker the maximum number of tasks."""
        loader = self._loader
        self._sent = self._received = self._turn = 0
        self._owners: dict[int, _Worker] = {}
        self._arrived: dict[int, tuple[int, Any]] = {}
        for _ in range(self._prefetched * loader.num_workers):
            self._give_task()

    @property
    def _workers(self) -> list[Any]:
        """The worker processes."""
        return [worker.process for worker in self._started]

    @property
    def _worker_pids_set(self) -> set[int]:
        """The process numbers of the workers."""
        return {worker.process.pid for worker in self._started}

    def _give_task(self) -> None:
        """Give the next item to the next worker that has not ended, or to any that is free if the order does not matter."""
        loader = self._loader
        count = len(self._started)
        for step in range(count):
            worker = self._started[(self._turn + step) % count]
            if worker.is_active and (loader.in_order or worker.tasks < self._most_tasks()):
                break
        else:
            return
        try:
            item = next(self._indices)
        except StopIteration:
            return
        self._turn = (self._turn + step + 1) % count
        worker.give(self._sent, item)
        self._owners[self._sent] = worker
        self._sent += 1

    def _most_tasks(self) -> int:
        """Return the maximum number of tasks of one worker while other workers have tasks."""
        active = sum(worker.is_active for worker in self._started)
        return self._prefetched * len(self._started) // active

    def _next_batch(self) -> Any:
        while True:
            number = self._next_number()
            if number is None:
                if not self._loader.persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if number not in self._arrived:
                self._wait(number)
                continue
            kind, content = self._arrived.pop(number)
            worker = self._owners.pop(number)
            worker.is_active = worker.is_active and kind != END
            self._give_task()
            if kind == BATCH:
                return content
            if kind == ERROR:
                content.reraise()

    def _next_number(self) -> int | None:
        """Return the number of the task with the next batch, or None after the last."""
        if not self._loader.in_order and self._arrived:
            return next(iter(self._arrived))
        while self._received < self._sent and self._received not in self._owners:
            self._received += 1
        return self._received if self._received < self._sent else None

    def _wait(self, number: int) -> None:
        """Wait until a batch arrives. If a number is given, wait for the batch with this number."""
        timeout = self._loader.timeout
        end = time.monotonic() + timeout if timeout > 0 else None
        while number not in self._arrived:
            if end is not None and time.monotonic() >= end:
                for worker in self._started:
                    worker.is_overdue = worker.tasks > 0
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            left = LOOK_SECONDS if end is None else max(0.0, min(LOOK_SECONDS, end - time.monotonic()))
            self._take(left)
            if self._arrived and not self._loader.in_order:
                return

    def _take(self, seconds: float) -> None:
        """Receive the messages of workers when at least one has arrived."""
        if not self._shutdown_workers.alive:
            raise RuntimeError("the workers of this DataLoader have ended")
        for worker in self._started:
            self._poll.modify(worker.channel.fileno(), select.POLLIN | select.POLLOUT * worker.channel.is_sending)
        ready = self._poll.poll(seconds * 1e3)
        dead = [] if ready else [worker for worker in self._started if not worker.process.is_alive()]
        for descriptor, events in ready:
            worker = self._by_descriptor[descriptor]
            if events & select.POLLOUT:
                worker.channel.flush()
            if events & ~select.POLLOUT:
                try:
                    for message in worker.channel.receive():
                        self._put(worker, *pickle.loads(message))
                except EOFError:
                    dead.append(worker)
        if dead:
            self._fail(dead)

    def _put(self, worker: _Worker, number: int, kind: int, content: Any, new_code: Any) -> None:
        """Store the message of a worker for a task."""
        worker.tasks -= 1
        worker.is_overdue = False
        torch.multiprocessing.compiled.note(new_code)
        if number in self._owners:
            self._arrived[number] = kind, content

    def _fail(self, dead: list[_Worker]) -> None:
        """Raise the error about workers that have died."""
        causes = [worker.how_it_ended() for worker in dead]
        pids = ", ".join(str(worker.process.pid) for worker in dead)
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from causes[0]
