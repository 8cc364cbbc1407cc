"""The computations of elementwise instructions, as expressions for blocks and fused loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ..codegen.compiled_ufuncs import large, large_with_number
from ..codegen.expression import (
    BOOL,
    CONSTANT,
    INPUT,
    NUMBER,
    OPERATIONS,
    SCALAR,
    Choice,
    Expression,
    Graph,
    scalar_source,
)
from ..codegen.pointwise import Program
from ..dispatch.annotations import Array
from ..kernels.index import masking
from ..kernels.math import arithmetic, pointwise
from ..kernels.nn import loss
from .blocks import Foreign, Place
from .program import Instruction

Computation = tuple[Expression, list[tuple[Any, Place]], dict[str, Any]]
"""An expression, its input nodes with the places of their arrays, and its scalars."""


def computation(instruction: Instruction, values: list[Any]) -> Computation:
    """Return the computation of an elementwise instruction with these operands."""
    name = instruction.name
    if name in ("clamp_to_numbers", "inside"):
        values = [
            other if given is None else given for given, other in zip(values, (None, -math.inf, math.inf), strict=True)
        ]
    if name == "select_where":
        found = one_operation("where", NUMBER, values, [BOOL, NUMBER, NUMBER])
    elif name == "zero_where":
        found = one_operation("where", NUMBER, [values[1], 0, values[0]], [BOOL, NUMBER, NUMBER])
    elif name == "eq" and values[1] is True:  # truth values
        found = one_operation("logical_and", BOOL, [values[0]] * 2, [BOOL] * 2)
    elif name in OF_TRUTHS:
        found = one_operation(OF_TRUTHS[name], BOOL, values, [BOOL] * len(values))
    elif name in WITH_NUMBER:
        found = ufunc_expression(WITH_NUMBER[name], values)
    elif name in FORMULAS:
        found = variant_of(FORMULAS[name](), values)
    elif instruction.kernel is None:
        raise Foreign
    else:
        found = expression_of(instruction, values)
    if not found[1] or len(found[0].outputs) != 1:
        raise Foreign
    return found


def compiled_form(instruction: Instruction, values: list[Any]) -> tuple[Any, list[Any], list[Any]]:
    """Return the compiled loops of an elementwise instruction, and their arrays and scalars."""
    if (loop := getattr(instruction.function, "loop", None)) is not None:
        if (over := instruction.function.over) is not None:
            values = [*values[1 : over + 1], values[0], *values[over + 1 :]]
        return loop.compiled, values, []
    name, op = instruction.name.removesuffix("_"), instruction.kernel
    if name in WITH_NUMBER and (found := large_with_number(getattr(numpy, WITH_NUMBER[name]))) is not None:
        return found.compiled, values[:1], values[1:]
    if op is not None and isinstance(op.kernel.expression, Program):
        parameters = op.kernel.expression.parameters
        given = dict(zip(parameters.names, values, strict=False))
        arrays, scalars = [[given.get(each) for each in of] for of in (parameters.arrays, parameters.scalars)]
        return op.kernel.expression.compiled, arrays, scalars
    if op is None or (found := large(simple_form(op, values))) is None:
        raise Foreign
    return found.compiled, values[: found.ufunc.nin], []


def simple_form(op: Any, values: list[Any]) -> Any:
    """Return NumPy's function for an operator with these operands."""
    kernel = op.kernel
    simple = kernel.general if isinstance(kernel.general, numpy.ufunc) else kernel.small
    if not isinstance(simple, numpy.ufunc):
        raise Foreign
    for name, value in zip(op.names[simple.nin :], values[simple.nin :], strict=True):
        if value != op.defaults.get(name):
            raise Foreign
    return simple


def expression_of(instruction: Instruction, values: list[Any]) -> Computation:
    """Return the computation of a pointwise operator with these operands."""
    op = instruction.kernel
    kernel = op.kernel
    if kernel.expression is not None:
        return variant_of(kernel.expression, values)
    simple = simple_form(op, values)
    return ufunc_expression(simple.__name__, values[: simple.nin])


