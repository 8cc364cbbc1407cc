"""Memory that processes share: unnamed files, which the system frees when the last process releases them.

No cleanup is necessary. When a process dies, its descriptors and mappings end with it. The module handles bytes, and
knows neither arrays nor tensors.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable

from ..._runtime.platform import mmap

__all__ = ["Mapping", "Segment", "allocated", "attached", "mapped_file", "new_file"]

ALIGNMENT = 64
"""The alignment of memory, in multiples of a cache line."""

_SMALL, _SHARED_OUT = 1 << 16, 1 << 20
"""Requests of at most the first number of bytes become parts of segments of the second number of bytes. One descriptor serves
all parts of a segment."""


def new_file(size: int = 0) -> int:
    """Return the descriptor of a new unnamed file in memory."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("adjoint", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    if size:
        os.ftruncate(fd, size)
    return fd


class Mapping(mmap.mmap):
    """Memory that other processes see too."""


def mapped_file(path: str, shared: bool, length: int) -> Mapping:
    """Map the first `length` bytes of a file into memory.

    If `shared`, changes reach the file. Otherwise changes stay private. A shared file is created or extended if necessary.
    """
    if length < 0:
        raise RuntimeError(f"unable to mmap {length} bytes from file <{path}>: Cannot allocate memory (12)")
    try:
        file = os.open(path, (os.O_RDWR | os.O_CREAT) if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})") from None
    try:
        size = os.fstat(file).st_size
        if size < length:
            if not shared:
                raise RuntimeError(f"file <{path}> size <{size}> is smaller than the required mapping size <{length}>")
            os.ftruncate(file, length)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return Mapping(file, length, access=access) if length else Mapping(-1, 1)
    finally:
        os.close(file)


class Segment(Mapping):
    """A file that is mapped into this process as a whole, and can be sent to other processes. It owns the descriptor."""

    fd: int
    key: tuple[int, int]

    def __new__(cls, fd: int, size: int) -> Segment:
        """Map the first `size` bytes of the file."""
        segment = super().__new__(cls, fd, size)
        segment.fd = fd
        segment.key = _key(fd)
        _segments[segment.key] = segment
        return segment

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # `os` is None while the interpreter exits
        close(self.fd)


def _key(fd: int) -> tuple[int, int]:
    """Return a key that identifies a file during its life."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


_segments: weakref.WeakValueDictionary[tuple[int, int], Segment] = weakref.WeakValueDictionary()
"""The segments of this process. A file that arrives twice is mapped once."""


def attached(fd: int, size: int) -> Segment:
    """Return the segment of a file that another process has sent. The segment takes ownership of the descriptor."""
    found = _segments.get(_key(fd))
    if found is None:
        return Segment(fd, size)
    if fd != found.fd:
        os.close(fd)
    return found


class _SmallParts:
    """An allocator that hands out consecutive parts of one segment after another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.segment: Segment | None = None
        self.used = 0

    def take(self, size: int) -> memoryview:
        with self.lock:
            if self.segment is None or self.used + size > _SHARED_OUT:
                self.segment, self.used = Segment(new_file(_SHARED_OUT), _SHARED_OUT), 0
            start = self.used
            self.used = -(-(start + size) // ALIGNMENT) * ALIGNMENT
            return memoryview(self.segment)[start : start + size]


_small = _SmallParts()


def _renew() -> None:
    """Make a forked child allocate from its own segment. Otherwise it would allocate the same memory as its parent."""
    global _small
    _small = _SmallParts()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def allocated(size: int) -> memoryview:
    """Return new shared memory of `size` bytes (at least one), initialized to 0."""
    if size <= _SMALL:
        return _small.take(size)
    return memoryview(Segment(new_file(size), size))
