"""The interpreter of expression graphs that writes LLVM instructions, with one value (a number or a vector) for each node.

Each arithmetic operation is rounded separately, as in NumPy. The elementary functions are defined in the modules
`elementary_*`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from ..expression import CONSTANT, INPUT, SCALAR, Expression, Node
from . import (
    elementary_bessel,
    elementary_exponential,
    elementary_gaussian,
    elementary_inverse,
    elementary_logarithm,
    elementary_polynomials,
    elementary_power,
    elementary_special,
    elementary_trigonometric,
)
from .builtin_functions import ceil, copysign, fabs, floor, rint, scale, sqrt, trunc
from .element_types import boolean
from .functions import Builtin, LoopKernel
from .host import HOST
from .lowering import Lowering
from .values import CompilationError, UnsupportedInstruction, Value, constant, is_number

_ARITHMETIC = {"add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div}
_COMPARISONS = {
    "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt, "greater_equal": ast.GtE, "equal": ast.Eq, "not_equal": ast.NotEq,
}  # fmt: skip
_BITS = {
    "bitwise_and": ast.BitAnd, "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor, "left_shift": ast.LShift,
    "right_shift": ast.RShift,
}  # fmt: skip
_LOGICAL = {"logical_and": ast.BitAnd, "logical_or": ast.BitOr, "logical_xor": ast.BitXor}

FUNCTIONS: dict[str, LoopKernel | Builtin] = {
    "exp": elementary_exponential.exp, "exp2": elementary_exponential.exp2, "expm1": elementary_exponential.expm1,
    "log": elementary_logarithm.log, "log2": elementary_logarithm.log2, "log10": elementary_logarithm.log10,
    "log1p": elementary_logarithm.log1p, "sin": elementary_trigonometric.sin, "cos": elementary_trigonometric.cos,
    "tan": elementary_trigonometric.tan, "arcsin": elementary_inverse.asin, "arccos": elementary_inverse.acos,
    "arctan": elementary_inverse.atan, "arctan2": elementary_inverse.atan2, "sinh": elementary_exponential.sinh,
    "cosh": elementary_exponential.cosh, "tanh": elementary_exponential.tanh, "arcsinh": elementary_logarithm.asinh,
    "arccosh": elementary_logarithm.acosh, "arctanh": elementary_logarithm.atanh, "cbrt": elementary_inverse.cbrt,
    "power": elementary_power.pow, "hypot": elementary_inverse.hypot,
    "fmod": elementary_power.fmod,
    "sqrt": sqrt, "floor": floor, "ceil": ceil, "trunc": trunc, "rint": rint, "copysign": copysign,
    **elementary_gaussian.FUNCTIONS, **elementary_bessel.FUNCTIONS, **elementary_polynomials.FUNCTIONS,
    **elementary_special.FUNCTIONS,
}  # fmt: skip
"""The functions that compute operations on floating-point numbers, by operation."""

COSTLY = frozenset(name for name, function in FUNCTIONS.items() if isinstance(function, LoopKernel))
"""The operations that take many instructions."""

LONGEST = elementary_bessel.FUNCTIONS.keys() | {"lower_incomplete_gamma", "upper_incomplete_gamma"}
"""Functions whose float32 code is long too. Their vectors are as short as float64 vectors."""

HEAVY = LONGEST | elementary_polynomials.FUNCTIONS.keys() | elementary_special.FUNCTIONS.keys() | {"log_ndtr"}
"""The operations that take hundreds of instructions."""


class ExpressionWriter:
    """Writes the instructions of an expression for values of one type, numbers or vectors."""

    def __init__(self, lowering: Lowering, type_: Any) -> None:
        self.lowering = lowering
        self.type = type_

    def write(self, expression: Expression, given: Mapping[Node, Any]) -> list[Value]:
        """Return the outputs, given the values of inputs and scalars."""
        values: dict[Node, Any] = dict(given)
        for node in expression.nodes():
            if node not in values:
                if node.operation == CONSTANT:
                    values[node] = self._constant(node)
                elif node.kind != SCALAR and node.operation != INPUT:
                    values[node] = self.node(node, [values.get(item) for item in node.operands])
        return [self.number(values[output]) for output in expression.outputs]

    def _constant(self, node: Node) -> Any:
        if not is_number(node.value):
            return None
        if self.type.kind != "f" and int(node.value) != node.value:
            raise CompilationError(f"{node.value} among integers")
        return node.value

    def number(self, value: Any) -> Value:
        """Return a value, even if it is known at compile time or is the same for all elements."""
        if isinstance(value, Value) and value.type.element is boolean:
            return value
        return self.lowering.as_type(value, self.type)

    def node(self, node: Node, operands: list[Any]) -> Any:
        """One operation."""
        name, lowering = node.operation, self.lowering
        if any(item is None for item in operands):
            raise CompilationError(f"{name} of a value that is not a number")
        if name in _LOGICAL:
            return lowering.binary(_LOGICAL[name], operands[0], operands[1])
        if name == "logical_not":
            return lowering.value(f"xor {operands[0]}, {constant(1, operands[0].type).name}", operands[0].type)
        if name == "where":
            return self._where(operands)
        if name == "as_number":
            return self._as_number(operands[0])
        values = [self.number(item) for item in operands]
        if name in _COMPARISONS:
            return lowering.compare(_COMPARISONS[name], *self._as_numbers(values))
        if name in _ARITHMETIC:
            return lowering.binary(_ARITHMETIC[name], *values)
        if name in _BITS and self.type.kind != "f":
            return lowering.binary(_BITS[name], *values)
        if name in _SIMPLE:
            return _SIMPLE[name](self, *self._ordered(operands, values))
        if name in FUNCTIONS and self.type.kind == "f":
            return lowering.call(FUNCTIONS[name], list(values), {})
        if name == "fmod":
            return lowering.call(elementary_power.remainder_of_integers, list(values), {})
        raise CompilationError(f"{name} has no compiled form for {self.type}")

    def _as_numbers(self, values: list[Value]) -> list[Value]:
        """Convert truth values to numbers if other operands are numbers."""
        kinds = {value.type.element for value in values}
        return values if len(kinds) == 1 else [self._as_number(value) for value in values]

    def _ordered(self, operands: list[Any], values: list[Value]) -> list[Any]:
        """Put a number that is known at compile time first, as a Python number. Extreme values then take one instruction."""
        if len(operands) == 2 and is_number(operands[1]) and not math.isnan(operands[1]):
            return [operands[1], values[0]]
        return list(values)

    def _as_number(self, value: Any) -> Value:
        if isinstance(value, Value) and value.type.element is boolean:
            return self.lowering.select(value, constant(1, self.type), constant(0, self.type))
        return self.number(value)

    def _where(self, operands: list[Any]) -> Value:
        condition, first, second = operands
        values = [self.number(first), self.number(second)]
        if condition.type.element is not boolean:
            raise CompilationError("a condition must be a truth value")
        return self.lowering.select(condition, *self._as_numbers(values))

    def compare(self, operation: type[ast.cmpop], first: Any, second: Any) -> Any:
        """Compare two numbers of this type."""
        return self.lowering.compare(operation, self.number(first), self.number(second))


def _extreme(operation: type[ast.cmpop], keeps_nan: bool) -> Callable[..., Value]:
    """Return the greater or smaller of two numbers, with the rules of NumPy's `maximum` or `fmax`."""

    def choose(writer: ExpressionWriter, first: Any, second: Value) -> Value:
        if is_number(first):
            return writer.lowering.select(writer.compare(operation, first, second), writer.number(first), second) \
                if keeps_nan or writer.type.kind != "f" \
                else writer.lowering.select(writer.compare(operation, second, first), second, writer.number(first))  # fmt: skip
        chosen = writer.compare(operation, first, second)
        if writer.type.kind == "f":
            unordered = first if keeps_nan else second
            chosen = writer.lowering.binary(ast.BitOr, chosen, writer.compare(ast.NotEq, unordered, unordered))
        return writer.lowering.select(chosen, first, second)

    return choose


