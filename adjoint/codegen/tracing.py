"""Tracing: a Python function of elements is called once with symbols and becomes an expression graph.

The function is written as if it computed one element, with operators and the names of `xp`. Control flow may depend on
parameters: the tracer follows both branches of each condition, and the variants become the leaves of a tree
(`expression.Choice`). Control flow cannot depend on elements. Use `xp.where` instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from .expression import *

ARRAY = "Array"
"""The annotation of arrays, which may be absent if annotated `... | None`. Other parameters are scalars."""

PerRow: TypeAlias = Any
"""The annotation of arrays of row programs that contain one number for each row."""

PerColumn: TypeAlias = Any
"""The annotation of arrays of row programs that contain one number for each position in a row."""

PerPart: TypeAlias = Any
"""The annotation of arrays of row programs that contain one number for each part of a row."""

_EXTENTS = {ARRAY: ELEMENT, "PerRow": ROW, "PerColumn": COLUMN, "PerPart": PART}


class TracingError(TypeError):
    """The function uses a feature that expressions of elements do not support."""


class _Undecided(BaseException):
    """The function has tested a condition that the current path does not contain yet."""

    def __init__(self, condition: Node) -> None:
        self.condition = condition


class Trace:
    """One run of the function, with the graph that it creates and the outcomes of its conditions."""

    def __init__(self, path: dict[str, bool], in_parts: bool = False) -> None:
        self.graph = Graph()
        self.path = path
        self.in_parts = in_parts

    def decide(self, condition: Node) -> bool:
        """Return the outcome of a condition on scalars. Raise `_Undecided` if the path contains no outcome yet."""
        answer = self.path.get(scalar_source(condition))
        if answer is None:
            raise _Undecided(condition)
        return answer


class Symbol:
    """A value during tracing. Operators on it create nodes."""

    __slots__ = ("node", "trace")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node, trace: Trace) -> None:
        self.node = node
        self.trace = trace

    def __bool__(self) -> bool:
        if self.node.kind == SCALAR:
            return self.trace.decide(self.node)
        raise TracingError(
            "the control flow of a traced function cannot depend on elements: use xp.where(condition, a, b), or the "
            "operators &, | and ~ in place of `and`, `or` and `not`"
        )

    def __iter__(self, *index: Any) -> Any:
        raise TracingError("a traced function is written for one element: it cannot be iterated over or indexed")

    __getitem__ = __iter__

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TracingError("NumPy functions cannot be traced: use the names of xp")

    def __getattr__(self, name: str) -> Any:
        raise TracingError(f"a traced function is written for one element, which has no attribute {name!r}")

    def conj(self) -> Symbol:
        """Return the complex conjugate."""
        return apply("conjugate", self)

    def abs(self) -> Symbol:
        """The magnitude."""
        return apply("absolute", self)

    def __abs__(self) -> Symbol:
        return apply("absolute", self)

    def __neg__(self) -> Symbol:
        return apply("negative", self)

    def __invert__(self) -> Symbol:
        return apply("logical_not", self)


def _install_operators() -> None:
    def forward(operation: str) -> Callable[..., Symbol]:
        return lambda self, other: apply(operation, self, other)

    def reflected(operation: str) -> Callable[..., Symbol]:
        return lambda self, other: apply(operation, other, self)

    for operation, dunder in {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow",
                              "logical_and": "and", "logical_or": "or", "logical_xor": "xor"}.items():  # fmt: skip
        setattr(Symbol, f"__{dunder}__", forward(operation))
        setattr(Symbol, f"__r{dunder}__", reflected(operation))
    for operation, dunder in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
                              "not_equal": "ne"}.items():  # fmt: skip
        setattr(Symbol, f"__{dunder}__", forward(operation))


_install_operators()


_OF_ELEMENTS = ROW_REDUCTIONS | {"column_sum"}

_FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
}


def apply(operation: str, *operands: Any) -> Symbol:
    """Return the symbol for `operation` on these operands, some of which may be Python numbers."""
    like = next((item for item in operands if isinstance(item, Symbol)), None)
    if like is None:
        raise TracingError(f"xp.{operation} of Python numbers alone: use the math module")
    trace, new = like.trace, type(like)
    nodes = tuple(_node(item, trace) for item in operands)
    if operation in _FOLDED and all(node.operation == CONSTANT for node in nodes):
        return new(trace.graph.node(CONSTANT, (), SCALAR, _FOLDED[operation](*[node.value for node in nodes])), trace)
    if all(node.kind == SCALAR for node in nodes):
        return new(trace.graph.node(operation, nodes, SCALAR), trace)
    if len(nodes) != OPERATIONS[operation].arity:
        raise TracingError(f"xp.{operation} takes {OPERATIONS[operation].arity} operands, not {len(nodes)}")
    if any(node.operation == "column_sum" for node in nodes):
        raise TracingError("nothing but an output may depend on a sum over rows, which is complete after the last row")
    if operation in _OF_ELEMENTS and (nodes[0].kind == SCALAR or nodes[0].extent != ELEMENT):
        raise TracingError(f"{operation} of what is not one value for each element")
    return new(trace.graph.node(operation, nodes, _result_kind(operation, nodes)), trace)


def _node(value: Any, trace: Trace) -> Node:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return trace.graph.node(CONSTANT, (), SCALAR, value)
    raise TracingError(f"an expression of elements cannot contain a {type(value).__name__}")


def _result_kind(operation: str, nodes: tuple[Node, ...]) -> str:
    result = OPERATIONS[operation].result
    if operation.startswith("logical_") and not all(node.kind == BOOL for node in nodes):
        raise TracingError(f"{operation} of what is not a condition")
    values = nodes
    if operation == "where":
        values = nodes[1:]
        if nodes[0].kind != BOOL:
            raise TracingError("the first operand of xp.where is a condition on elements")
    if result != "same":
        return result
    kinds = {node.kind for node in values}
    if NUMBER in kinds or REAL in kinds:
        return NUMBER if NUMBER in kinds else REAL
    # A selection between two constants is a number, although neither constant has a dtype.
    return NUMBER if kinds == {SCALAR} else BOOL


# --- the namespace --------------------------------------------------------------------------------------------

_ALIASES = {
    "abs": "absolute", "neg": "negative", "conj": "conjugate", "acos": "arccos", "asin": "arcsin", "atan": "arctan",
    "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "atan2": "arctan2", "round": "rint", "pow": "power",
}  # fmt: skip


class Names:
    """The namespace `xp` of traced functions: the operations, functions of them, and declared expressions, by name."""

    def __init__(self) -> None:
        self._expressions: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self.__dict__["_expressions"]:
            return self._expressions[name]
        operation = _ALIASES.get(name, name)
        if operation not in OPERATIONS:
            raise AttributeError(f"traced functions know no xp.{name}")
        function = lambda *operands: apply(operation, *operands)
        setattr(self, name, function)
        return function

    def declare(self, name: str, function: Callable[..., Any]) -> None:
        """Let other expressions call `function` by its name. The nodes of the function become part of these expressions."""
        if name not in OPERATIONS:
            self._expressions[name] = function

    def rsqrt(self, x: Any) -> Any:
        """Return `1 / sqrt(x)`."""
        return self.reciprocal(self.sqrt(x))

    def sign(self, x: Any) -> Any:
        """Return -1, 0 or 1. The result is 0 for NaN."""
        return self.as_number(x > 0) - self.as_number(x < 0)

    def zero_where(self, x: Any, condition: Any) -> Any:
        """Return `x`, or 0 where the condition is true."""
        return self.where(condition, 0, x)

    def zeros_like(self, x: Any) -> Any:
        """0."""
        return _node_symbol(0, x)

    def element(self, parameter: Any) -> Any:
        """Return a parameter as an element, so that arithmetic on it is rounded to the dtype."""
        trace = parameter.trace
        return Symbol(trace.graph.node("element", (parameter.node,), NUMBER), trace)

    def ones_like(self, x: Any) -> Any:
        """1."""
        return _node_symbol(1, x)


def _node_symbol(value: Any, like: Symbol) -> Symbol:
    return Symbol(_node(value, like.trace), like.trace)


xp = Names()


class Row:
    """The namespace `row` of traced row programs.

    `expression` describes each operation.

    >>> from adjoint.codegen.rows import row_program
    >>> from adjoint.codegen.tracing import row, xp
    >>> @row_program()
    ... def fractions(x: "Array"):
    ...     return x / row.sum(x), row.max(x)
    >>> print(fractions)
    fractions(x):
    %0: number by row = row_sum(x)
    %1: number = divide(x, %0)
    %2: number by row = row_max(x)
    return %1, %2
    """

    @staticmethod
    def length(x: Any) -> Any:
        """The number of elements in the row, which is a scalar."""
        return Symbol(x.trace.graph.node(PARAMETER, (), SCALAR, ROW_LENGTH), x.trace)

    @staticmethod
    def mean(x: Any) -> Any:
        """Return the sum of the row divided by its length."""
        return row.sum(x) / row.length(x)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = f"row_{name}"
        if operation not in OPERATIONS:
            raise AttributeError(f"row programs know no row.{name}")
        return lambda x: apply(operation, x)


class Column:
    """The namespace `column` of traced row programs, for values that are computed from all rows."""

    @staticmethod
    def sum(x: Any) -> Any:
        """Return the sum over all rows for each position in a row."""
        return apply("column_sum", x)


class Part:
    """The namespace `part` of traced row programs. A row that is not divided has one part, which is the whole row."""

    @staticmethod
    def sum(x: Any) -> Any:
        """Return the sum of each part of the row."""
        return apply("part_sum" if x.trace.in_parts else "row_sum", x)

    @staticmethod
    def total(x: Any) -> Any:
        """Return the sum over the parts of a row, given a number for each part."""
        return apply("part_total", x) if x.trace.in_parts else x


row = Row()
column = Column()
part = Part()


# --- tracing --------------------------------------------------------------------------------------------------


class Parameters:
    """The parameters of a traced function by name, and which of them are arrays or may be None."""

    def __init__(self, function: Callable[..., Any], in_parts: bool = False) -> None:
        self.in_parts = in_parts
        """Whether rows of a row program have several parts."""
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.names = [name for name in code.co_varnames[:count] if name != "xp"]
        self.takes_xp = "xp" in code.co_varnames[:count]
        self.keyword_only = frozenset(code.co_varnames[code.co_argcount : count]) - {"xp"}
        values = function.__defaults__ or ()
        positional = code.co_varnames[: code.co_argcount]
        self.defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        self.defaults.update(function.__kwdefaults__ or {})
        # A quoted annotation in a module whose annotations are postponed is quoted twice.
        annotations = {name: str(text).strip("'\"") for name, text in function.__annotations__.items()}
        kinds = {name: text.removesuffix(" | None") for name, text in annotations.items()}
        self.arrays = [name for name in self.names if kinds.get(name) in _EXTENTS]
        if not self.arrays:
            raise TracingError(
                f"{function.__name__} has no parameter annotated {ARRAY!r} (a string: annotations are postponed)"
            )
        extents = _EXTENTS if in_parts else _EXTENTS | {"PerPart": ROW}
        self.extents = {name: extents[kinds[name]] for name in self.arrays}
        self.scalars = [name for name in self.names if name not in self.arrays]
        self.optional = [name for name in self.names if "None" in annotations.get(name, "")]


def trace(function: Callable[..., Any], parameters: Parameters | None = None) -> Tree:
    """Trace `function` and return one expression for each path of its control flow, or raise `TracingError`."""
    return _explore(function, parameters or Parameters(function), {})


def _explore(function: Callable[..., Any], parameters: Parameters, path: dict[str, bool]) -> Tree:
    current = Trace(path, parameters.in_parts)
    try:
        results = function(**_symbols(parameters, current))
    except _Undecided as undecided:
        condition = undecided.condition
    except (RuntimeError, ValueError) as error:
        error.__context__ = None  # drop the caller's exception and its frames
        return Refusal(error.with_traceback(None))
    else:
        outputs = results if isinstance(results, tuple) else (results,)
        return Expression(tuple(_node(output, current) for output in outputs))
    # Do this after the exception has been handled. Otherwise a stored refusal would keep it, and its frames, as context.
    text = scalar_source(condition)
    return Choice(
        condition,
        _explore(function, parameters, {**path, text: True}),
        _explore(function, parameters, {**path, text: False}),
    )


def _symbols(parameters: Parameters, current: Trace) -> dict[str, Any]:
    given: dict[str, Any] = {"xp": xp} if parameters.takes_xp else {}
    for name in parameters.names:
        node = current.graph.node(PARAMETER, (), SCALAR, name)
        none = current.graph.node(CONSTANT, (), SCALAR, None)
        absent = name in parameters.optional and current.decide(current.graph.node("is", (node, none), SCALAR))
        if name in parameters.arrays:
            node = current.graph.node(INPUT, (), NUMBER, name, parameters.extents[name])
        given[name] = None if absent else Symbol(node, current)
    return given
