"""Collectives that are under way while the program computes: a thread lets MPI make progress until they are complete.

MPI moves data when it is called, and a large array moves in parts. A program that has started a collective and computes does not call it. The
thread sleeps between its calls; it ends nothing and decides nothing.
"""

from __future__ import annotations

import threading
import time

from .work import MESSAGES, UNDER_WAY, advance_all

INTERVAL = 1e-3
"""The seconds between two calls: shorter ones take time from a program that uses all processors."""

_needed = threading.Event()
_thread: list[threading.Thread] = []


def watch() -> None:
    """Let all that has been started make progress until it is complete."""
    if not _thread or not _thread[0].is_alive():
        _thread[:] = [threading.Thread(target=_run, daemon=True, name="adjoint.distributed progress")]
        _thread[0].start()
    _needed.set()


def _run() -> None:
    while True:
        _needed.wait()
        advance_all()
        if not UNDER_WAY and not MESSAGES:
            _needed.clear()
            if UNDER_WAY or MESSAGES:  # started between the two lines above
                _needed.set()
        time.sleep(INTERVAL)
