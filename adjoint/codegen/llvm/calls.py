"""How compiled loops are told what to work on: one table for a call, made in less than a microsecond.

The table has the address of a layout, integers that all calls for arrays of the same shapes and strides share; then where each
array is; then scalars.

Where the elements of many arrays begin is found at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy
from numpy import ndarray

from ...kernels.runtime.addresses import AFTER_HEAD, IN_OBJECTS
from .language import Int, Pointer, address, as_pointer, i64, loops

BEFORE_BYTES = bytes.__basicsize__ - 1
"""Where in an object of bytes they begin, on a Python that lays objects out so (`IN_OBJECTS`)."""

ARRAYS_AT = 1
"""Behind the address of the layout."""

place_of = id if IN_OBJECTS else address
"""What a table holds for an array: its object, in which loops find the address, or the address."""


@loops(noalias=False)
def elements_at(table: Pointer[i64], number: Int) -> Int:
    """The address of the elements of an array of the table."""
    place = table[ARRAYS_AT + number]
    if IN_OBJECTS:
        return as_pointer(place + AFTER_HEAD, i64)[0]
    return place


class CallTables:
    """The tables of all calls with one layout, of so many arrays, and scalars of a struct's `character` ("d" or "q")."""

    def __init__(self, layout: Sequence[int], arrays: int, scalars: int, character: str) -> None:
        self._layout = array("q", layout)
        self.layout: int = self._layout.buffer_info()[0]
        self.pack = Struct(f"{ARRAYS_AT + arrays}q{scalars}{character}").pack

    def make(self, arrays: Sequence[ndarray], scalars: Sequence[Any]) -> Any:
        """A table, which is to be kept as long as it is used.

        Raises:
            struct.error: if a scalar is of another kind.
            OverflowError: if it is too large.
        """
        table = self.pack(self.layout, *map(place_of, arrays), *scalars)
        return table if IN_OBJECTS else array("q", table)

    def address(self, table: Any) -> int:
        """The address of what `make` has made."""
        return id(table) + BEFORE_BYTES if IN_OBJECTS else table.buffer_info()[0]


@loops(explicit=True, plain=True)
def read_data(objects: Pointer[Pointer[i64]], out: Pointer[i64], n: Int, words: Int) -> None:
    """What objects hold so many words behind their beginning."""
    for i in range(n):
        out[i] = objects[i][words]


def addresses(arrays: Sequence[ndarray]) -> ndarray:
    """`address` of each array, as an array of int64; the arrays have to be kept alive while it is used."""
    if not IN_OBJECTS:
        return numpy.array(list(map(address, arrays)), numpy.int64)
    objects = numpy.fromiter(map(id, arrays), numpy.int64, len(arrays))
    found = numpy.empty_like(objects)
    read_data.compiled()(address(objects), address(found), len(arrays), AFTER_HEAD // 8)
    return found