def _negative(writer: ExpressionWriter, value: Value) -> Any:
    if writer.type.kind == "f":
        return writer.lowering.value(f"fneg {value}", value.type)
    return writer.lowering.binary(ast.Sub, 0, value)


def _absolute(writer: ExpressionWriter, value: Value) -> Any:
    if writer.type.kind == "f":
        return fabs.lower(writer.lowering, value)
    if writer.type.kind == "u":
        return value
    return writer.lowering.select(writer.compare(ast.Lt, value, 0), _negative(writer, value), value)


def _load_exponent(writer: ExpressionWriter, value: Value, exponent: Value) -> Any:
    if HOST.vector_bytes != 64:
        raise UnsupportedInstruction("only AVX-512 has an instruction that scales by any power of two, rounded once")
    return scale.lower(writer.lowering, value, exponent)


_SIMPLE: dict[str, Callable[..., Any]] = {
    "negative": _negative,
    "absolute": _absolute,
    "invert": lambda writer, value: writer.lowering.value(
        f"xor {value}, {constant((1 << writer.type.element.bits) - 1, writer.type).name}", value.type
    ),
    "positive": lambda writer, value: value,
    "conjugate": lambda writer, value: value,
    "element": lambda writer, value: value,
    "square": lambda writer, value: writer.lowering.binary(ast.Mult, value, value),
    "reciprocal": lambda writer, value: writer.lowering.binary(ast.Div, writer.number(1), value),
    "maximum": _extreme(ast.Gt, True),
    "minimum": _extreme(ast.Lt, True),
    "fmax": _extreme(ast.Gt, False),
    "fmin": _extreme(ast.Lt, False),
    "isnan": lambda writer, value: writer.compare(ast.NotEq, value, value),
    "isinf": lambda writer, value: writer.compare(ast.Eq, _absolute(writer, value), math.inf),
    "isfinite": lambda writer, value: writer.compare(ast.Lt, _absolute(writer, value), math.inf),
    "signbit": lambda writer, x: writer.compare(ast.Lt, copysign.lower(writer.lowering, writer.number(1), x), 0),
    "ldexp": _load_exponent,
    **{
        kernel.name: lambda writer, *operands, kernel=kernel: writer.lowering.call(kernel, list(operands), {})
        for kernel in (elementary_power.gcd, elementary_power.lcm, elementary_power.floor_divide)
    },
}
