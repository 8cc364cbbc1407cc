"""The entropy of probabilities, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .constants import ZERO, typed
from .pointwise import fused

Array = numpy.ndarray[Any, Any]


@fused("entr_cpu", "f")
def entr(self: Array) -> Array:
    """`-self * log(self)`: 0 at 0, -inf below."""
    positive = -self * numpy.log(self)
    lowest = numpy.where(self == ZERO[self.dtype], ZERO[self.dtype], typed(-math.inf, self.dtype))
    return numpy.where(self <= ZERO[self.dtype], lowest, positive)
