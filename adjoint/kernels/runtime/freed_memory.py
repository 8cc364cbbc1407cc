"""Freed memory that stays with the process, for the next arrays.

Fresh pages cost the system more than many kernels take to fill them. The GNU C library gives large blocks back at once, until
a program has freed one of 32 MB: from then on it keeps blocks of up to that size, and up to twice as much in all. Programs whose
arrays are smaller never get there, and pay for fresh pages in each step.
"""

from __future__ import annotations

import os

from ..._runtime.platform import ctypes

LARGEST_BLOCK = 1 << 25
"""The largest block that is kept, in bytes: where the C library's own adaptation ends."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""The numbers of `mallopt`'s parameters."""


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory as it does after a freed block of 32 MB. Return False if it has no such setting.

    Settings of the user's (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`) stay as they are.
    """
    if any(name in os.environ for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, ModuleNotFoundError, OSError, TypeError):  # another C library, or none that can be called
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BLOCK) and mallopt(_TRIM_THRESHOLD, 2 * LARGEST_BLOCK))
