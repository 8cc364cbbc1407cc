"""Bessel functions and modified Bessel functions of both kinds and orders 0 and 1, and the Airy function.

All functions compute in float64, and float32 results are rounded. The same source also computes NumPy arrays
(`codegen.elementary.on_arrays`). `special_coefficients` contains the smooth functions that are approximated by
polynomials here, and their sources. Errors over dense samples of float64, in units of the last place (for oscillating
functions relative to the amplitude): 20 for bessel_y1, and 8 for the other functions. The error of the Airy function
grows with its exponent or its angle, because these are rounded.
"""

from __future__ import annotations

import math
from typing import Any

from .. import special_coefficients as coefficients
from ..special_coefficients import interpolated
from .elementary_exponential import exp, polynomial
from .elementary_logarithm import log
from .elementary_trigonometric import sine_and_cosine
from .language import Static, T, copysign, fabs, loops, reduce_or, sqrt, where

_NEAR, _NEAR_DECAYING, _NEAR_GROWING = (
    coefficients.NEAR_OSCILLATING, coefficients.NEAR_DECAYING, coefficients.NEAR_GROWING,
)  # fmt: skip
_ABOVE, _BELOW = coefficients.AIRY_ABOVE**1.5 * (2 / 3), (-coefficients.AIRY_BELOW) ** 1.5 * (2 / 3)


@loops(flags="contract")
def _smooth(u: T, COEFFICIENTS: Static) -> T:
    """Return a smooth function for arguments between 0 and 1."""
    return polynomial(u + u - 1, COEFFICIENTS)


# --- Bessel functions -------------------------------------------------------------------------------------------------


@loops(flags="contract")
def _near(x: T, ORDER: Static) -> T:
    value = _smooth(x * x / _NEAR**2, interpolated(17, coefficients.power_series, ORDER, -(_NEAR**2), False))
    return x * 0.5 * value if ORDER else where(x == 0, T(1), value)


@loops(flags="contract")
def _far(x: T, ORDER: Static, SECOND: Static) -> T:
    """Compute the function from the amplitude and the phase of the Hankel function."""
    inverse = T(_NEAR) / x
    in_phase = _smooth(inverse * inverse, interpolated(17, coefficients.in_phase, ORDER, _NEAR))
    out_of_phase = _smooth(inverse * inverse, interpolated(20, coefficients.out_of_phase, ORDER, _NEAR)) / x
    sine, cosine = sine_and_cosine(x)
    real, imaginary = cosine + sine, sine - cosine
    if ORDER:
        real, imaginary = imaginary, -real
    if SECOND:
        value = in_phase * imaginary + out_of_phase * real
    else:
        value = in_phase * real - out_of_phase * imaginary
    return value * sqrt(T(1 / math.pi) / x)


@loops
def _first_kind(x: T, ORDER: Static) -> T:
    """The function of the first kind."""
    size = fabs(x)
    far = size > _NEAR
    value = _near(size, ORDER)
    if reduce_or(far):
        value = where(far, _far(size, ORDER, False), value)
    return value * copysign(T(1), x) if ORDER else value


@loops(flags="contract")
def _second_kind(x: T, ORDER: Static) -> T:
    """Return the function of the second kind (NIST DLMF 10.8.1 and 10.8.2), which is NaN for negative numbers."""
    far = x > _NEAR
    rest = _smooth(x * x / _NEAR**2, interpolated(16, coefficients.power_series, ORDER, -(_NEAR**2), True))
    value = log(x * 0.5) * 2 * _near(x, ORDER) - (x * 0.5 * rest + T(2) / x if ORDER else rest)
    value = value / math.pi
    if reduce_or(far):
        value = where(far, _far(x, ORDER, True), value)
    return where(x == 0, T(-math.inf), where(x < 0, T(math.nan), value))


# --- modified Bessel functions ----------------------------------------------------------------------------------------


@loops(flags="contract")
def _decaying_near(x: T, ORDER: Static) -> T:
    """Return the modified function of the second kind near 0 (DLMF 10.31.1 and 10.31.2)."""
    u = x * x / _NEAR_DECAYING**2
    first = _smooth(u, interpolated(9, coefficients.power_series, ORDER, _NEAR_DECAYING**2, False))
    rest = _smooth(u, interpolated(9, coefficients.power_series, ORDER, _NEAR_DECAYING**2, True))
    logarithm = log(x * 0.5)
    if ORDER:
        return T(1) / x + x * 0.5 * (logarithm * first - rest * 0.5)
    return rest * 0.5 - logarithm * first