def variant_of(program: Any, values: list[Any]) -> Computation:
    """Return the computation of a traced program of these operands. Numbers among them select the variant."""
    given = dict(zip(program.parameters.names, values, strict=False))
    if len(given) < len(program.parameters.names):
        raise Foreign
    scalars = {name: value for name, value in given.items() if not isinstance(value, Place)}
    tree = program.tree
    while isinstance(tree, Choice):
        try:
            tree = tree.if_true if eval(scalar_source(tree.condition), {}, scalars) else tree.if_false
        except (NameError, TypeError):
            raise Foreign from None
    if not isinstance(tree, Expression):
        raise Foreign
    inputs = [(node, given[str(node.value)]) for node in tree.nodes() if node.operation == INPUT]
    if not all(isinstance(value, Place) for _, value in inputs):
        raise Foreign
    return tree, inputs, scalars


def ufunc_expression(name: str, values: list[Any]) -> Computation:
    """Return a NumPy function as an expression of one operation."""
    if name not in KNOWN:
        raise Foreign
    kind = BOOL if OPERATIONS[name].result == BOOL else NUMBER
    return one_operation(name, kind, values, [NUMBER] * len(values))


def one_operation(name: str, kind: str, values: list[Any], kinds: list[str]) -> Computation:
    """Return an expression of one operation, on arrays of these kinds and numbers."""
    graph = Graph()
    nodes, parameters = [], []
    for position, (value, of) in enumerate(zip(values, kinds, strict=True)):
        if isinstance(value, Place):
            nodes.append(graph.node(INPUT, (), of, f"x{position}"))
            parameters.append((nodes[-1], value))
        elif type(value) in (int, float):
            nodes.append(graph.node(CONSTANT, (), SCALAR, value))
        else:
            raise Foreign
    return Expression((graph.node(name, tuple(nodes), kind),)), parameters, {}


KNOWN = frozenset(
    "add subtract multiply divide negative absolute maximum minimum square reciprocal exp exp2 expm1 log log2 log10 log1p sin "
    "cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sqrt cbrt floor ceil trunc rint power "
    "fmax fmin positive less less_equal greater greater_equal equal not_equal "
    "isnan isinf isfinite signbit".split()
)
"""The functions of NumPy that blocks may call."""


# --- instructions that are no elementwise operators of their own ------------------------------------------------


def inside(self: Array, min: Any, max: Any) -> Any:
    """Return whether `self` is in `[min, max]`, including the bounds."""
    return (self >= min) & (self <= max)


INSIDE = Program(inside, None, "f", False)  # type: ignore[arg-type]

WITH_NUMBER = {
    "add_number": "add", "mul_number": "multiply", "div_number": "divide", "clamp_min_to_number": "maximum",
    "clamp_max_to_number": "minimum",
}  # fmt: skip
"""Instructions that apply a NumPy function to an array and a number."""

OF_TRUTHS = {
    **{
        f"{prefix}_{name}": f"logical_{name}"
        for prefix in ("logical", "bitwise")
        for name in ("and", "or", "xor", "not")
    },
}
"""Instructions on truth values, and their operations."""

FORMULAS: dict[str, Callable[[], Program]] = {
    "pow_number": lambda: arithmetic._to_number.expression,
    "clamp_to_numbers": lambda: masking._limited.expression,
    "inside": lambda: INSIDE,
    "sgn": lambda: pointwise._sign_of_floats.expression,
    "sign": lambda: pointwise._sign_of_floats.expression,
    "lerp_by_number": lambda: arithmetic._between.expression,
    "lerp_by_tensor": lambda: arithmetic._between_arrays.expression,
    "addcmul": lambda: arithmetic.addcmul.expression,
    "addcdiv": lambda: arithmetic.addcdiv.expression,
    "power_backward": lambda: arithmetic._times_slope.expression,
    "shared_difference": lambda: loss._shared_difference.expression,
}
"""Elementwise functions that are not separate operators."""
