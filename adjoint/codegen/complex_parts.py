"""Expressions of complex numbers as expressions of their real and imaginary parts, computed as NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.runtime.lazy_conj import CONJ, NEG
from .expression import CONSTANT, INPUT, NUMBER, SCALAR, Choice, Expression, Node, Refusal, Tree
from .tracing import Symbol, Trace, TracingError, xp

PARTS = (".real", ".imag")
"""What is added to the name of a complex input to name its parts."""


def parts_of_input(trace: Trace, name: str, bits: int) -> list[Any]:
    """The parts of an operand."""
    real, imag = [Symbol(trace.graph.node(INPUT, (), NUMBER, name + part), trace) for part in PARTS]
    if bits & CONJ:
        imag = -imag
    return [-real, -imag] if bits & NEG else [real, imag]


def by_parts(tree: Tree, bits: dict[str, int]) -> Tree:
    """The expression of complex numbers by their parts; a refusal where one of its operations is not arithmetic."""
    if isinstance(tree, Choice):
        return Choice(tree.condition, by_parts(tree.if_true, bits), by_parts(tree.if_false, bits))
    if not isinstance(tree, Expression):
        return tree
    trace = Trace({})
    found: dict[Node, Any] = {}
    for node in tree.nodes():
        operands = [found[item] for item in node.operands]
        if node.operation == INPUT:
            found[node] = parts_of_input(trace, node.value, bits[node.value])
        elif node.kind == SCALAR:
            given = tuple([real.node for real, _ in operands])
            real = Symbol(trace.graph.node(node.operation, given, SCALAR, node.value), trace)
            found[node] = real, Symbol(trace.graph.node(CONSTANT, (), SCALAR, 0.0), trace)
        elif node.operation == "conjugate":
            found[node] = operands[0][0], -operands[0][1]
        else:
            function = ARITHMETIC.get(node.operation)
            if function is None:
                return Refusal(TracingError(f"{node.operation} of complex numbers"))
            found[node] = function(*[part for pair in operands for part in pair])
    if any(output.kind == SCALAR for output in tree.outputs):
        return Refusal(TracingError("a scalar is no complex number"))
    return Expression(tuple([part.node for output in tree.outputs for part in found[output]]))


ARITHMETIC: dict[str, Callable[..., Any]] = {}
"""The parts of a result from those of the operands, by the name of NumPy's function."""


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    ARITHMETIC[function.__name__.strip("_")] = function
    return function


@_arithmetic
def _add(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a + c, b + d


@_arithmetic
def _subtract(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a - c, b - d


@_arithmetic
def _negative(a: Any, b: Any) -> Any:
    return -a, -b


@_arithmetic
def _square(a: Any, b: Any) -> Any:
    return a * a - b * b, a * b + b * a


@_arithmetic
def _multiply(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * c - b * d, a * d + b * c


@_arithmetic
def _divide(a: Any, b: Any, c: Any, d: Any) -> Any:
    """R. L. Smith, "Algorithm 116: complex division" (1962)."""
    first = xp.abs(c) >= xp.abs(d)
    large, small = xp.where(first, c, d), xp.where(first, d, c)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = xp.where(first, a + b * ratio, a * ratio + b) * scale
    imag = xp.where(first, b - a * ratio, b * ratio - a) * scale
    zero = (c == 0) & (d == 0)
    return xp.where(zero, a / xp.abs(c), real), xp.where(zero, b / xp.abs(c), imag)


@_arithmetic
def _reciprocal(a: Any, b: Any) -> Any:
    first = xp.abs(b) <= xp.abs(a)
    large, small = xp.where(first, a, b), xp.where(first, b, a)
    ratio = small / large
    below = large + small * ratio
    return xp.where(first, 1, ratio) / below, -xp.where(first, ratio, 1) / below
