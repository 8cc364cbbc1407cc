"""NumPy arrays whose memory ends or begins at a protected page. A signal ends a process that accesses memory outside an array.

NumPy allocates arrays through a handler that a program can replace (NEP 49).
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy

PAGE = mmap.PAGESIZE
SET_HANDLER = 304
"""The index of `PyDataMem_SetHandler` in the table of NumPy's C functions."""

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_ALLOCATE_ZEROS = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_CHANGE_SIZE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("allocate", _ALLOCATE),
        ("allocate_zeros", _ALLOCATE_ZEROS),
        ("change_size", _CHANGE_SIZE),
        ("free", _FREE),
    )


class GuardedMemory:
    """An allocator with protected pages before and after each piece of memory. Each piece begins or ends at a protected page.

    Freed memory is returned to the system immediately, so an access to freed memory also fails.
    """

    def __init__(self, *, at_end: bool) -> None:
        self.at_end = at_end
        self.pieces: dict[int, tuple[int, int, int]] = {}
        library = ctypes.CDLL(None, use_errno=True)
        word, number, pointer = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
        self._map = ctypes.CFUNCTYPE(pointer, pointer, word, number, number, number, ctypes.c_long)(("mmap", library))
        self._unmap = ctypes.CFUNCTYPE(number, pointer, word)(("munmap", library))
        self._protect = ctypes.CFUNCTYPE(number, pointer, word, number)(("mprotect", library))
        self.handler = _Handler(
            name=b"guarded",
            version=1,
            allocate=_ALLOCATE(lambda _, size: self.allocate(size)),
            allocate_zeros=_ALLOCATE_ZEROS(lambda _, count, size: self.allocate(count * size, zeros=True)),
            change_size=_CHANGE_SIZE(lambda _, address, size: self.change_size(address, size)),
            free=_FREE(lambda _, address, size: self.free(address)),
        )

    def allocate(self, size: int, *, zeros: bool = False) -> int:
        """Allocate `size` bytes, and return their address."""
        room = -(-max(size, 1) // PAGE) * PAGE
        base = self._map(None, room + 2 * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if base is None or base == ctypes.c_void_p(-1).value:
            return 0
        self._protect(base + PAGE, room, mmap.PROT_READ | mmap.PROT_WRITE)
        # The size of an array is a multiple of the element size, so elements are aligned at both ends.
        address = base + PAGE + (room - size if self.at_end else 0)
        if not zeros:
            ctypes.memset(
                address, 0xFF, size
            )  # fill the memory with NaN, so that tests detect reads before the first write
        self.pieces[address] = base, room + 2 * PAGE, size
        return address

    def change_size(self, address: int, size: int) -> int:
        """Move the memory at `address` to `size` new bytes, and return their address."""
        changed = self.allocate(size)
        if address:
            ctypes.memmove(changed, address, min(size, self.pieces[address][2]))
            self.free(address)
        return changed

    def free(self, address: int) -> None:
        """Return the memory at `address` to the system."""
        if address:
            base, length, _ = self.pieces.pop(address)
            self._unmap(base, length)


_KEPT: list[GuardedMemory] = []


@contextmanager
def guarded_arrays(*, at_end: bool) -> Iterator[None]:
    """Make new arrays of this thread end (or begin) directly at a protected page."""
    memory = GuardedMemory(at_end=at_end)
    _KEPT.append(memory)  # arrays that exist after the block still need the allocator
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    point = ctypes.pythonapi.PyCapsule_GetPointer
    point.restype, point.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = point(numpy._core.multiarray._ARRAY_API, None)
    functions = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[SET_HANDLER])
    before = set_handler(make(ctypes.addressof(memory.handler), b"mem_handler", None))
    try:
        yield
    finally:
        set_handler(before)
