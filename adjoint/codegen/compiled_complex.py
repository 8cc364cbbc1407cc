"""Rewrite expressions of complex numbers as expressions of their real and imaginary parts.

Exact functions have the same special values as NumPy's functions. The other functions do not handle infinities and
overflow. If parts of a result are not finite, NumPy computes the result again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.runtime.lazy_conj import CONJ, NEG
from .expression import CONSTANT, INPUT, NUMBER, SCALAR, Choice, Expression, Node, Refusal, Tree
from .tracing import Symbol, Trace, TracingError, xp

PARTS = (".real", ".imag")
"""The suffixes that name the parts of a complex input."""


def _input(trace: Trace, name: str, bits: int) -> list[Any]:
    real, imag = [Symbol(trace.graph.node(INPUT, (), NUMBER, name + part), trace) for part in PARTS]
    if bits & CONJ:
        imag = -imag
    return [-real, -imag] if bits & NEG else [real, imag]


def by_parts(tree: Tree, bits: dict[str, int], functions: dict[str, Any]) -> Tree:
    """Return an expression of the parts of the inputs with these lazy `bits`, or refuse unsupported functions."""
    if isinstance(tree, Choice):
        return Choice(tree.condition, by_parts(tree.if_true, bits, functions), by_parts(tree.if_false, bits, functions))
    if not isinstance(tree, Expression):
        return tree
    trace = Trace({})
    found: dict[Node, Any] = {}
    for node in tree.nodes():
        operands = [found[item] for item in node.operands]
        if node.operation == INPUT:
            found[node] = _input(trace, node.value, bits[node.value])
        elif node.kind == SCALAR:
            given = tuple([real.node for real, _ in operands])
            real = Symbol(trace.graph.node(node.operation, given, SCALAR, node.value), trace)
            found[node] = real, Symbol(trace.graph.node(CONSTANT, (), SCALAR, 0.0), trace)
        elif node.operation == "conjugate":
            found[node] = operands[0][0], -operands[0][1]
        else:
            function = functions.get(node.operation)
            if function is None:
                return Refusal(TracingError(f"{node.operation} of complex numbers"))
            found[node] = function(*[part for pair in operands for part in pair])
    if any(output.kind == SCALAR for output in tree.outputs):
        return Refusal(TracingError("a scalar is not a complex number"))
    return Expression(tuple([part.node for output in tree.outputs for part in found[output]]))


def _divide(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Divide as in R. L. Smith, "Algorithm 116: complex division" (1962)."""
    first = xp.abs(c) >= xp.abs(d)
    large, small = xp.where(first, c, d), xp.where(first, d, c)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = xp.where(first, a + b * ratio, a * ratio + b) * scale
    imag = xp.where(first, b - a * ratio, b * ratio - a) * scale
    zero = (c == 0) & (d == 0)
    return xp.where(zero, a / xp.abs(c), real), xp.where(zero, b / xp.abs(c), imag)


def _reciprocal(a: Any, b: Any) -> Any:
    first = xp.abs(b) <= xp.abs(a)
    large, small = xp.where(first, a, b), xp.where(first, b, a)
    ratio = small / large
    below = large + small * ratio
    return xp.where(first, 1, ratio) / below, -xp.where(first, ratio, 1) / below


def _exp(a: Any, b: Any) -> Any:
    size = xp.exp(a)
    return size * xp.cos(b), size * xp.sin(b)


def _log(a: Any, b: Any) -> Any:
    """Near the unit circle, compute the logarithm from the distance to 1."""
    large, small = xp.maximum(xp.abs(a), xp.abs(b)), xp.minimum(xp.abs(a), xp.abs(b))
    near = (large > 0.5) & (large < 2)
    missing = 0.5 * xp.log1p((large - 1) * (large + 1) + small * small)
    return xp.where(near, missing, xp.log(xp.hypot(a, b))), xp.arctan2(b, a)


def _tanh(a: Any, b: Any) -> Any:
    """Compute tanh as in W. Kahan, "Branch cuts for complex elementary functions" (1987)."""
    tangent, sine = xp.tan(b), xp.sinh(a)
    slope = 1 + tangent * tangent
    below = 1 + slope * sine * sine
    far = xp.abs(a) > 20
    decay = xp.exp(-xp.abs(a))
    real = xp.where(far, xp.copysign(1, a), slope * xp.sqrt(1 + sine * sine) * sine / below)
    imag = xp.where(far, 4 * xp.sin(b) * xp.cos(b) * decay * decay, tangent / below)
    return real, imag


def _sqrt(a: Any, b: Any) -> Any:
    root = xp.sqrt((xp.abs(a) + xp.hypot(a, b)) * 0.5)
    other = xp.where(root == 0, xp.abs(b), xp.abs(b) / (root + root))
    right = a >= 0
    return xp.where(right, root, other), xp.copysign(xp.where(right, other, root), b)


EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, c, d: (a + c, b + d),
    "subtract": lambda a, b, c, d: (a - c, b - d),
    "negative": lambda a, b: (-a, -b),
    "square": lambda a, b: (a * a - b * b, a * b + b * a),
    "multiply": lambda a, b, c, d: (a * c - b * d, a * d + b * c),
    "divide": _divide,
    "reciprocal": _reciprocal,
}
"""Functions that compute the parts of an exact result from the parts of the operands, by the name of NumPy's function."""

FUNCTIONS = EXACT | {
    "exp": _exp,
    "log": _log,
    "sin": lambda a, b: (xp.sin(a) * xp.cosh(b), xp.cos(a) * xp.sinh(b)),
    "cos": lambda a, b: (xp.cos(a) * xp.cosh(b), -(xp.sin(a) * xp.sinh(b))),
    "sinh": lambda a, b: (xp.sinh(a) * xp.cos(b), xp.cosh(a) * xp.sin(b)),
    "cosh": lambda a, b: (xp.cosh(a) * xp.cos(b), xp.sinh(a) * xp.sin(b)),
    "tanh": _tanh,
    "sqrt": _sqrt,
}
"""All supported functions, including those whose results are not exact."""
