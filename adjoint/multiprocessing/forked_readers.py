"""Copies of arena memory in a forked process. They are needed because workers reuse their arenas.

The parent does not free such memory before the child has copied it. The child signals the end of the copy by closing
its end of a pipe. The pipe is also closed if the child dies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from .._runtime.platform import ctypes, mmap, select

MAP_FIXED, MAP_ANONYMOUS, MAP_PRIVATE = 0x10, 0x20, 0x02


class Copying:
    """A child that is copying. `done` returns whether it has finished."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def done(self) -> bool:
        """Return whether the child has finished copying, or has died."""
        if self._fd >= 0 and select.select([self._fd], [], [], 0)[0]:
            os.close(self._fd)
            self._fd = -1
        return self._fd < 0

    def __del__(self) -> None:
        if self._fd >= 0 and os.close is not None:
            os.close(self._fd)


def copy_pages(mapping: memoryview, ranges: Iterable[tuple[int, int]]) -> None:
    """Replace the pages of a shared mapping that hold these ranges by private pages with the same contents."""
    whole = numpy.frombuffer(mapping, numpy.uint8)
    pages = sorted(
        {page for start, stop in ranges for page in range(start // mmap.PAGESIZE, -(-stop // mmap.PAGESIZE))}
    )
    system = ctypes.CDLL(None, use_errno=True).mmap
    system.restype = ctypes.c_void_p
    system.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    while pages:
        length = next((n for n in range(1, len(pages)) if pages[n] != pages[0] + n), len(pages))
        start, stop = pages[0] * mmap.PAGESIZE, (pages[0] + length) * mmap.PAGESIZE
        held = whole[start:stop].copy()
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        place = whole.ctypes.data + start
        if system(place, stop - start, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place:
            whole[start:stop] = held
        del pages[:length]


_forking: list[Any] = []


def watch_forks(live: Callable[[], list[Any]]) -> None:
    """Make forked processes copy the memory that `live()` returns, from now on.

    The parent calls `pin(copying)` of the elements of `live()`. The child calls their method `copy_live()`.
    """

    def before() -> None:
        readers = live()
        _forking[:] = [readers, *os.pipe()] if readers else []

    def in_parent() -> None:
        if _forking:
            readers, read, write = _forking
            os.close(write)
            copying = Copying(read)
            for reader in readers:
                reader.pin(copying)
            _forking.clear()

    def in_child() -> None:
        if _forking:
            readers, read, write = _forking
            for reader in readers:
                with contextlib.suppress(OSError, ValueError):
                    reader.copy_live()
            os.close(read)
            os.close(write)
            _forking.clear()

    if hasattr(os, "register_at_fork") and hasattr(mmap, "MADV_REMOVE"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