@loops
def _decaying(x: T, ORDER: Static, SCALED: Static) -> T:
    """The modified function of the second kind. The result is NaN for negative numbers."""
    near = x <= _NEAR_DECAYING
    value = _smooth(T(_NEAR_DECAYING) / x, interpolated(30, coefficients.decaying, ORDER, _NEAR_DECAYING)) / sqrt(x)
    if not SCALED:
        value = value * exp(-x)
    if reduce_or(near):
        value = where(near, _decaying_near(x, ORDER) * (exp(x) if SCALED else 1), value)
    return where(x == 0, T(math.inf), where(x < 0, T(math.nan), value))


@loops
def _growing(size: T, ORDER: Static) -> T:
    """The modified function of the first kind times `exp(-size)`."""
    far = size > _NEAR_GROWING
    value = _smooth(size / _NEAR_GROWING, interpolated(31, coefficients.growing_near, ORDER))
    value = value * (size / ((size + 1) * (size * 0.25 + 1))) if ORDER else where(size == 0, T(1), value / (size + 1))
    if reduce_or(far):
        beyond = _smooth(T(_NEAR_GROWING) / size, interpolated(24, coefficients.growing_far, ORDER)) / sqrt(size)
        value = where(far, beyond, value)
    return value


@loops
def _modified(x: T, ORDER: Static, SCALED: Static) -> T:
    """The modified function of the first kind, times `exp(-|x|)` if `SCALED`."""
    value = _growing(fabs(x), ORDER)
    if not SCALED:  # the exponential function alone would overflow for smaller arguments
        half = exp(fabs(x) * 0.5)
        value = value * half * half
    return copysign(value, x) if ORDER else value


# --- the Airy function ------------------------------------------------------------------------------------------------


@loops(in_float64=True)
def airy_ai(x: T) -> T:
    """The Airy function."""
    above, below = x > coefficients.AIRY_ABOVE, x < coefficients.AIRY_BELOW
    u = (x - coefficients.AIRY_BELOW) / (coefficients.AIRY_ABOVE - coefficients.AIRY_BELOW)
    value = _smooth(u, interpolated(31, coefficients.airy_near))
    if reduce_or(above | below):
        size = fabs(x)
        root = sqrt(size)
        turns = size * root * (2 / 3)
        amplitude = T(math.sqrt(0.5) / math.pi) / sqrt(root)
        if reduce_or(above):
            beyond = _smooth(T(_ABOVE) / turns, interpolated(30, coefficients.decaying, 1 / 3, _ABOVE))
            value = where(above, beyond * exp(-turns) * amplitude, value)
        if reduce_or(below):
            u = T(_BELOW) / turns
            in_phase = _smooth(u * u, interpolated(17, coefficients.in_phase, 1 / 3, _BELOW))
            out_of_phase = _smooth(u * u, interpolated(22, coefficients.out_of_phase, 1 / 3, _BELOW)) / turns
            sine, cosine = sine_and_cosine(turns)
            wave = in_phase * (cosine + sine) - out_of_phase * (sine - cosine)
            value = where(below, wave * amplitude * math.sqrt(math.pi), value)
    return where(fabs(x) < math.inf, value, T(math.nan))


def _of(kernel: Any, *static: Any) -> Any:
    @loops(in_float64=True)
    def function(x: T) -> T:
        return kernel(x, *static)

    return function


FUNCTIONS = {
    "bessel_j0": _of(_first_kind, 0), "bessel_j1": _of(_first_kind, 1),
    "bessel_y0": _of(_second_kind, 0), "bessel_y1": _of(_second_kind, 1),
    "modified_bessel_k0": _of(_decaying, 0, False), "modified_bessel_k1": _of(_decaying, 1, False),
    "scaled_modified_bessel_k0": _of(_decaying, 0, True), "scaled_modified_bessel_k1": _of(_decaying, 1, True),
    "i0": _of(_modified, 0, False), "i0e": _of(_modified, 0, True),
    "i1": _of(_modified, 1, False), "i1e": _of(_modified, 1, True), "airy_ai": airy_ai,
}  # fmt: skip
"""The functions by operation. "scaled" functions and those that end with "e" lack the exponential factor."""
