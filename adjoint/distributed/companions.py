"""Ending all processes when one fails, if no MPI launcher has started them.

Each process has a connection to the process manager, and a thread that reads from it. The manager tells all processes
when one has failed or disappeared. All processes then end.
"""

from __future__ import annotations

import contextlib
import multiprocessing.util
import os
import sys
import threading
import traceback
from typing import NoReturn

from .._runtime.platform import socket

LAST = -1000
"""The priority of the last action of `multiprocessing` at the end of a process. By then, queues have sent their contents."""


class Companions:
    """The connection of this process to the process manager. Until this process leaves, all processes end together."""

    def __init__(self, rank: int, host: str, port: int) -> None:
        self.rank = rank
        self._process = os.getpid()
        self._connection = socket.create_connection((host, port))
        self._all_end = threading.Event()
        self.enter()
        threading.Thread(target=self._listen, daemon=True, name="adjoint.distributed companions").start()
        # Also register it for the end of processes of `multiprocessing`, which calls nothing else.
        multiprocessing.util.Finalize(None, self._end_in_order, exitpriority=LAST)

    def enter(self) -> None:
        """From now on, end all processes when this process ends."""
        self._send(f"cmd=enter rank={self.rank}")

    def leave(self) -> None:
        """From now on, allow this process to end while others continue."""
        self._send(f"cmd=leave rank={self.rank}")

    def give_up(self) -> None:
        """End this process alone, because the others have not arrived."""
        self.leave()
        self._all_end.set()

    def end_all(self, status: int) -> NoReturn:
        """End all processes with an exit status, and this process immediately."""
        self._send(f"cmd=fail rank={self.rank} status={status}")
        os._exit(status)

    def _send(self, line: str) -> None:
        if os.getpid() == self._process:  # and not a fork
            with contextlib.suppress(OSError):
                self._connection.sendall(f"{line}\n".encode())

    def _end_in_order(self) -> None:
        """At the end of the program, wait until the other processes end too, as MPI does.

        After an error, do not wait for the other processes.
        """
        error = sys.exc_info()[1]  # at the end of a process of `multiprocessing`; other programs have ended already
        if error is not None and not isinstance(error, SystemExit):
            traceback.print_exception(error)
        if error is not None and (code := getattr(error, "code", 1)):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)
        self._send(f"cmd=end rank={self.rank}")
        self._all_end.wait()

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._connection.makefile(encoding="ascii") as lines:
            for line in lines:
                rank, status, said = (int(word) for word in line.split())
                if not status:
                    break
                if not said:
                    print(f"[rank{self.rank}]: rank {rank} has died, so all end", file=sys.stderr, flush=True)
                os._exit(status)
        self._all_end.set()
