"""Incomplete gamma functions, the multivariate gamma function, and derivatives of samples with respect to parameters."""

from __future__ import annotations

import math
from typing import Any

from ...codegen.elementary import in_kernels
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..runtime.floating import Array
from ..runtime.layout import row_major
from .special import lgamma

for _name in ("lower_incomplete_gamma", "upper_incomplete_gamma", "gamma_sample_slope"):
    in_kernels("elementary_special", _name, 2, cost=25)
in_kernels("elementary_special", "beta_sample_slope", 3, cost=25)


@pointwise("igamma_cpu")
def igamma(a: Array, x: Array) -> Any:
    """Return the regularized lower incomplete gamma function: the probability that a gamma distributed number is at most `x`."""
    return xp.lower_incomplete_gamma(a, x)


@pointwise("igammac_cpu")
def igammac(a: Array, x: Array) -> Any:
    """Return the regularized upper incomplete gamma function `1 - igamma(a, x)`, without cancellation if x > a."""
    return xp.upper_incomplete_gamma(a, x)


@pointwise("_standard_gamma_grad_cpu", "fd")
def standard_gamma_grad(a: Array, x: Array) -> Any:
    """Return the derivative of a sample `x` from a gamma distribution with respect to its concentration `a`."""
    return xp.gamma_sample_slope(a, x)


@pointwise("_dirichlet_grad_cpu", "fd")
def dirichlet_grad(x: Array, alpha: Array, total: Array) -> Any:
    """Return the derivative of a sample `x` from a beta distribution with respect to its parameter `alpha`, divided by 1 - x.

    The parameters are `alpha` and `total - alpha`. A component of a Dirichlet sample has this distribution. The proportions of
    the other components do not depend on it: if component j changes by d, component i changes by -d * x_i / (1 - x_j).
    """
    return xp.beta_sample_slope(x, alpha, total - alpha)


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
