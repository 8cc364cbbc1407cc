"""Functions whose results are identical to PyTorch's, because they are the functions of the C library.

PyTorch's scalar loops of float64 call the C library. NumPy's functions are vectorized and faster, but sometimes differ
in the last bit. If the result is rounded to float32, this rarely matters. NumPy's functions are used in this case, and
only ambiguous numbers are computed again.
"""

from collections.abc import Callable

import numpy
from numpy import ndarray

MARGIN = 2.0**-48
"""A relative error that exceeds the error of all NumPy functions by a factor of 8."""


def each(function: Callable[[float], float], x: ndarray) -> ndarray:
    """Return `function` of each element of a float64 array, with one call for each element."""
    return numpy.fromiter(map(function, x.ravel().tolist()), numpy.float64, x.size).reshape(x.shape)


def rounded(
    function: Callable[[float], float],
    approximate: Callable[[ndarray], ndarray],
    x: ndarray,
    finish: Callable[[ndarray], ndarray],
) -> ndarray:
    """Return `finish(function(x))` as float32, for a monotonic `finish`. `approximate` is NumPy's version of `function`."""
    values = approximate(x)
    result = finish(values * (1.0 - MARGIN)).astype(numpy.float32)
    doubtful = result != finish(values * (1.0 + MARGIN)).astype(numpy.float32)
    if doubtful.any():
        result[doubtful] = finish(each(function, x[doubtful])).astype(numpy.float32)
    return result
