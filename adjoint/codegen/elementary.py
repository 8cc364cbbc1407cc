"""Elementary functions without a NumPy ufunc: an operation of expressions, and a function that computes it on arrays.

In an expression, `erf` is an operation like `exp`. An interpreter has either a function for it, or a *decomposition*
into basic operations, written as a traced function. The NumPy interpreter uses the decomposition for the dtypes that
have one. A function may also be written once, in the language of kernels (`in_kernels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any, TypeVar

import numpy
from numpy import asarray, errstate, ndarray

from .._runtime.first_use import import_late
from .expression import OPERATIONS, Operation

F = TypeVar("F", bound=Callable[..., Any])

_DOUBLE = numpy.dtype(numpy.float64)

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By operation: a function of arrays of one dtype, float32 or float64, that returns an array of the same dtype."""

COSTLY_OPERATIONS = set(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt "
    "erf erfc erfcx ndtr log_ndtr normal_cdf lgamma digamma trigamma ndtri erfinv power hypot logaddexp gcd lcm ldexp".split()
)
"""The operations that take long for one element, and have compiled forms."""

DECOMPOSITIONS: dict[tuple[str, str], Callable[..., Any]] = {}
"""By operation and dtype character: a traced function that computes the same in simpler operations."""


def elementary(name: str, arity: int | None = None) -> Callable[[F], F]:
    """Make a function of float64 arrays an operation of expressions; for float32 it is computed in float64 and rounded.

    `arity`: how many it takes, if its signature does not say.
    """

    def declare(function: F) -> F:
        OPERATIONS[name] = Operation(function.__code__.co_argcount if arity is None else arity)

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


def in_kernels(module: str, name: str, arity: int = 1, wide: bool = True) -> None:
    """Make one of the `FUNCTIONS` of a module of `llvm` an operation of expressions; its source computes NumPy's arrays too.

    `wide`: in float64; otherwise in the dtype of the arrays.
    """
    found: list[Callable[..., Any]] = []

    def function(*arrays: ndarray) -> Any:
        if not found:
            found.append(on_arrays(import_late(f"adjoint.codegen.llvm.{module}").FUNCTIONS[name]))
        with errstate(all="ignore"):
            return found[0](*arrays)

    COSTLY_OPERATIONS.add(name)
    elementary(name, arity)(function)
    if not wide:
        FUNCTIONS[name] = function


def _fused(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(numpy.float64) * b + c).astype(a.dtype)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The values of a polynomial, whose coefficients come from the highest power down."""
    value = x * coefficients[0]
    value += coefficients[1]
    for coefficient in coefficients[2:]:
        value *= x
        value += coefficient
    return value


_ON_ARRAYS: dict[str, Any] = {
    **{name: getattr(numpy, name) for name in "where fabs sqrt floor trunc copysign exp expm1 log log1p".split()},
    **{name: getattr(numpy, name) for name in "sin cos fmin fmax rint".split()},
    "acos": numpy.arccos, "T": float, "i64": int, "reduce_or": numpy.any, "fma": _fused, "unrolled": range, "rolled": range,
    "polynomial": polynomial, "table": lambda _, numbers: numbers, "ndtr": lambda x: FUNCTIONS["ndtr"](x),
    "sine_and_cosine_of_turns": lambda x: (numpy.sin(math.pi * x), numpy.cos(math.pi * x)),
    "sine_and_cosine": lambda x: (numpy.sin(x), numpy.cos(x)), "is_float32": lambda x: x.dtype == numpy.float32,
}  # fmt: skip
"""What names of the language of kernels mean for arrays."""


def on_arrays(kernel: Any) -> Any:
    """A kernel as a function of arrays: its names, and those of kernels that it calls, mean NumPy's. Others are as they are."""
    if isinstance(kernel, tuple) and hasattr(kernel, "_fields"):
        return type(kernel)(*map(on_arrays, kernel))
    if not hasattr(kernel, "in_float64"):
        return kernel
    if kernel.name in _ON_ARRAYS:
        return _ON_ARRAYS[kernel.name]
    function = kernel.function
    code, given = function.__code__, function.__globals__
    namespace = given | {
        name: _ON_ARRAYS[name] if name in _ON_ARRAYS else on_arrays(given[name])
        for name in code.co_names
        if name in given
    }
    cells = tuple([CellType(on_arrays(cell.cell_contents)) for cell in function.__closure__ or ()])
    return FunctionType(code, namespace, function.__name__, function.__defaults__, cells)


def decomposition(name: str, dtype: type) -> Callable[[F], F]:
    """Define an elementary function in simpler operations, for arrays of `dtype`."""

    def declare(function: F) -> F:
        DECOMPOSITIONS[name, numpy.dtype(dtype).char] = function
        return function

    return declare
