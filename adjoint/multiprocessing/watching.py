"""Processes that end with the process that has started them, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
import time
from collections.abc import Callable

GRACE_SECONDS = 5.0
"""How long a process may clean up after its parent has died."""


def end_with_parent(*, at_once: bool) -> None:
    """Watch the process that has started this one: when it dies, end at once, or by an interrupt first."""
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
    """What returns when the process of this number has died."""
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
