"""Where the elements of many arrays begin, found at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy
from numpy import ndarray

from .language import Int, Pointer, address, i64, loops

_OFFSET = object.__basicsize__
"""Where an array, as an object in memory, keeps the address of its elements: behind what every object has."""


def _is_there() -> bool:
    """Whether this Python and this NumPy lay arrays out so; their documentation promises it of NumPy alone."""
    array = numpy.empty(3)
    return ctypes.c_void_p.from_address(id(array) + _OFFSET).value == address(array)


_DIRECT = _is_there()


@loops
def read_data(objects: Pointer[Pointer[i64]], out: Pointer[i64], n: Int, words: Int) -> None:
    """What objects hold so many words behind their beginning."""
    for i in range(n):
        out[i] = objects[i][words]


def addresses(arrays: Sequence[ndarray]) -> ndarray:
    """`address` of each array, as an array of int64; the arrays have to be kept alive while it is used."""
    if not _DIRECT:
        return numpy.array(list(map(address, arrays)), numpy.int64)
    objects = numpy.fromiter(map(id, arrays), numpy.int64, len(arrays))
    found = numpy.empty_like(objects)
    read_data.compiled()(address(objects), address(found), len(arrays), _OFFSET // 8)
    return found
