"""Expression graphs, which represent the computation of each element as data.

A graph consists of immutable nodes. Equal nodes of one graph are one object, so a subexpression that occurs twice is
computed once. A node has one of these kinds:

    number   an element in the dtype of the computation, real or complex
    real     a real number, even if the dtype is complex (a magnitude, an imaginary part)
    bool     a truth value
    scalar   one Python value for all elements: a parameter such as `alpha`, a constant, or arithmetic on such values

Row programs (`rows`) treat elements as rows of equal length. Each of their nodes has an *extent*, the number of its
values. Operations on elements accept operands with any extents. The result varies along each direction in which an
operand varies:

    element  one value for each element (every node of a pointwise expression)
    row      one value for each row, shared by its elements
    column   one value for each position in a row, shared by all rows
    part     one value for each part of a row; parts have equal length, and need not be adjacent in memory

These are the operations of row programs. x is the argument, and j < n is a position in a row of n elements:

    row_sum x           row      the sum of the row, at least as exact as pairwise summation in the dtype
    row_prod x         row      the product of the row
    row_max x, row_min  row      the greatest or smallest element, or NaN if an element is NaN
    column_sum x        column   the sum over all rows, as exact as row_sum; only outputs may depend on it
    part_sum x          part     the sum of a part of the row, as exact as row_sum
    part_total v        row      the sum of v (part) over the parts of the row

The parameter `row_length` is n. A compiler may compute elementwise operations in any loop over the elements. A
row is traversed once for each reduction in the longest chain of dependent reductions, and once more for outputs that
depend on the last reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

NUMBER, REAL, BOOL, SCALAR = "number", "real", "bool", "scalar"

ELEMENT, ROW, COLUMN, PART = "element", "row", "column", "part"

INPUT, CONSTANT, PARAMETER = "input", "constant", "parameter"
"""The operations of nodes without operands. The `value` of such a node is a name or the constant."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of elements: its number of operands, the kind of its result ("same" as theirs), and its symbol."""

    arity: int
    result: str = "same"
    symbol: str | None = None


def _table(arity: int, result: str, names: str) -> dict[str, Operation]:
    return {name: Operation(arity, result) for name in names.split()}


def _binary(result: str, names_and_symbols: str) -> dict[str, Operation]:
    words = names_and_symbols.split()
    return {name: Operation(2, result, symbol) for name, symbol in zip(words[::2], words[1::2], strict=True)}


OPERATIONS: dict[str, Operation] = {
    **_binary("same", "add + subtract - multiply * divide /"),
    **_binary(BOOL, "less < less_equal <= greater > greater_equal >= equal == not_equal !="),
    **_binary(BOOL, "logical_and & logical_or | logical_xor ^"),
    "negative": Operation(1, "same", "-"),
    "logical_not": Operation(1, BOOL, "~"),
    **_table(1, "same", "exp exp2 expm1 log log2 log10 log1p sqrt cbrt reciprocal square conjugate positive"),
    **_table(1, "same", "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"),
    **_table(1, "same", "floor ceil trunc rint"),
    **_table(1, REAL, "absolute real imag"),
    **_table(1, BOOL, "isnan isinf isfinite signbit"),
    **_table(2, "same", "power maximum minimum fmax fmin copysign arctan2 hypot fmod"),
    **_table(2, "same", "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide"),
    "invert": Operation(1, "same"),
    "as_number": Operation(1, NUMBER),
    "element": Operation(1, NUMBER),
    "where": Operation(3, "same"),
    **_table(1, "same", "row_sum row_prod row_max row_min column_sum part_sum part_total"),
}
"""The operations that an interpreter must support, with those of `elementary`."""

ROW_REDUCTIONS = frozenset(("row_sum", "row_prod", "row_max", "row_min"))
"""Operations that compute one value for a row of elements."""

ROW_OPERATIONS = ROW_REDUCTIONS | {"column_sum", "part_sum", "part_total"}
"""The operations that only row programs (`rows`) contain."""

