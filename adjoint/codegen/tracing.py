"""Tracing: a Python function of elements, called once with symbols, becomes an expression graph.

Such a function is written as if for one element, with operators and the names of `xp`. Control flow may depend on parameters:
each condition is asked both ways, and the variants become the leaves of a tree (`expression.Choice`). Control flow cannot depend
on elements: that is what `xp.where` is for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .expression import (
    BOOL,
    CONSTANT,
    INPUT,
    NUMBER,
    OPERATIONS,
    PARAMETER,
    REAL,
    SCALAR,
    Choice,
    Expression,
    Graph,
    Node,
    Refusal,
    Tree,
    scalar_source,
)

ARRAY = "Array"
"""The annotation of parameters that are arrays; the others are scalars, those that are `... | None` perhaps absent."""


class TracingError(TypeError):
    """A function does what an expression of elements cannot say."""


class _Undecided(BaseException):
    """A condition has been asked for which the path says nothing yet."""

    def __init__(self, condition: Node) -> None:
        self.condition = condition


class Trace:
    """One run of the function: the graph that it makes, and the answers to its conditions."""

    def __init__(self, path: dict[str, bool]) -> None:
        self.graph = Graph()
        self.path = path

    def decide(self, condition: Node) -> bool:
        """The answer to a condition on scalars; raises `_Undecided` if the path has none yet."""
        answer = self.path.get(scalar_source(condition))
        if answer is None:
            raise _Undecided(condition)
        return answer


class Symbol:
    """A value while a function is traced: operators on it make nodes."""

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
        """The complex conjugate."""
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


_FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
}


def apply(operation: str, *operands: Any) -> Symbol:
    """The symbol for `operation` of these operands, some of which may be Python numbers."""
    trace = next((item.trace for item in operands if isinstance(item, Symbol)), None)
    if trace is None:
        raise TracingError(f"xp.{operation} of Python numbers alone: use the math module")
    nodes = tuple(_node(item, trace) for item in operands)
    if operation in _FOLDED and all(node.operation == CONSTANT for node in nodes):
        return Symbol(
            trace.graph.node(CONSTANT, (), SCALAR, _FOLDED[operation](*[node.value for node in nodes])), trace
        )
    if all(node.kind == SCALAR for node in nodes):
        return Symbol(trace.graph.node(operation, nodes, SCALAR), trace)
    if len(nodes) != OPERATIONS[operation].arity:
        raise TracingError(f"xp.{operation} takes {OPERATIONS[operation].arity} operands, not {len(nodes)}")
    return Symbol(trace.graph.node(operation, nodes, _result_kind(operation, nodes)), trace)


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
    # Two constants chosen between are numbers, though neither has a dtype of its own.
    return NUMBER if kinds == {SCALAR} else BOOL


# --- the namespace --------------------------------------------------------------------------------------------

_ALIASES = {
    "abs": "absolute", "neg": "negative", "conj": "conjugate", "acos": "arccos", "asin": "arcsin", "atan": "arctan",
    "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "atan2": "arctan2", "round": "rint", "pow": "power",
}  # fmt: skip


class Names:
    """The namespace `xp` of traced functions: the operations, what is composed of them here, and declared expressions by name."""

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
        """Let other expressions use `function` by its name: it becomes a part of them."""
        if name not in OPERATIONS:
            self._expressions[name] = function

    def rsqrt(self, x: Any) -> Any:
        """`1 / sqrt(x)`."""
        return self.reciprocal(self.sqrt(x))

    def sign(self, x: Any) -> Any:
        """-1, 0 or 1; 0 for nan."""
        return self.as_number(x > 0) - self.as_number(x < 0)

    def zero_where(self, x: Any, condition: Any) -> Any:
        """`x`, but 0 where the condition holds."""
        return self.where(condition, 0, x)

    def zeros_like(self, x: Any) -> Any:
        """0."""
        return _node_symbol(0, x)

    def element(self, parameter: Any) -> Any:
        """A parameter as an element: arithmetic on it is rounded to the dtype, where that on parameters is Python's."""
        trace = parameter.trace
        return Symbol(trace.graph.node("element", (parameter.node,), NUMBER), trace)

    def ones_like(self, x: Any) -> Any:
        """1."""
        return _node_symbol(1, x)


def _node_symbol(value: Any, like: Symbol) -> Symbol:
    return Symbol(_node(value, like.trace), like.trace)


xp = Names()


class Row:
    """The namespace `row` of traced row programs: what is made of all elements of a row, kept as one number for each row."""

    @staticmethod
    def sum(x: Any) -> Any:
        """The sum of the row."""
        return apply("row_sum", x)

    @staticmethod
    def max(x: Any) -> Any:
        """The greatest element of the row; nan if there is one."""
        return apply("row_max", x)

    @staticmethod
    def min(x: Any) -> Any:
        """The smallest element of the row; nan if there is one."""
        return apply("row_min", x)


row = Row()


# --- tracing --------------------------------------------------------------------------------------------------


class Parameters:
    """The parameters of a traced function by name: which are arrays, which may be None."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.names = [name for name in code.co_varnames[:count] if name != "xp"]
        self.takes_xp = "xp" in code.co_varnames[:count]
        self.keyword_only = frozenset(code.co_varnames[code.co_argcount : count]) - {"xp"}
        values = function.__defaults__ or ()
        positional = code.co_varnames[: code.co_argcount]
        self.defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        self.defaults.update(function.__kwdefaults__ or {})
        annotations = function.__annotations__
        self.arrays = [name for name in self.names if annotations.get(name) == ARRAY]
        if not self.arrays:
            raise TracingError(
                f"{function.__name__} has no parameter annotated {ARRAY!r} (a string: annotations are postponed)"
            )
        self.scalars = [name for name in self.names if name not in self.arrays]
        self.optional = [name for name in self.scalars if "None" in str(annotations.get(name))]


def trace(function: Callable[..., Any], parameters: Parameters | None = None) -> Tree:
    """What `function` computes, one expression for each way its control flow takes.

    Raises:
        TracingError: if it does what an expression of elements cannot say.
    """
    return _explore(function, parameters or Parameters(function), {})


def _explore(function: Callable[..., Any], parameters: Parameters, path: dict[str, bool]) -> Tree:
    current = Trace(path)
    try:
        results = function(**_symbols(parameters, current))
    except _Undecided as undecided:
        condition = undecided.condition
        text = scalar_source(condition)
        return Choice(
            condition,
            _explore(function, parameters, {**path, text: True}),
            _explore(function, parameters, {**path, text: False}),
        )
    except (RuntimeError, ValueError) as error:
        return Refusal(error.with_traceback(None))
    outputs = results if isinstance(results, tuple) else (results,)
    return Expression(tuple(_node(output, current) for output in outputs))


def _symbols(parameters: Parameters, current: Trace) -> dict[str, Any]:
    given: dict[str, Any] = {"xp": xp} if parameters.takes_xp else {}
    for name in parameters.names:
        if name in parameters.arrays:
            given[name] = Symbol(current.graph.node(INPUT, (), NUMBER, name), current)
            continue
        scalar = current.graph.node(PARAMETER, (), SCALAR, name)
        none = current.graph.node(CONSTANT, (), SCALAR, None)
        absent = name in parameters.optional and current.decide(current.graph.node("is", (scalar, none), SCALAR))
        given[name] = None if absent else Symbol(scalar, current)
    return given
