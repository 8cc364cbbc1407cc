"""Memory for intermediate results that stays with its thread: fresh memory costs the system more than filling it."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy
from numpy import ndarray

SCRATCH_BYTES = 1 << 22
"""About how much a kernel should ask for at a time."""

_local = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: Any) -> ndarray:
    """Uninitialised memory that stays with the thread; each name holds one array at a time."""
    size = math.prod(shape) * dtype.itemsize
    buffers = _local.__dict__.setdefault("buffers", {})
    buffer = buffers.get(name)
    if buffer is None or buffer.size < size:
        buffer = numpy.empty(size, numpy.uint8)
        if size <= 2 * SCRATCH_BYTES:
            buffers[name] = buffer
    return buffer[:size].view(dtype).reshape(shape)