ROW_LENGTH = "row_length"
"""The parameter that holds the number of elements in a row."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One value of a graph: an operation on earlier values. Only `Graph.node` creates nodes."""

    operation: str
    operands: tuple[Node, ...]
    kind: str
    value: Any = None
    extent: str = ELEMENT

    def __repr__(self) -> str:
        return f"<{self.operation} {self.kind}>"


class Graph:
    """The nodes that have been created so far, without duplicates, in the order of creation."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}

    def node(
        self, operation: str, operands: tuple[Node, ...], kind: str, value: Any = None, extent: str | None = None
    ) -> Node:
        """Return the node. Unless it is an input, its extent follows from the operands."""
        # repr tells 0.0 from -0.0 and 1 from True, which are equal.
        key = (operation, *map(id, operands), kind, type(value), repr(value))
        found = self._nodes.get(key)
        if found is None:
            extent = extent or extent_of(operation, operands)
            found = self._nodes[key] = Node(operation, operands, kind, value, extent)
        return found


def is_absent(node: Node) -> bool:
    """Return whether a row program has returned None for this output."""
    return node.operation == CONSTANT and node.value is None


def extent_of(operation: str, operands: tuple[Node, ...]) -> str:
    """Return the extent of an operation's result."""
    if operation in ROW_REDUCTIONS or operation == "part_total":
        return ROW
    if operation == "part_sum":
        return PART
    if operation == "column_sum":
        return COLUMN
    extents = {item.extent for item in operands if item.kind != SCALAR}
    if PART in extents:
        extents.discard(ROW)
    return extents.pop() if len(extents) == 1 else ELEMENT


@dataclass(frozen=True, slots=True)
class Expression:
    """The computation of one call: its outputs are nodes over the inputs and parameters."""

    outputs: tuple[Node, ...]

    def nodes(self) -> list[Node]:
        """Return all nodes that the outputs need, in the order of evaluation. Each node follows its operands."""
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
            extent = "" if node.extent == ELEMENT else f" by {node.extent}"
            operands = ", ".join(names[item] for item in node.operands)
            lines.append(f"{name}: {node.kind}{extent} = {node.operation}({operands})")
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
    """The error that a function raises for certain parameters."""

    error: Exception

    def __str__(self) -> str:
        return f"raise {type(self.error).__name__}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Two variants of a function and the condition on its parameters that selects one of them."""

    condition: Node
    if_true: Tree
    if_false: Tree

    def __str__(self) -> str:
        parts = []
        for head, tree in ((f"if {scalar_source(self.condition)}:", self.if_true), ("else:", self.if_false)):
            parts += [head, *("    " + line for line in str(tree).splitlines())]
        return "\n".join(parts)


Tree: TypeAlias = Expression | Refusal | Choice
"""The result of tracing a function: one expression for each path of its control flow."""


def leaves(tree: Tree) -> Iterator[Expression]:
    """Return the expressions of all variants."""
    if isinstance(tree, Choice):
        yield from leaves(tree.if_true)
        yield from leaves(tree.if_false)
    elif isinstance(tree, Expression):
        yield tree


def choice_lines(
    tree: Tree, leaf: Callable[[Expression], list[str]], refusal: Callable[[Refusal], list[str]]
) -> list[str]:
    """Return Python code that chooses a variant by the parameters and runs the code that `leaf` or `refusal` returns for it."""
    if isinstance(tree, Expression):
        return leaf(tree)
    if isinstance(tree, Refusal):
        return refusal(tree)
    first, second = (
        ["    " + line for line in choice_lines(branch, leaf, refusal)] for branch in (tree.if_true, tree.if_false)
    )
    return [f"if {scalar_source(tree.condition)}:", *first, "else:", *second]


_SCALAR_SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=", "is": "is",
}  # fmt: skip


def scalar_source(node: Node) -> str:
    """Return a scalar as Python source, because interpreters compute scalars once for each call, before the elements."""
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
