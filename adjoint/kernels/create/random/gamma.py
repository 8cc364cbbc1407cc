"""Distributions drawn by rejection of normal and uniform numbers: `standard_gamma`, `sample_dirichlet`, `binomial`.

All of them take a random number of words, so numbers are drawn one by one, in float64. PyTorch rounds some intermediate
results to the type of its parameters. They are rounded here too, so that the numbers are equal.
"""

import math
from cmath import rect
from collections.abc import Callable

import numpy
from numpy import ndarray

from ....codegen.acceleration import accelerated
from ....codegen.costs import REJECTED
from ...runtime.floating import refuse, type_name
from ..mt19937 import Stream
from .uniform import FLOAT32, FLOAT64

Rounding = Callable[[float], float]

THIRD = float(numpy.float32(1.0 / 3.0))


def _to_single(number: float) -> float:
    return float(numpy.float32(number))


def _require_single_or_double(name: str, array: ndarray) -> None:
    if array.dtype not in (FLOAT32, FLOAT64):
        raise refuse(name, array.dtype)


def _normal(stream: Stream) -> float:
    """The next of the numbers that `pairwise_normals` gives, one by one faster than by arrays."""
    value = stream.normal
    if value is not None:
        stream.normal = None
        return value
    turns = stream.double()
    point = rect(math.sqrt(-2.0 * math.log1p(-stream.double())), 2.0 * math.pi * turns)
    stream.normal = point.imag
    return point.real


def standard_gamma(stream: Stream, concentration: ndarray) -> ndarray:
    """Numbers from gamma distributions of the given concentrations and rate 1; a new array of their shape and type.

    By Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; below a concentration of 1 from one
    that is larger by 1, times a power of a uniform number. None is less than the smallest normal number.

    Raises:
        NotImplementedError: if `concentration` is neither float32 nor float64.
    """
    _require_single_or_double("gamma_cpu", concentration)
    with stream.lock:
        drawn = _gammas(concentration.astype(FLOAT64, order="C"), stream, concentration.dtype == FLOAT32)
    result = drawn.astype(concentration.dtype).reshape(concentration.shape)
    return numpy.maximum(result, numpy.finfo(result.dtype).tiny)


@accelerated("create.rejection.standard_gamma", elements=REJECTED)
def _gammas(concentrations: ndarray, stream: Stream, single: bool) -> ndarray:
    """Numbers for concentrations in float64; `single`: these have been float32, and so are numbers on the way."""
    rounded = _to_single if single else float
    return numpy.array([_gamma(stream, each, rounded) for each in concentrations.ravel().tolist()])


def _gamma(stream: Stream, concentration: float, rounded: Rounding) -> float:
    scale = 1.0
    if concentration < 1.0:
        if concentration == 0.0:
            return 0.0
        if not concentration > 0.0:
            return math.nan if math.isnan(concentration) else 0.0
        scale = (1.0 - stream.double()) ** rounded(1.0 / concentration)
        concentration = rounded(concentration + 1.0)
    d = rounded(concentration - THIRD)
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(stream)
        y = 1.0 + c * x
        if y <= 0.0:
            continue
        v = y * y * y
        u = 1.0 - stream.double()
        square = x * x
        if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def sample_dirichlet(stream: Stream, concentration: ndarray) -> ndarray:
    """Points of the simplex from Dirichlet distributions, along the last dimension: gamma samples over their sum.

    Raises:
        NotImplementedError: if `concentration` is neither float32 nor float64.
    """
    _require_single_or_double("dirichlet", concentration)
    gammas = standard_gamma(stream, concentration.astype(FLOAT64))
    total = gammas.sum(-1, keepdims=True) if gammas.ndim else gammas
    result = (gammas / total).astype(concentration.dtype)
    limits = numpy.finfo(result.dtype)
    return numpy.clip(result, limits.tiny, 1.0 - limits.epsneg)


def binomial(stream: Stream, count: ndarray, prob: ndarray) -> ndarray:
    """How many of `count` trials succeed, each with probability `prob`; a new array of their common shape, and type.

    Where 10 or more are expected by Hörmann, "The generation of binomial random variates", 1993 (the algorithm BTRS),
    otherwise by adding up geometric waiting times.

    Raises:
        RuntimeError: if the types differ.
        NotImplementedError: if they are neither float32 nor float64.
    """
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {type_name(prob.dtype)} but expected {type_name(count.dtype)}")
    _require_single_or_double("binomial_cpu", count)
    counts, probs = (array.astype(FLOAT64, order="C") for array in numpy.broadcast_arrays(count, prob))
    with stream.lock:
        drawn = _binomials(counts, probs, stream, count.dtype == FLOAT32)
    return drawn.astype(count.dtype).reshape(counts.shape)


@accelerated("create.rejection.binomial", elements=REJECTED)
def _binomials(counts: ndarray, probs: ndarray, stream: Stream, single: bool) -> ndarray:
    """Numbers of successes for numbers of trials in float64; `single`: these have been float32, and so are products of them."""
    rounded = _to_single if single else float
    pairs = zip(counts.ravel().tolist(), probs.ravel().tolist(), strict=True)
    return numpy.array([_binomial(stream, n, p, rounded) for n, p in pairs])


def _binomial(stream: Stream, n: float, p: float, rounded: Rounding) -> float:
    if math.isnan(p) or math.isnan(n):
        return math.nan
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    if p > 0.5:
        return n - _binomial_below_half(stream, n, rounded(1.0 - p), rounded)
    return _binomial_below_half(stream, n, p, rounded)


def _binomial_below_half(stream: Stream, n: float, p: float, rounded: Rounding) -> float:
    if rounded(n * p) >= 10.0:
        return _binomial_rejection(stream, n, p)
    return _binomial_waiting(stream, n, p)


def _binomial_waiting(stream: Stream, n: float, p: float) -> float:
    trials, successes, base = 0.0, 0.0, math.log1p(-p)
    while True:
        drawn = stream.double()
        trials += math.ceil(math.log(drawn) / base) if drawn else math.inf
        if trials > n:
            return successes
        successes += 1.0


def _binomial_rejection(stream: Stream, n: float, p: float) -> float:
    deviation = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((n + 1.0) * p)
    while True:
        u = stream.double() - 0.5
        v = stream.double()
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + c)
        if us >= 0.07 and v <= v_r:
            return float(k)
        if k < 0 or k > n:
            continue
        v = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1.0) / (odds * (n - m + 1.0)))
            + (n + 1.0) * math.log((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * math.log(odds * (n - k + 1.0) / (k + 1.0))
            + _stirling_error(m)
            + _stirling_error(n - m)
            - _stirling_error(k)
            - _stirling_error(n - k)
        )
        if v <= bound:
            return float(k)


def _stirling_error(k: float) -> float:
    """How far log(k!) exceeds (k + 1/2) * log(k + 1) - (k + 1) + log(2π) / 2."""
    if k < 10.0:
        return math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2.0 * math.pi))
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
