"""Bessel functions of orders 0 and 1, of both kinds, modified and not, and the Airy function.

Near 0 these are power series (NIST DLMF 10.8, 10.31, 9.4). Elsewhere all follow from one integral, which is the modified
function of the second kind (DLMF 10.32.9) after `s = sqrt(2 z) sinh(t / 2)`,

    K_v(z) = sqrt(2 / z) exp(-z) * integral over s > 0 of exp(-s ** 2) cosh(v t) / sqrt(1 + s ** 2 / (2 z))

by the trapezoidal rule, whose error falls exponentially; for imaginary `z` it is the Hankel function (DLMF 10.27.8).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..runtime.floating import refuse
from .bessel import i1
from .special import _piecewise, i0

Array = numpy.ndarray[Any, Any]

_EULER = 0.57721566490153286061
_STEP = 0.25
_NODES = [(0.0, _STEP / 2), *((_STEP * k, _STEP * math.exp(-((_STEP * k) ** 2))) for k in range(1, 26))]
_TERMS = 26

_NEAR = 2.0
"""Up to here modified functions of the second kind are power series."""

_NEAR_OSCILLATING = 5.0
"""Up to here Bessel functions are power series."""


# --- the integral -------------------------------------------------------------------------------------------------------


def _decaying(z: Any, order: float) -> Any:
    """`K_order(z) * exp(z)` for `z` that is not near 0."""
    total: Any = 0.0
    for s, weight in _NODES:
        square = s * s / z
        root = numpy.sqrt(1 + square / 2)
        total = total + weight * _even(square, root, order) / root
    return total * numpy.sqrt(2 / z)


def _even(square: Any, root: Any, order: float) -> Any:
    """`cosh(order * t)`, where `square` is `cosh(t) - 1` and `root` is `cosh(t / 2)`."""
    if order == 0:
        return 1.0
    if order == 1:
        return 1 + square
    grown = (root + numpy.sqrt(square / 2)) ** (2 * order)
    return (grown + 1 / grown) / 2


def _hankel(x: ndarray, order: float) -> Any:
    """The Hankel function of the first kind: `J_order(x) + 1j * Y_order(x)`."""
    return _decaying(x * -1j, order) * numpy.exp(1j * x) * (-2j / math.pi * cmath.exp(-0.5j * math.pi * order))


# --- power series -----------------------------------------------------------------------------------------------------


def _series(x: ndarray, order: int, sign: int) -> tuple[ndarray, ndarray]:
    """The function of the first kind, modified if `sign` is 1, and the sum of its terms times their harmonic numbers."""
    square = x * x * (sign / 4)
    term = numpy.ones_like(x) if order == 0 else x / 2
    total, weighted, harmonic = term, term * order, float(order)
    for k in range(1, _TERMS):
        term = term * (square / (k * (k + order)))
        harmonic += 1 / k + (1 / (k + 1) if order else 1 / k)
        total = total + term
        weighted = weighted + term * harmonic
    return total, weighted


def _first_kind_near(x: ndarray, order: int) -> ndarray:
    return _series(x, order, -1)[0]


def _second_kind_near(x: ndarray, order: int) -> ndarray:
    """DLMF 10.8.1 and 10.8.2."""
    first, weighted = _series(x, order, -1)
    result = 2 * first * (numpy.log(x / 2) + _EULER) - weighted
    return (result - 2 / x if order else result) / math.pi


def _modified_near(x: ndarray, order: int) -> ndarray:
    """DLMF 10.31.1 and 10.31.2."""
    first, weighted = _series(x, order, 1)
    logarithm = first * (numpy.log(x / 2) + _EULER)
    return 1 / x + logarithm - weighted / 2 if order else weighted / 2 - logarithm


def _airy_near(x: ndarray) -> ndarray:
    """DLMF 9.4.1."""
    cube = x**3
    even, odd = numpy.ones_like(x), x
    total_even, total_odd = even, odd
    for k in range(1, _TERMS):
        even = even * cube / ((3 * k - 1) * (3 * k))
        odd = odd * cube / ((3 * k) * (3 * k + 1))
        total_even, total_odd = total_even + even, total_odd + odd
    return total_even * 0.35502805388781723926 - total_odd * 0.25881940379280679840


# --- the functions ------------------------------------------------------------------------------------------------------


def _of_floats(name: str) -> Callable[[Callable[[ndarray], ndarray]], Callable[[Array], Array]]:
    """Make a function of float64 numbers a kernel, which computes float32 numbers as those and rounds the result."""

    def declare(function: Callable[[ndarray], ndarray]) -> Callable[[Array], Array]:
        def kernel(x: Array) -> Array:
            if x.dtype.kind != "f" or x.dtype.itemsize < 4:
                raise refuse(f"{name}_cpu", x)
            with numpy.errstate(all="ignore"):
                return function(x.astype(numpy.float64)).astype(x.dtype)

        kernel.__name__, kernel.__doc__ = name, function.__doc__
        return kernel

    return declare


def _first_kind(order: int) -> Callable[[Array], Array]:
    @_of_floats(f"bessel_j{order}")
    def bessel_j(x: ndarray) -> ndarray:
        """The Bessel function of the first kind."""
        size = numpy.abs(x)
        result = _piecewise(
            size,
            (size <= _NEAR_OSCILLATING, lambda x: _first_kind_near(x, order)),
            (size > _NEAR_OSCILLATING, lambda x: _hankel(x, order).real),
        )
        return numpy.copysign(1.0, x) * result if order else result

    return bessel_j


def _second_kind(order: int) -> Callable[[Array], Array]:
    @_of_floats(f"bessel_y{order}")
    def bessel_y(x: ndarray) -> ndarray:
        """The Bessel function of the second kind; nan for negative numbers."""
        return _piecewise(
            x,
            (x == 0, lambda x: numpy.full_like(x, -numpy.inf)),
            ((x > 0) & (x <= _NEAR_OSCILLATING), lambda x: _second_kind_near(x, order)),
            (x > _NEAR_OSCILLATING, lambda x: _hankel(x, order).imag),
        )

    return bessel_y


def _modified(order: int, scaled: bool) -> Callable[[Array], Array]:
    @_of_floats(f"{'scaled_' if scaled else ''}modified_bessel_k{order}")
    def bessel_k(x: ndarray) -> ndarray:
        """The modified Bessel function of the second kind, times `exp(x)` if scaled; nan for negative numbers."""
        return _piecewise(
            x,
            (x == 0, lambda x: numpy.full_like(x, numpy.inf)),
            ((x > 0) & (x <= _NEAR), lambda x: _modified_near(x, order) * (numpy.exp(x) if scaled else 1.0)),
            (x > _NEAR, lambda x: _decaying(x, order) * (1.0 if scaled else numpy.exp(-x))),
        )

    return bessel_k


bessel_j0, bessel_j1 = _first_kind(0), _first_kind(1)
bessel_y0, bessel_y1 = _second_kind(0), _second_kind(1)
modified_bessel_k0, modified_bessel_k1 = _modified(0, False), _modified(1, False)
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = _modified(0, True), _modified(1, True)


def _modified_first_kind(name: str, function: Any) -> Callable[[Array], Array]:
    """The modified function of the first kind; nan at infinity, unlike `i0` and `i1`."""

    def kernel(x: Array) -> Array:
        if x.dtype.kind != "f" or x.dtype.itemsize < 4:
            raise refuse(f"{name}_cpu", x)
        with numpy.errstate(all="ignore"):
            return numpy.where(numpy.isinf(x), x.dtype.type(numpy.nan), function(x))

    kernel.__name__ = name
    return kernel


modified_bessel_i0 = _modified_first_kind("modified_bessel_i0", i0)
modified_bessel_i1 = _modified_first_kind("modified_bessel_i1", i1)


@_of_floats("airy_ai")
def airy_ai(x: ndarray) -> ndarray:
    """The Airy function (DLMF 9.6.2 and 9.6.6)."""

    def beyond(x: ndarray) -> Any:
        argument = x**1.5 * (2 / 3)
        return numpy.sqrt(x / 3) / math.pi * _decaying(argument, 1 / 3) * numpy.exp(-argument)

    def oscillating(x: ndarray) -> Any:
        turned = _hankel((-x) ** 1.5 * (2 / 3), 1 / 3) * cmath.exp(1j * math.pi / 6)
        return numpy.sqrt(-x / 3) * turned.real

    far, below = 2.1, -3.7
    finite = numpy.isfinite(x)
    return _piecewise(
        x, ((x > far) & finite, beyond), ((x >= below) & (x <= far), _airy_near), ((x < below) & finite, oscillating)
    )


@pointwise("spherical_bessel_j0_cpu", "fd")
def spherical_bessel_j0(x: Array) -> Any:
    """`sin(x) / x`, 1 at 0 and 0 at infinity."""
    return xp.where(x == 0, 1.0, xp.where(xp.abs(x) == math.inf, 0.0, xp.sin(x) / x))
