"""Coefficients of special functions for NumPy arrays and for compiled kernels. Each table starts with the highest power.

The coefficients of Bessel functions are computed when they are first used: `interpolated` approximates a smooth
function by a polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy

# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988): numerators
# and denominators near the median, by 0.180625 - (p - 1/2) ** 2; in the tails, by r - 1.6 where r = sqrt(-log(p)) is at most 5;
# farther, by r - 5.
QUANTILE_CENTER_NUMERATOR = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4, 1.3731693765509461125e4,
    1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
)  # fmt: skip
QUANTILE_CENTER_DENOMINATOR = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4, 5.3941960214247511077e3,
    6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
QUANTILE_TAIL_NUMERATOR = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
    3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
)  # fmt: skip
QUANTILE_TAIL_DENOMINATOR = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0,
)  # fmt: skip
QUANTILE_FAR_NUMERATOR = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
)  # fmt: skip
QUANTILE_FAR_DENOMINATOR = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip

NEAR_POLE = 1e-200
"""Between 0 and minus this number, `lgamma(x)` is `-log(-x)`, because `sin(pi x)` would be a subnormal number."""

# NIST Digital Library of Mathematical Functions (DLMF) 5.7.3:
# ln Gamma(2 + z) = (1 - gamma) z + sum (-1)^k (zeta(k) - 1) z^k / k.
LOG_GAMMA_NEAR_2 = (
    -6.4229645638381e-11, 1.330476437424449e-10, -2.7595228851242334e-10, 5.731367241678862e-10, -1.1921401405860912e-09,
    2.4836745438024785e-09, -5.183475041970047e-09, 1.0838659214896955e-08, -2.2711094608943164e-08, 4.7698101693639804e-08,
    -1.0043224823968099e-07, 2.1207184805554665e-07, -4.492469198764566e-07, 9.55141213040742e-07, -2.039215753801366e-06,
    4.374866789907488e-06, -9.439488275268397e-06, 2.050721277567069e-05, -4.492623673813314e-05, 9.945751278180853e-05,
    -0.00022315475845357939, 0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234, -0.007385551028673986,
    0.020580808427784546, -0.0673523010531981, 0.3224670334241132, 0.42278433509846713,
)  # fmt: skip

# NIST DLMF 5.11.1, Stirling's series: B(2k) / (2k (2k - 1)) for k from 11 down to 1.
STIRLING = (
    77683 / 5796, -174611 / 125400, 43867 / 244188, -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 /
    360, 1 / 12,
)  # fmt: skip

# NIST DLMF 5.11.2: B(2k) / 2k for k from 10 down to 1.
DIGAMMA_SERIES = (
    -174611 / 6600, 43867 / 14364, -3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Bessel functions
#
# Near 0 they are power series and products of those with logarithms (NIST DLMF 10.8, 10.31, 9.4). Elsewhere all follow from
# one integral, which is the modified function of the second kind (DLMF 10.32.9) after `s = sqrt(2 z) sinh(t / 2)`,
#
#     K_v(z) = sqrt(2 / z) exp(-z) * integral over s > 0 of exp(-s ** 2) cosh(v t) / sqrt(1 + s ** 2 / (2 z))
#
# It is computed by the trapezoidal rule, whose error decreases exponentially. For imaginary `z` it is the Hankel function (DLMF
# 10.27.8). Each function below is smooth for `u` from 0 to 1. The Airy function is a Bessel function of order 1/3 (DLMF 9.6.2,
# 9.6.6).

NEAR_OSCILLATING = 5.0
"""Up to this argument, Bessel functions are computed as power series."""

NEAR_DECAYING = 1.0
"""Up to this argument, modified functions of the second kind are computed as power series."""

NEAR_GROWING = 8.0
"""Up to this argument, modified functions of the first kind are polynomials of `x`, and beyond it of `1 / x`."""

AIRY_BELOW, AIRY_ABOVE = -3.7, 1.3
"""Between these arguments, the Airy function is computed as a power series."""

_STEP = 0.15
_NODES = [(0.0, _STEP / 2), *((_STEP * k, _STEP * math.exp(-((_STEP * k) ** 2))) for k in range(1, 43))]
_EULER = 0.57721566490153286061
_SAMPLES = 256


@cache
def interpolated(terms: int, function: Callable[..., Any], *arguments: Any) -> tuple[float, ...]:
    """Return `function(u, *arguments)` as a polynomial of `2 u - 1`.

    The coefficients of Chebyshev polynomials are means over many more samples than terms, which averages the rounding
    errors. They are converted to powers with integers, because the coefficients of powers are large and have both
    signs.
    """
    odd = numpy.arange(1, 2 * _SAMPLES, 2)
    values = function(numpy.cos(odd * (math.pi / (4 * _SAMPLES))) ** 2, *arguments)
    result, before, basis = [0] * terms, [0] * terms, [1] + [0] * (terms - 1)
    for degree in range(terms):
        cosines = numpy.cos(odd * degree % (4 * _SAMPLES) * (math.pi / (2 * _SAMPLES)))
        weight = int(math.ldexp(math.fsum(values * cosines) * (2 if degree else 1) / _SAMPLES, 120))
        result = [total + weight * power for total, power in zip(result, basis, strict=True)]
        following = [0, *[(2 if degree else 1) * power for power in basis[:-1]]]
        before, basis = basis, [new - old for new, old in zip(following, before, strict=True)]
    return tuple([total / 2**120 for total in result[::-1]])


def power_series(u: Any, order: int, square: float, harmonic: bool) -> Any:
    """Return the function of the first kind divided by `(x / 2) ** order`, where `x ** 2` is `u * square`.

    It is modified if `square` is positive. With `harmonic` numbers it is of the second kind, without its logarithm.
    """
    total, number = 0.0, -2 * _EULER + order
    for k in range(26):
        factor = math.factorial(k) * math.factorial(k + order)
        total = total + (u * (square / 4)) ** k * ((number if harmonic else 1) / factor)
        number += 1 / (k + 1) + 1 / (k + 1 + order)
    return total


def _integral(z: Any, order: float) -> Any:
    """Return `K_order(z) * exp(z) * sqrt(z / 2)` for `z` that is not near 0."""
    total = 0.0
    for s, weight in _NODES:
        square = s * s / z
        root = numpy.sqrt(1 + square / 2)
        grown = (root + numpy.sqrt(square / 2)) ** (2 * order)
        total = total + weight * (1 + square if order == 1 else (grown + 1 / grown) / 2) / root
    return total


def decaying(u: Any, order: float, nearest: float) -> Any:
    """Return `K_order(x) * exp(x) * sqrt(x)`, where `u` is `nearest / x`."""
    return _integral(nearest / u, order) * math.sqrt(2)


def in_phase(u: Any, order: float, nearest: float) -> Any:
    """Return the real part of the Hankel function divided by its leading term, where `u` is `(nearest / x) ** 2`."""
    return _integral(-1j * nearest / numpy.sqrt(u), order).real * (2 / math.sqrt(math.pi))


def out_of_phase(u: Any, order: float, nearest: float) -> Any:
    """Return the imaginary part of the Hankel function divided by its leading term, times `x`."""
    x = nearest / numpy.sqrt(u)
    return _integral(-1j * x, order).imag * x * (2 / math.sqrt(math.pi))


def growing_near(u: Any, order: int) -> Any:
    """Return `I_order(x) * exp(-x) / x ** order` times a factor that makes it nearly constant, where `u` is `x / 8`."""
    x = NEAR_GROWING * u
    return _growing(x, order) * (1 + x) * ((1 + x / 4) / x) ** order


def growing_far(u: Any, order: int) -> Any:
    """Return `I_order(x) * exp(-x) * sqrt(x)`, where `u` is `8 / x`."""
    x = NEAR_GROWING / u
    expansion = term = 1.0
    for k in range(1, 21):  # DLMF 10.40.1, the asymptotic expansion
        term = term * (((2 * k - 1) ** 2 - 4 * order**2) / (8 * k)) / numpy.maximum(x, 30)
        expansion = expansion + term
    near = _growing(numpy.minimum(x, 30), order) * numpy.sqrt(x)
    return numpy.where(x > 30, expansion / math.sqrt(2 * math.pi), near)


def _growing(x: Any, order: int) -> Any:
    """Return `I_order(x) * exp(-x)` up to 30 by the midpoint rule (DLMF 10.32.3), with nodes in pairs."""
    total = 0.0
    for node in range(16):
        cosine = math.cos((node + 0.5) * math.pi / 32)
        pair = -numpy.expm1(-2 * x * cosine) * cosine if order else 1 + numpy.exp(-2 * x * cosine)
        total = total + numpy.exp(x * (-2 * math.sin((node + 0.5) * math.pi / 64) ** 2)) * pair
    return total / 32


def airy_near(u: Any) -> Any:
    """Return the Airy function (DLMF 9.4.1), where `u` is 0 at `AIRY_BELOW` and 1 at `AIRY_ABOVE`."""
    # Use integers with 100 fractional bits, because the terms cancel.
    x = (u * (AIRY_ABOVE - AIRY_BELOW) + AIRY_BELOW) * 2.0**52
    x = x.astype(numpy.int64).astype(object) << 48
    cube = x**3 >> 200
    even, odd = (35502805388781723926006318600418 << 100) // 10**32, -x * 25881940379280679840518356018920 // 10**32
    total = even + odd
    for k in range(1, 26):
        even = (even * cube >> 100) // ((3 * k - 1) * (3 * k))
        odd = (odd * cube >> 100) // ((3 * k) * (3 * k + 1))
        total = total + even + odd
    return (total / 2**100).astype(float)
