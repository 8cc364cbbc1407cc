"""Lower an expression for one dtype, and find the steps that compute it and the last use of each result."""

from __future__ import annotations

from .elementary import DECOMPOSITIONS
from .expression import CONSTANT, INPUT, NUMBER, REAL, SCALAR, Expression, Node
from .tracing import Symbol, Trace

COMPLEX = "FD"
"""The characters of complex dtypes."""

_POWERS = {2: "square", 0.5: "sqrt", -1: "reciprocal"}


def lowered(expression: Expression, char: str, decomposed: bool = True) -> Expression:
    """Lower the expression for the dtype with this character.

    Real numbers have no conjugates, and their magnitudes are ordinary numbers. Operations with a decomposition are
    decomposed unless the interpreter of the expression computes them itself (`decomposed` is False).
    """
    trace = Trace({})
    graph, new = trace.graph, dict[Node, Node]()
    is_complex = char in COMPLEX
    for node in expression.nodes():
        operands = tuple(new[item] for item in node.operands)
        kind = NUMBER if node.kind == REAL and not is_complex else node.kind
        if not is_complex and node.operation in ("conjugate", "real"):
            new[node] = operands[0]
        elif not is_complex and node.operation == "imag":
            new[node] = graph.node(CONSTANT, (), SCALAR, 0)
        elif decomposed and (node.operation, char) in DECOMPOSITIONS:
            function = DECOMPOSITIONS[node.operation, char]
            new[node] = function(*(Symbol(item, trace) for item in operands)).node
        elif node.operation == "power" and node.kind != SCALAR and operands[1].value in _POWERS:
            new[node] = graph.node(_POWERS[operands[1].value], operands[:1], kind)
        else:
            new[node] = graph.node(node.operation, operands, kind, node.value, node.extent)
    return Expression(tuple(new[output] for output in expression.outputs))


def scalars_of(expression: Expression) -> list[Node]:
    """Return the scalars that operations on elements or outputs need, except constants."""
    elements = [node for node in expression.nodes() if node.kind != SCALAR]
    needed = [*[item for node in elements for item in node.operands], *expression.outputs]
    return list(dict.fromkeys(item for item in needed if item.kind == SCALAR and item.operation != CONSTANT))


def depends_on(nodes: list[Node]) -> dict[Node, frozenset[Node]]:
    """Return the inputs on which each node depends. If inputs are broadcast, they determine the shape of the node."""
    found: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        sources = {source for operand in node.operands for source in found[operand]}
        found[node] = frozenset((node,) if node.operation == INPUT else sources)
    return found


def computed(expression: Expression) -> list[Node]:
    """Return the nodes that each need a step."""
    return [node for node in expression.nodes() if node.kind != SCALAR and node.operation != INPUT]


def last_uses(expression: Expression, steps: list[Node]) -> dict[Node, int]:
    """Return the last step that needs each node."""
    last = {operand: number for number, node in enumerate(steps) for operand in node.operands}
    return last | dict.fromkeys(expression.outputs, len(steps))
