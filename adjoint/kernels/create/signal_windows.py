"""Window functions, which are weights that fade a section of a signal in and out.

Formulas: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proceedings
of the IEEE 66 (1978). Every step is rounded to the dtype, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..math import special
from ..runtime.floating import Array

Dtype = numpy.dtype[Any]


def _positions(size: int, scale: float, dtype: Dtype) -> Array:
    return numpy.arange(size).astype(dtype) * dtype.type(scale)


def bartlett(size: int, dtype: Dtype) -> Array:
    """Return a triangle with zeros at its ends."""
    window = _positions(size, 2 / (size - 1), dtype)
    falling = slice(((size - 1) >> 1) + 1, None)
    window[falling] = window[falling] * dtype.type(-1) + dtype.type(2)
    return window


def blackman(size: int, dtype: Dtype) -> Array:
    """Return `0.42 - 0.5 cos(x) + 0.08 cos(2x)` over a period."""
    angle = _positions(size, math.pi / (size - 1), dtype)
    fast = numpy.cos(angle * dtype.type(4)) * dtype.type(0.08)
    slow = numpy.cos(angle * dtype.type(2)) * dtype.type(0.5)
    return fast - slow + dtype.type(0.42)


def hamming(size: int, dtype: Dtype, alpha: float, beta: float) -> Array:
    """Return `alpha - beta cos(x)` over a period. If both are 0.5, this is Hann's window."""
    angle = _positions(size, math.pi * 2 / (size - 1), dtype)
    return numpy.cos(angle) * dtype.type(-beta) + dtype.type(alpha)


def kaiser(size: int, dtype: Dtype, beta: float) -> Array:
    """Return `I0(beta sqrt(1 - x²)) / I0(beta)` for x from -1 to 1."""
    x = numpy.arange(size) * (2 / (size - 1)) - 1
    inside = abs(beta) * numpy.sqrt(numpy.maximum(1 - x * x, 0))
    # I0 overflows even if the quotient of two does not. `i0e` is I0 divided by the exponential.
    window = special.i0e(inside) / special.i0e(numpy.array(abs(float(beta)))) * numpy.exp(inside - abs(beta))
    return numpy.asarray(window).astype(dtype)
