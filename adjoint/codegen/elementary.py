"""Elementary functions that NumPy lacks, as operations of expressions and as functions of arrays.

In an expression, `erf` is an operation like `exp`. An interpreter either has a function for it or uses a
*decomposition* into basic operations, which is written as a traced function. The NumPy interpreter uses the decomposition for
the dtypes that have a decomposition. A function may also be written once in the language of kernels (`in_kernels`).
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
"""Functions of arrays of one dtype, float32 or float64, that return an array of the same dtype, by operation."""

COSTLY_OPERATIONS = set(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt "
    "power hypot gcd lcm floor_divide ldexp".split()
)
"""The operations that take a long time for one element and have compiled forms."""

PIECEWISE_OPERATIONS: dict[str, int] = {}
"""The operations that NumPy computes in many calls, each with the number of ordinary calls that it counts as.

The numbers are declared and not measured, so that a program computes the same bits each time.
"""

DECOMPOSITIONS: dict[tuple[str, str], Callable[..., Any]] = {}
"""Traced functions that compute an operation from simpler operations, by operation and dtype character."""


def elementary(name: str, arity: int | None = None) -> Callable[[F], F]:
    """Register a function of float64 arrays as an operation, which rounds its results for float32."""

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


def in_kernels(module: str, name: str, arity: int = 1, wide: bool = True, cost: int = 10) -> None:
    """Register one of the `FUNCTIONS` of a module in `llvm` as an operation of expressions.

    The source of the function also computes NumPy arrays.

    `wide`: whether to compute in float64 instead of the dtype of the arrays. `cost`: see `PIECEWISE_OPERATIONS`.
    """
    found: list[Callable[..., Any]] = []

    def function(*arrays: ndarray) -> Any:
        if not found:
            _Number.element = import_late("adjoint.codegen.llvm.element_types").f64
            found.append(on_arrays(import_late(f"adjoint.codegen.llvm.{module}").FUNCTIONS[name]))
        with errstate(all="ignore"):
            return found[0](*arrays)

    COSTLY_OPERATIONS.add(name)
    PIECEWISE_OPERATIONS[name] = cost
    elementary(name, arity)(function)
    if not wide:
        FUNCTIONS[name] = function


def _fused(a: Any, b: Any, c: Any) -> Any:
    """Return `a * b + c`, including the rounding error of the product (T. J. Dekker, 1971)."""
    if a.dtype != _DOUBLE:
        return (a.astype(_DOUBLE) * b + c).astype(a.dtype)
    product = a * b
    (a, low_a), (b, low_b) = ((high := x * 134217729.0 - (x * 134217729.0 - x), x - high) for x in (a, b))
    return product + c + (a * b - product + a * low_b + low_a * b + low_a * low_b)


def _exponential(x: Any, more: Any, power: int) -> Any:
    """Return `exp(x + more)`, where `more` is the rounding error of `x`."""
    return numpy.exp(x) if more is None else numpy.exp(x) * (1 + more)


class _Number:
    """The type of numbers when a kernel computes arrays: the dtype of the arrays, or float64 if the kernel requires it."""

    element: Any = None

    def __new__(cls, value: float) -> Any:
        return float(value)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the values of a polynomial. The coefficients start with the highest power."""
    value = x * coefficients[0]
    value += coefficients[1]
    for coefficient in coefficients[2:]:
        value *= x
        value += coefficient
    return value


def _where(mask: Any, one: Any, other: Any) -> Any:
    """Return `one` where the mask is true, and `other` elsewhere. Numbers and arrays have the dtype of the array."""
    like = one if isinstance(one, ndarray) else other
    if not (isinstance(mask, ndarray) and isinstance(like, ndarray) and like.dtype.kind == "f"):
        return numpy.where(mask, one, other)
    return import_late("adjoint.codegen.selection").choose(mask, asarray(one, like.dtype), asarray(other, like.dtype))


_ON_ARRAYS: dict[str, Any] = {
    "where": _where,
    **{name: getattr(numpy, name) for name in "fabs sqrt floor trunc copysign exp expm1 log log1p".split()},
    **{name: getattr(numpy, name) for name in "sin cos fmin fmax rint".split()},
    "acos": numpy.arccos, "pow": numpy.power,
    "T": _Number, "i64": int, "reduce_or": numpy.any, "unrolled": range, "rolled": range,
    "exp_times_power": _exponential, "exp_to_normal": numpy.exp, "fma": _fused,
    "polynomial": polynomial, "table": lambda _, numbers: numbers,
    "sine_and_cosine_of_turns": lambda x: (numpy.sin(math.pi * x), numpy.cos(math.pi * x)),
    "sine_and_cosine": lambda x: (numpy.sin(x), numpy.cos(x)), "is_float32": lambda x: x.dtype == numpy.float32,
}  # fmt: skip
"""The meanings of names of the kernel language when a kernel is applied to arrays."""


def on_arrays(kernel: Any, meanings: dict[str, Any] = _ON_ARRAYS) -> Any:
    """Return a kernel as a function of objects, for which `meanings` defines the names of the language."""
    if isinstance(kernel, tuple) and hasattr(kernel, "_fields"):
        return type(kernel)(*[on_arrays(item, meanings) for item in kernel])
    if not hasattr(kernel, "in_float64"):
        return kernel
    if kernel.name in meanings:
        return meanings[kernel.name]
    function = kernel.function
    code, given = function.__code__, function.__globals__
    namespace = given | {
        name: meanings[name] if name in meanings else on_arrays(given[name], meanings)
        for name in code.co_names
        if name in given
    }
    cells = tuple([CellType(on_arrays(cell.cell_contents, meanings)) for cell in function.__closure__ or ()])
    return FunctionType(code, namespace, function.__name__, function.__defaults__, cells)


def decomposition(name: str, dtype: type) -> Callable[[F], F]:
    """Define an elementary function by simpler operations for arrays of `dtype`."""

    def declare(function: F) -> F:
        DECOMPOSITIONS[name, numpy.dtype(dtype).char] = function
        return function

    return declare
