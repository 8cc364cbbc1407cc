"""Run tries in forked children, so that a try that hangs or damages its process does not affect other tries."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any


def in_child(function: Callable[[], Iterator[Any]], patience: float) -> tuple[list[Any], str | None]:
    """Return the values that `function()` yields in a forked child, and the reason why the child ended too early, or None.

    `patience`: the number of seconds that the child may be silent.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _serve(function, reading, writing)
    os.close(writing)
    received, end = bytearray(), None
    silent = 0.0
    while True:
        if not select.select([reading], [], [], 0.1)[0]:
            silent += 0.1  # time in which the machine also stops this process does not count
            if silent < patience:
                continue
            os.kill(child, signal.SIGABRT)  # if enabled, `faulthandler` prints the position in the code
            end = f"silent for {patience:.0f} seconds"
            break
        silent, data = 0.0, os.read(reading, 1 << 16)
        if not data:
            break
        received += data
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    values = list(_values(bytes(received)))
    if end is None and status:
        end = f"child ended with status {os.waitstatus_to_exitcode(status)}"
    return values, end


def _serve(function: Callable[[], Iterator[Any]], reading: int, writing: int) -> None:
    status = 1
    try:
        os.close(reading)
        gc.callbacks.clear()  # callbacks of the test runner could swallow an interrupt
        for value in function():
            data = pickle.dumps(value)
            os.write(writing, len(data).to_bytes(4, "big") + data)
        status = 0
    except BaseException:
        print(traceback.format_exc().splitlines()[-1], file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _values(data: bytes) -> Iterator[Any]:
    position = 0
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + size <= len(data):
            yield pickle.loads(data[position : position + size])
        position += size


def now() -> float:
    """Return the time in seconds."""
    return time.perf_counter()
