"""Distributions that are a function of uniform or normal numbers: `exponential_`, `cauchy_`, `log_normal_`."""

import math
from collections.abc import Callable

import numpy
from numpy import ndarray

from ..fused import fma64
from ..mt19937 import Stream
from ..precision import is_floating, type_name
from .element_types import c_name, require_floating
from .libm import each, rounded
from .normal import pairwise_normals
from .order import store
from .uniform import fractions53

Number = Callable[[float], float]
Function = Callable[[ndarray], ndarray]


def exponential_(stream: Stream, out: ndarray, lambd: float = 1.0) -> ndarray:
    """Fill `out`, of a floating-point type, from the exponential distribution of rate `lambd`; returns `out`.

    By inversion: -log(1 - u) / lambd.

    Raises:
        RuntimeError: if `out` is of another type or `lambd` is not positive.
    """
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if not out.size:
        return out
    if not is_floating(out.dtype):
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {type_name(out.dtype)}"
        )
    scale = -1.0 / lambd
    with stream.lock:
        values = fractions53(stream, out.size)
    numpy.negative(values, out=values)
    return _store_function(out, math.log1p, numpy.log1p, values, lambda y: scale * y)


def cauchy_(stream: Stream, out: ndarray, median: float = 0.0, sigma: float = 1.0) -> ndarray:
    """Fill `out`, of a floating-point type, from the Cauchy distribution; returns `out`.

    By inversion: median + sigma * tan(π * (u - 1/2)).

    Raises:
        RuntimeError: if `out` is of another type or `sigma` is not positive.
    """
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not is_floating(out.dtype):
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {c_name(out.dtype)}"
        )
    with stream.lock:
        values = fractions53(stream, out.size)
    values -= 0.5
    values *= math.pi
    # Rounded once: a product that is too small for a number keeps its sign where nothing is added to it.
    return _store_function(out, math.tan, numpy.tan, values, lambda y: fma64(y, sigma, median) if median else y * sigma)


def log_normal_(stream: Stream, out: ndarray, mean: float = 1.0, std: float = 2.0) -> ndarray:
    """Fill `out`, of a floating-point type, with numbers whose logarithms are normally distributed; returns `out`.

    Raises:
        NotImplementedError: if `out` is of another type.
        RuntimeError: if `std` is not positive.
    """
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not out.size:
        return out
    require_floating("log_normal_cpu", out.dtype)
    with stream.lock:
        values = pairwise_normals(stream, out.size, mean, std, numpy.dtype(numpy.float64))
    with numpy.errstate(over="ignore"):
        return _store_function(out, _exp, numpy.exp, values, lambda y: y)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _store_function(out: ndarray, number: Number, function: Function, x: ndarray, finish: Function) -> ndarray:
    if out.dtype == numpy.float64:
        return store(out, finish(each(number, x)))
    return store(out, rounded(number, function, x, finish))
