"""Incomplete gamma functions, the multivariate gamma function, and derivatives of samples with respect to parameters.

Let x be a sample from a distribution with the distribution function F(x; a) and the density f. At constant F, its
derivative is dx/da = -(dF/da) / f (Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018). F, its
complement and their derivatives with respect to `a` are each computed as one integral. The integral starts at x and
runs in the direction in which the integrand is positive, so no terms cancel. It is divided by the density at x, so it
does not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.elementary import in_kernels
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..runtime.costs import TILE
from ..runtime.floating import Array, unwarned
from ..runtime.layout import row_major
from .special import digamma, lgamma

SMALL = 0.5
"""Below this limit, power series in x have few terms, which all have the same sign."""

LARGE = 1e15
"""Above this limit, the distribution equals a normal distribution in all digits that the integrals would have."""

TERMS = 20

STEP = 0.08
NODES = numpy.arange(-3.6, 6.8, STEP)
POSITIONS, WEIGHTS = numpy.exp(NODES - numpy.exp(-NODES)), STEP * (1.0 + numpy.exp(-NODES))


def _integral(integrand: Callable[[ndarray], ndarray], scale: ndarray) -> ndarray:
    """Return the integral over [0, inf) of a smooth function that decreases exponentially beyond `scale`.

    The trapezoidal rule is applied after the substitution v = scale * exp(w - exp(-w)) (Takahasi and Mori, "Double
    exponential formulas for numerical integration", 1974). All nodes for a few elements are computed at once, or one node for
    many.
    """
    total = numpy.zeros_like(scale)
    count = max(1, TILE // max(scale.size, 1))
    for first in range(0, len(NODES), count):
        part = slice(first, first + count)
        v = numpy.multiply.outer(POSITIONS[part], scale)
        total += (integrand(v) * v * WEIGHTS[part].reshape(-1, *[1] * scale.ndim)).sum(0)
    return total


def _by_parts(
    choose: ndarray, first: Callable[..., ndarray], second: Callable[..., ndarray], *args: ndarray
) -> ndarray:
    """Return `first(*args)` where `choose` is true and `second(*args)` elsewhere. Each is computed only for its own elements."""
    result = numpy.empty(choose.shape)
    for mask, function in ((choose, first), (~choose, second)):
        if mask.any():
            result[mask] = function(*(arg[mask] for arg in args))
    return result


def _wide(*arrays: ndarray) -> list[ndarray]:
    return [numpy.asarray(array, numpy.float64) for array in numpy.broadcast_arrays(*arrays)]


# --- the gamma distribution --------------------------------------------------------------------------------------------


def _gamma_integral(sign: float) -> Callable[..., ndarray]:
    """Return the integral over t > x (t < x if `sign` is -1) of (t / x)**a * exp(x - t) * (|log(t / x)| + sign * excess) / t."""

    def integral(a: ndarray, x: ndarray, excess: ndarray) -> ndarray:
        scale = 1.0 / (numpy.abs(a - x) + numpy.sqrt(x))
        return _integral(lambda v: numpy.exp(sign * a * v - x * numpy.expm1(sign * v)) * (v + sign * excess), scale)

    return integral


for _name in ("lower_incomplete_gamma", "upper_incomplete_gamma"):
    in_kernels("elementary_special", _name, 2, cost=25)


@pointwise("igamma_cpu")
def igamma(a: Array, x: Array) -> Any:
    """Return the regularized lower incomplete gamma function: the probability that a gamma distributed number is at most `x`."""
    return xp.lower_incomplete_gamma(a, x)


@pointwise("igammac_cpu")
def igammac(a: Array, x: Array) -> Any:
    """Return the regularized upper incomplete gamma function `1 - igamma(a, x)`, without cancellation if x > a."""
    return xp.upper_incomplete_gamma(a, x)


def standard_gamma_grad(a: ndarray, x: ndarray) -> ndarray:
    """Return the derivative of a sample `x` from a gamma distribution with respect to its concentration `a`."""
    with unwarned():
        dtype = x.dtype
        a, x = _wide(a, x)
        return _by_parts(x < SMALL, _gamma_moves_near_0, _gamma_moves, a, x).astype(dtype)


def _gamma_moves(a: ndarray, x: ndarray) -> ndarray:
    excess = numpy.log(x) - digamma(a)
    moves = x * _by_parts(excess < 0, _gamma_integral(-1.0), _gamma_integral(1.0), a, x, excess)
    return numpy.where(a > LARGE, 0.5 * (1.0 + x / a), moves)


def _gamma_moves_near_0(a: ndarray, x: ndarray) -> ndarray:
    """Differentiate the series NIST DLMF 8.7.1 term by term."""
    term = 1.0 / a
    mean_log = digamma(a + 1.0)
    log_x = numpy.log(x)
    total = (mean_log - log_x) * term
    for n in range(1, TERMS):
        term = term * (x / (a + n))
        mean_log = mean_log + 1.0 / (a + n)
        total += (mean_log - log_x) * term
    return x * total


# --- the beta distribution ---------------------------------------------------------------------------------------------


def dirichlet_grad(x: ndarray, concentration: ndarray, total: ndarray) -> ndarray:
    """Return the derivative of a sample `x` from a beta distribution with respect to its parameter a, divided by 1 - x.

    The parameters are a = `concentration` and b = `total - a`. A component of a Dirichlet sample has this distribution.
    The proportions of the other components do not depend on it: if component j changes by d, component i changes by -d
    * x_i / (1 - x_j).
    """
    with unwarned():
        dtype = x.dtype
        x, a, total = _wide(x, concentration, total)
        b = total - a
        return _by_parts(x * numpy.maximum(b, 1.0) < 0.25, _beta_moves_near_0, _beta_moves, x, a, b).astype(dtype)


def _beta_moves(x: ndarray, a: ndarray, b: ndarray) -> ndarray:
    mean_log = digamma(a) - digamma(a + b)
    log_odds = numpy.log1p(-x) - numpy.log(x)
    slope = numpy.abs((a + b) * x - a)
    scale = 1.0 / (slope + numpy.sqrt((a + b) * x * (1.0 - x)))

    def toward(sign: float) -> Callable[..., ndarray]:
        def integral(*parts: ndarray) -> ndarray:
            x, a, b, mean_log, log_odds, scale = parts

            def integrand(v: ndarray) -> ndarray:
                log_t = -numpy.logaddexp(0.0, log_odds - sign * v)
                log_rest = numpy.log1p(-x) - numpy.logaddexp(0.0, log_odds - sign * v) + (log_odds - sign * v)
                weight = numpy.exp(a * (log_t - numpy.log(x)) + b * (log_rest - 2.0 * numpy.log1p(-x)))
                return weight * (sign * (log_t - mean_log))

            return _integral(integrand, scale)

        return integral

    return x * _by_parts(numpy.log(x) < mean_log, toward(-1.0), toward(1.0), x, a, b, mean_log, log_odds, scale)


def _beta_moves_near_0(x: ndarray, a: ndarray, b: ndarray) -> ndarray:
    """Differentiate the power series of the incomplete beta function, NIST DLMF 8.17.7, term by term."""
    log_ratio = numpy.log(x) - digamma(a + 1.0) + digamma(a + b)
    total = log_ratio / a
    term = numpy.ones_like(x)
    for n in range(1, TERMS):
        term = term * (x * (n - b) / n)
        total += term * ((log_ratio + 1.0 / a) / (a + n) - 1.0 / (a + n) ** 2)
    return -x * numpy.exp(-b * numpy.log1p(-x)) * total


# --- several dimensions ------------------------------------------------------------------------------------


HIGHEST_DIMENSION = 1 << 28
"""`mvlgamma` adds up one term per dimension; this number of terms takes minutes."""


def mvlgamma(x: Array, p: int) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension `p`."""
    if type(p) is bool or not 1 <= p <= HIGHEST_DIMENSION:
        raise ValueError("p")  # the operator raises the error with a message
    total = lgamma(x)
    for k in range(1, p):
        total = total + lgamma(x - x.dtype.type(k / 2))
    return row_major(total + x.dtype.type(p * (p - 1) / 4 * math.log(math.pi)))
