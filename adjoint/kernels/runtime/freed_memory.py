"""Keep freed memory in the process, for the next arrays.

The system takes more time for fresh pages than many kernels take to fill them. The GNU C library returns large blocks
to the system immediately, until a program has freed a block of 32 MB. From then on, the library keeps freed blocks of
up to this size, and up to twice this size in total. Programs with smaller arrays never reach this state, and need fresh
pages in each step.
"""

from __future__ import annotations

import os

from ..._runtime.platform import ctypes

LARGEST_BLOCK = 1 << 25
"""The size in bytes of the largest block that is kept, which is the limit of the C library's own adaptation."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""The numbers of `mallopt`'s parameters."""


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory, unless the user's settings differ. Return whether it does."""
    if any(name in os.environ for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, ModuleNotFoundError, OSError, TypeError):  # another C library, or no callable one
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BLOCK) and mallopt(_TRIM_THRESHOLD, 2 * LARGEST_BLOCK))
