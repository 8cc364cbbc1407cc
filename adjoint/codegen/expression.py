"""Expression graphs: what is computed for each element, as data.

A graph is made of immutable nodes. Equal nodes of one graph are one object, so a subexpression that occurs twice is computed
once. Nodes have one of these kinds:

    number   an element of the dtype that is computed in, real or complex
    real     a real number, also where the dtype is complex (a magnitude, an imaginary part)
    bool     a truth value
    scalar   one Python value for all elements: a parameter such as `alpha`, a constant, or arithmetic on these
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

NUMBER, REAL, BOOL, SCALAR = "number", "real", "bool", "scalar"

INPUT, CONSTANT, PARAMETER = "input", "constant", "parameter"
"""The operations of nodes without operands; their `value` is a name, or the constant."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of elements: how many it takes, the kind of its result ("same" as its operands), its symbol if it has one."""

    arity: int
    result: str = "same"
    symbol: str | None = None


def _table(arity: int, result: str, names: str) -> dict[str, Operation]:
    return {name: Operation(arity, result) for name in names.split()}


OPERATIONS: dict[str, Operation] = {
    **{
        name: Operation(2, "same", symbol)
        for name, symbol in {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}.items()
    },
    **{
        name: Operation(2, BOOL, symbol)
        for name, symbol in {
            "less": "<",
            "less_equal": "<=",
            "greater": ">",
            "greater_equal": ">=",
            "equal": "==",
            "not_equal": "!=",
        }.items()
    },
    **{
        name: Operation(2, BOOL, symbol)
        for name, symbol in {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}.items()
    },
    "negative": Operation(1, "same", "-"),
    "logical_not": Operation(1, BOOL, "~"),
    **_table(1, "same", "exp exp2 expm1 log log2 log10 log1p sqrt cbrt reciprocal square conjugate positive"),
    **_table(1, "same", "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"),
    **_table(1, "same", "floor ceil trunc rint"),
    **_table(1, REAL, "absolute real imag"),
    **_table(1, BOOL, "isnan isinf isfinite signbit"),
    **_table(2, "same", "power maximum minimum fmax fmin copysign arctan2 hypot logaddexp fmod"),
    "as_number": Operation(1, NUMBER),
    "element": Operation(1, NUMBER),
    "where": Operation(3, "same"),
    **_table(1, "same", "row_sum row_max row_min"),
}
"""What an interpreter of expressions has to know; elementary functions (`elementary`) are added to it."""

ROW_OPERATIONS = frozenset(("row_sum", "row_max", "row_min"))
"""Those of row programs (`rows`) alone: one number for a row of elements."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One value of a graph: an operation on earlier ones. Made by `Graph.node` alone."""

    operation: str
    operands: tuple[Node, ...]
    kind: str
    value: Any = None

    def __repr__(self) -> str:
        return f"<{self.operation} {self.kind}>"


class Graph:
    """The nodes that have been made, each once, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}

    def node(self, operation: str, operands: tuple[Node, ...], kind: str, value: Any = None) -> Node:
        """The node with this operation, these operands and this value."""
        # repr tells 0.0 from -0.0 and 1 from True, which are equal.
        key = (operation, *map(id, operands), kind, type(value), repr(value))
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(operation, operands, kind, value)
        return found


@dataclass(frozen=True, slots=True)
class Expression:
    """What one call computes: the outputs, as nodes over the inputs and parameters."""

    outputs: tuple[Node, ...]

    def nodes(self) -> list[Node]:
        """All nodes that the outputs need, each after its operands, in the order in which an evaluation meets them."""
        order: dict[Node, None] = {}
        for output in self.outputs:
            _visit(output, order)
        return list(order)

    def __str__(self) -> str:
        names: dict[Node, str] = {}
        lines: list[str] = []
        for node in self.nodes():
            if node.kind == SCALAR or node.operation == INPUT:
                names[node] = scalar_source(node) if node.kind == SCALAR else str(node.value)
                continue
            name = names[node] = f"%{len(lines)}"
            lines.append(f"{name}: {node.kind} = {node.operation}({', '.join(names[item] for item in node.operands)})")
        return "\n".join([*lines, f"return {', '.join(names[output] for output in self.outputs)}"])


def _visit(root: Node, order: dict[Node, None]) -> None:
    stack: list[tuple[Node, Iterator[Node]]] = [(root, iter(root.operands))]
    while stack:
        node, operands = stack[-1]
        if node in order:
            stack.pop()
            continue
        following = next(operands, None)
        if following is None:
            order[node] = None
            stack.pop()
        elif following not in order:
            stack.append((following, iter(following.operands)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error that a function raises for these parameters."""

    error: Exception

    def __str__(self) -> str:
        return f"raise {type(self.error).__name__}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Two variants of a function, and the condition on its parameters that chooses between them."""

    condition: Node
    if_true: Tree
    if_false: Tree

    def __str__(self) -> str:
        parts = []
        for head, tree in ((f"if {scalar_source(self.condition)}:", self.if_true), ("else:", self.if_false)):
            parts += [head, *("    " + line for line in str(tree).splitlines())]
        return "\n".join(parts)


Tree: TypeAlias = Expression | Refusal | Choice
"""What a function is traced to: one expression for each way that its control flow can take."""


def leaves(tree: Tree) -> Iterator[Expression]:
    """The expressions of all variants."""
    if isinstance(tree, Choice):
        yield from leaves(tree.if_true)
        yield from leaves(tree.if_false)
    elif isinstance(tree, Expression):
        yield tree


_SCALAR_SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=", "is": "is",
}  # fmt: skip


def scalar_source(node: Node) -> str:
    """A scalar as Python source: interpreters compute scalars once for a call, before they begin with the elements."""
    if node.operation == PARAMETER:
        return str(node.value)
    if node.operation == CONSTANT:
        text = repr(node.value)
        return f'float("{text}")' if text in ("inf", "-inf", "nan") else text
    operands = [scalar_source(item) for item in node.operands]
    if node.operation == "negative":
        return f"(-{operands[0]})"
    if node.operation == "absolute":
        return f"abs({operands[0]})"
    return f"({operands[0]} {_SCALAR_SYMBOLS[node.operation]} {operands[1]})"
