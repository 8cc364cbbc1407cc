"""Modified Bessel functions of the first kind, of orders 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .pointwise import fused

Array = numpy.ndarray[Any, Any]

_NEAR = 30.0
_NODES = 32
_TERMS = 20


def _scaled(self: Array, order: int) -> Array:
    """The function of `|self|` times `exp(-|self|)`."""
    magnitude = numpy.abs(self)
    near = _integrated(numpy.minimum(magnitude, _NEAR), order)
    return numpy.where(magnitude > _NEAR, _expanded(numpy.maximum(magnitude, _NEAR), order), near)


def _integrated(x: Array, order: int) -> Array:
    """NIST DLMF 10.32.3, the mean of exp(x * cos(t)) * cos(order * t), by the midpoint rule.

    On a period the rule's error is the function of order 64, nothing at all for x up to 30. The nodes at t and pi - t
    are taken together, so that nothing cancels near 0.
    """
    total = numpy.zeros_like(x)
    for node in range(_NODES // 2):
        cosine = math.cos((node + 0.5) * math.pi / _NODES)
        grown = numpy.exp(x * (cosine - 1))
        pair = -numpy.expm1(x * (-2 * cosine)) * cosine if order else 1 + numpy.exp(x * (-2 * cosine))
        total += grown * pair
    return total / _NODES


def _expanded(x: Array, order: int) -> Array:
    """NIST DLMF 10.40.1, the asymptotic expansion."""
    total, term = numpy.ones_like(x), numpy.ones_like(x)
    for k in range(1, _TERMS + 1):
        term = term * (((2 * k - 1) ** 2 - 4 * order**2) / (8 * k)) / x
        total += term
    return total / numpy.sqrt(2 * math.pi * x)


@fused("i0e_cpu", "f")
def i0e(self: Array) -> Array:
    """The function of order 0 times `exp(-|self|)`."""
    return _scaled(self, 0)


@fused("i1e_cpu", "f")
def i1e(self: Array) -> Array:
    """The function of order 1 times `exp(-|self|)`."""
    return numpy.copysign(_scaled(self, 1), self)


@fused("i1_cpu", "f")
def i1(self: Array) -> Array:
    """The function of order 1."""
    return numpy.copysign(_scaled(self, 1) * numpy.exp(numpy.abs(self)), self)
