"""Modified Bessel functions of the first kind, scaled and not, accurate to a few units in the last place of float64."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp

Array = numpy.ndarray[Any, Any]

_NEAR = 30.0
_NODES = 32
_TERMS = 20


def _scaled(self: Any, order: int) -> Any:
    """The function of `|self|` times `exp(-|self|)`."""
    magnitude = xp.abs(self)
    near = _integrated(xp.minimum(magnitude, _NEAR), order)
    return xp.where(magnitude > _NEAR, _expanded(xp.maximum(magnitude, _NEAR), order), near)


def _integrated(x: Any, order: int) -> Any:
    """NIST DLMF 10.32.3, the mean of exp(x * cos(t)) * cos(order * t), by the midpoint rule.

    On a period the rule's error is the function of order 64, nothing at all for x up to 30. The nodes at t and pi - t
    are taken together, so that nothing cancels near 0.
    """
    total = xp.zeros_like(x)
    for node in range(_NODES // 2):
        cosine = math.cos((node + 0.5) * math.pi / _NODES)
        grown = xp.exp(x * (cosine - 1))
        pair = -xp.expm1(x * (-2 * cosine)) * cosine if order else 1 + xp.exp(x * (-2 * cosine))
        total = total + grown * pair
    return total / _NODES


def _expanded(x: Any, order: int) -> Any:
    """NIST DLMF 10.40.1, the asymptotic expansion."""
    total = term = xp.ones_like(x)
    for k in range(1, _TERMS + 1):
        term = term * (((2 * k - 1) ** 2 - 4 * order**2) / (8 * k)) / x
        total = total + term
    return total / xp.sqrt(2 * math.pi * x)


@pointwise("i0e_cpu")
def i0e(self: Array) -> Any:
    """The function of order 0 times `exp(-|self|)`."""
    return _scaled(self, 0)


@pointwise("i1e_cpu")
def i1e(self: Array) -> Any:
    """The function of order 1 times `exp(-|self|)`."""
    return xp.copysign(_scaled(self, 1), self)


@pointwise("i1_cpu")
def i1(self: Array) -> Any:
    """The function of order 1."""
    return xp.copysign(_scaled(self, 1) * xp.exp(xp.abs(self)), self)
