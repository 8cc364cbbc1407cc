"""Where the elements of many arrays begin, found at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from numpy import ndarray

from ...kernels.runtime.addresses import AFTER_HEAD, IN_OBJECTS
from .language import Int, Pointer, address, i64, loops


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
