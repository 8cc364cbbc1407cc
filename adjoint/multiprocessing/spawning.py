"""Starting several processes that run one function, and raising their errors in this process."""

from __future__ import annotations

import multiprocessing.connection
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from .._runtime.platform import multiprocessing, select, signal
from .._runtime.tracebacks import shorten, warn

GRACE_SECONDS = 5.0
"""The seconds in which a process may clean up after its parent has died."""


def end_with_parent(*, at_once: bool) -> None:
    """Observe the parent process. When it dies, end immediately, or first try an interrupt."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    waits = _waiter(parent.pid)
    threading.Thread(target=_end, args=(waits, at_once), name="adjoint-parent", daemon=True).start()


def _end(wait: Callable[[], None], at_once: bool) -> None:
    wait()
    if not at_once:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE_SECONDS)
    os._exit(1)


def _waiter(pid: int) -> Callable[[], None]:
    """Return an object that becomes ready when the process with this number has died."""
    try:
        # The standard library watches a pipe, which stays open while any process that was forked later lives.
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return lambda: None
    except (AttributeError, OSError):
        parent = multiprocessing.parent_process()
        assert parent is not None
        return parent.join
    poll = select.poll()
    poll.register(watched, select.POLLIN)

    def wait() -> None:
        poll.poll()

    return wait


class ProcessException(Exception):
    """The error for a process that has failed.

    `error_index` is its number among the started processes, and `error_pid` its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The error for a process that has raised an exception."""


class ProcessExitedException(ProcessException):
    """The error for a process that was ended by a signal, or by an exit code other than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], number: int, args: tuple[Any, ...], errors: Any) -> None:
    """Call the function in the new process, and send its exception as text."""
    end_with_parent(at_once=False)
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  (raised by who waits)
        shorten(error)
        errors.send("".join(traceback.format_exception(error)))
        sys.exit(1)


class ProcessContext:
    """A group of processes that run together."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self._errors = errors

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one of the processes ends.

        Return whether all processes have ended. If one process fails, end the others and raise its error.

        Args:
            timeout: the number of seconds to wait.
            grace_period: the number of seconds after which processes that do not end are killed.
        """
        failed = self._failed()
        if failed is None:
            waiting = {process.sentinel: process for process in self.processes if process.exitcode is None}
            for sentinel in multiprocessing.connection.wait(list(waiting), timeout) if waiting else ():
                waiting[sentinel].join()
            failed = self._failed()
        if failed is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = None if grace_period is None else time.monotonic() + grace_period
        for process in self.processes:
            process.join(None if end is None else max(0.0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return True

    def _failed(self) -> int | None:
        """Return the number of a process that has failed."""
        return next((number for number, process in enumerate(self.processes) if process.exitcode), None)

    def _raise(self, number: int) -> None:
        process, errors = self.processes[number], self._errors[number]
        try:
            told = errors.recv()
        except EOFError:
            told = None
        if told is not None:
            text = f"\n\n-- Process {number} terminated with the following error:\n{told}"
            raise ProcessRaisedException(text, number, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {number} terminated with signal {name}"
            raise ProcessExitedException(message, number, process.pid, code, name)
        raise ProcessExitedException(f"process {number} terminated with exit code {code}", number, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(number, *args)` in `nprocs` processes, with `number` counted from 0.

    Wait for the processes and return None. With `join=False`, immediately return a context for waiting.

    Raises:
        ProcessRaisedException: if a process raises an error. The message contains its traceback.
        ProcessExitedException: if a process ends in another way.
    """
    kind: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        ours, its = kind.Pipe(duplex=False)
        process = kind.Process(target=_run, args=(fn, number, args, its), daemon=daemon)
        process.start()
        its.close()
        processes.append(process)
        errors.append(ours)
    context = ProcessContext(processes, errors)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn` in several processes, like `start_processes`. New processes start with a fresh interpreter."""
    if start_method != "spawn":
        warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t "
            "torch.multiprocessing.start_processes(...)",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
