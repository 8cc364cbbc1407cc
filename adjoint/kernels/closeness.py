"""Equality up to a tolerance."""

from __future__ import annotations

from typing import Any

import numpy

from .layout import laid_out
from .precision import widen

Array = numpy.ndarray[Any, Any]


def isclose(first: Array, second: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """Whether elements of two arrays of one dtype differ by no more than `atol + rtol * abs(second)`.

    Infinities must be equal.
    """
    close = laid_out(numpy.asarray(numpy.equal(first, second)), (first, second))
    inexact = first.dtype.kind in "fcV"
    if equal_nan and inexact:
        close = close | ((first != first) & (second != second))
    if rtol == 0 and atol == 0:
        return numpy.asarray(close)
    first, second = widen(first), widen(second)
    if not inexact:
        first, second = first.astype(numpy.float64), second.astype(numpy.float64)
    real = numpy.abs(second).dtype.type
    with numpy.errstate(all="ignore"):
        allowed = real(atol) + numpy.abs(real(rtol) * second)
        difference = numpy.abs(first - second)
        close = close | (numpy.isfinite(difference) & (difference <= allowed))
    return numpy.asarray(close)
