"""Finding elements: whether they are among others, at which coordinates, and the first so many that are not zero."""

from __future__ import annotations

from typing import Any

import numpy

from .indexing import nonzero
from .masking import common_dtype
from .precision import type_name, widen

Array = numpy.ndarray[Any, Any]

_DIRECT = 10  # times elements ** 0.145: up to as many test elements, comparing with each is faster than sorting (NumPy's measure)


def isin(elements: Array, test_elements: Array, invert: bool = False) -> Array:
    """Whether each of `elements` is one of `test_elements`; with `invert`, whether it is none.

    Raises:
        RuntimeError: for booleans and complex numbers.
    """
    for array in (elements, test_elements):
        if array.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {type_name(array.dtype)}")
    dtype = common_dtype(elements, test_elements)
    elements, tests = (
        widen(elements.astype(dtype, copy=False)),
        widen(test_elements.astype(dtype, copy=False)).reshape(-1),
    )
    if tests.size < _DIRECT * max(elements.size, 1) ** 0.145:
        found = numpy.zeros(elements.shape, bool)
        for value in tests:
            found |= elements == value
    else:
        ordered = numpy.sort(tests)
        places = numpy.minimum(ordered.searchsorted(elements), ordered.size - 1)
        found = ordered[places] == elements
    return numpy.asarray(~found if invert else found)


def nonzero_static(self: Array, size: int, fill_value: int = -1) -> Array:
    """The indices of the first `size` nonzero elements, one row for each; rows of `fill_value` where there are fewer."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    places = nonzero(self)[:size]
    result = numpy.full((size, self.ndim), fill_value, numpy.int64)
    result[: len(places)] = places
    return result
