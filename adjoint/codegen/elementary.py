"""Elementary functions without a NumPy ufunc: an operation of expressions, and a function that computes it on arrays.

In an expression, `erf` is an operation like `exp`. An interpreter has either a function for it, or a *decomposition*
into basic operations, written as a traced function. The NumPy interpreter uses the decomposition for the dtypes that
have one. A function may also be written once, in the language of kernels (`in_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy
from numpy import asarray, errstate, ndarray

from ..first_use import import_late
from .expression import OPERATIONS, Operation

F = TypeVar("F", bound=Callable[..., Any])

_DOUBLE = numpy.dtype(numpy.float64)

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By operation: a function of arrays of one dtype, float32 or float64, that returns an array of the same dtype."""

COSTLY_OPERATIONS = set(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt "
    "erf erfc erfcx ndtr log_ndtr normal_cdf lgamma digamma trigamma ndtri erfinv power hypot logaddexp "
    "lower_incomplete_gamma upper_incomplete_gamma".split()
)
"""The operations that take long for one element, and have compiled forms."""

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


def in_kernels(module: str, name: str) -> None:
    """Make a kernel of one element an operation of expressions; `module` of `llvm` has it. Arrays are computed by its source."""

    def function(x: ndarray) -> Any:
        found = KERNELS_ON_ARRAYS.get(name)
        if found is None:
            kernel = getattr(import_late(f"adjoint.codegen.llvm.{module}"), name)
            found = KERNELS_ON_ARRAYS[name] = on_arrays(kernel.function)
        return found(x)

    elementary(name)(function)
    COSTLY_OPERATIONS.add(name)


KERNELS_ON_ARRAYS: dict[str, Callable[..., Any]] = {}
"""By operation: its kernel as a function of float64 arrays, once it has been used."""

_ON_ARRAYS: dict[str, Any] = {
    **{name: getattr(numpy, name) for name in ("where", "fabs", "sqrt", "floor", "copysign", "exp", "log")},
    "T": numpy.float64, "reduce_or": numpy.any, "unrolled": range,
    "sine_and_cosine": lambda x: (numpy.sin(x), numpy.cos(x)),
}  # fmt: skip
"""What names of the language of kernels mean for arrays."""


def on_arrays(function: Any) -> Callable[..., Any]:
    """The function of a kernel of float64 as a function of arrays: its names, and those of kernels that it calls, mean NumPy's."""
    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        if name in _ON_ARRAYS:
            namespace[name] = _ON_ARRAYS[name]
        elif hasattr(found := namespace.get(name), "in_float64"):
            namespace[name] = on_arrays(found.function)
    return FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)


def decomposition(name: str, dtype: type) -> Callable[[F], F]:
    """Define an elementary function in simpler operations, for arrays of `dtype`."""

    def declare(function: F) -> F:
        DECOMPOSITIONS[name, numpy.dtype(dtype).char] = function
        return function

    return declare
