"""The addresses of the elements of arrays, found quickly."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..._runtime.platform import ctypes

may_share_memory: Any = getattr(numpy.may_share_memory, "__wrapped__", numpy.may_share_memory)
"""NumPy's function, without its search for other array types."""


def address(array: Any) -> int:
    """Return the address of the first element of an array."""
    return int(array.__array_interface__["data"][0])


AFTER_HEAD = object.__basicsize__
"""The offset of the address of the elements in an array object.

In all versions of NumPy's binary interface, it follows the head.
"""


def _address_in_object(array: Any) -> int:
    """Return the address of the first element in an eighth of the time of `ctypes`."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"{type(array).__name__} is no array")
    return _pointer_at(id(array) + AFTER_HEAD).value or 0


_pointer_at = ctypes.c_void_p.from_address
_probe = numpy.zeros(3)

IN_OBJECTS = sys.implementation.name == "cpython" and bool(ctypes) and _address_in_object(_probe) == address(_probe)
"""Whether this Python's array objects have this layout."""

if IN_OBJECTS:
    address = _address_in_object


def overlap(first: Any, second: Any) -> bool:
    """Return whether two arrays may share memory and are not views of exactly the same elements."""
    if not may_share_memory(first, second):
        return False
    return address(first) != address(second) or first.strides != second.strides or first.shape != second.shape
