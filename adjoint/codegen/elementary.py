"""Elementary functions without a NumPy ufunc: an operation of expressions, and a function that computes it on arrays.

In an expression, `erf` is an operation like `exp`. An interpreter has either a function for it, or a *decomposition*
into basic operations, written as a traced function. The NumPy interpreter uses the decomposition for the dtypes that
have one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy
from numpy import asarray, errstate, ndarray

from .expression import OPERATIONS, Operation

F = TypeVar("F", bound=Callable[..., Any])

_DOUBLE = numpy.dtype(numpy.float64)

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By operation: a function of arrays of one dtype, float32 or float64, that returns an array of the same dtype."""

DECOMPOSITIONS: dict[tuple[str, str], Callable[..., Any]] = {}
"""By operation and dtype character: a traced function that computes the same in simpler operations."""


def elementary(name: str) -> Callable[[F], F]:
    """Make a function of float64 arrays an operation of expressions; for float32 it is computed in float64 and rounded."""

    def declare(function: F) -> F:
        code = function.__code__
        OPERATIONS[name] = Operation(code.co_argcount)

        def of_arrays(*arrays: Any) -> ndarray:
            dtype = arrays[0].dtype
            if dtype is _DOUBLE:
                return asarray(function(*map(asarray, arrays)))
            result = asarray(function(*[asarray(array, _DOUBLE) for array in arrays]))
            with errstate(over="ignore"):
                return result.astype(dtype)

        of_arrays.__name__ = of_arrays.__qualname__ = name
        FUNCTIONS[name] = of_arrays
        return function

    return declare


def decomposition(name: str, dtype: type) -> Callable[[F], F]:
    """Define an elementary function in simpler operations, for arrays of `dtype`."""

    def declare(function: F) -> F:
        DECOMPOSITIONS[name, numpy.dtype(dtype).char] = function
        return function

    return declare
