"""Functions of float64 arrays to the last bit of the C library's, which PyTorch's scalar loops call.

NumPy's own are vectorised, faster, and differ in the last bit now and then. Where the result is rounded to float32
that rarely matters, so NumPy's are used and only numbers too close to call are computed again.
"""

from collections.abc import Callable

import numpy
from numpy import ndarray

MARGIN = 2.0**-48
"""A relative error larger than that of any of NumPy's functions, by a factor of 8."""


def each(function: Callable[[float], float], x: ndarray) -> ndarray:
    """`function` of every element of a float64 array, by calls of it."""
    return numpy.fromiter(map(function, x.ravel().tolist()), numpy.float64, x.size).reshape(x.shape)


def rounded(
    function: Callable[[float], float],
    approximate: Callable[[ndarray], ndarray],
    x: ndarray,
    finish: Callable[[ndarray], ndarray],
) -> ndarray:
    """`finish(function(x))` as float32, for a monotonic `finish`; `approximate` is NumPy's version of `function`."""
    values = approximate(x)
    result = finish(values * (1.0 - MARGIN)).astype(numpy.float32)
    doubtful = result != finish(values * (1.0 + MARGIN)).astype(numpy.float32)
    if doubtful.any():
        result[doubtful] = finish(each(function, x[doubtful])).astype(numpy.float32)
    return result
