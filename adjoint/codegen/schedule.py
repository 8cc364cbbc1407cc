"""Convert an expression to steps: it is lowered for one dtype and ordered, and each result is assigned a register.

A register is scratch memory for a tile. Each register holds values of one kind, and is reused as soon as its value is
no longer needed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from .elementary import DECOMPOSITIONS
from .expression import (
    BOOL,
    COLUMN,
    CONSTANT,
    ELEMENT,
    INPUT,
    INTEGER,
    NUMBER,
    REAL,
    ROW,
    SCALAR,
    Expression,
    Node,
    is_absent,
)
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


@dataclass(frozen=True, slots=True)
class Step:
    """One call, which computes `node` from its operands into `target`, the name of a register or of an output."""

    node: Node
    target: str
    dying: frozenset[Node]
    """Return the operands that no later step needs."""


def depends_on(nodes: list[Node]) -> dict[Node, frozenset[Node]]:
    """Return the inputs on which each node depends. If inputs are broadcast, they determine the shape of the node."""
    found: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        sources = {source for operand in node.operands for source in found[operand]}
        found[node] = frozenset((node,) if node.operation == INPUT else sources)
    return found


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of a tile, the number of registers of each kind, and the values that are copied to an output at the end."""

    steps: tuple[Step, ...]
    registers: Counter[Pool]
    copies: tuple[tuple[str, Node], ...]
    places: dict[Node, str]
    """Return the register or output of each computed node."""


Pool: TypeAlias = tuple[str, str]
"""The kind and the extent of a register's content."""

_PREFIX: dict[Pool, str] = {
    (kind, extent): first + second
    for kind, first in {NUMBER: "n", REAL: "p", BOOL: "b", INTEGER: "i"}.items()
    for extent, second in {ELEMENT: "", ROW: "r", COLUMN: "c"}.items()
}


def computed(expression: Expression) -> list[Node]:
    """Return the nodes that each need a step."""
    return [node for node in expression.nodes() if node.kind != SCALAR and node.operation != INPUT]


def last_uses(expression: Expression, steps: list[Node]) -> dict[Node, int]:
    """Return the last step that needs each node."""
    last = {operand: number for number, node in enumerate(steps) for operand in node.operands}
    return last | dict.fromkeys(expression.outputs, len(steps))


def scheduled(expression: Expression, *, over_input: bool) -> Schedule:
    """Assign a register or an output to each step of the expression.

    If the output may share the memory of an input (`over_input`), it is written only after all inputs have been read for the
    last time. Otherwise outputs serve as registers until they are written.
    """
    order = computed(expression)
    last = last_uses(expression, order)
    inputs_read = max(
        (last[node] for node in expression.nodes() if node.operation == INPUT and node in last), default=-1
    )
    free: dict[Pool, list[str]] = {pool: [] for pool in _PREFIX}
    if not over_input:
        for index, node in reversed(list(enumerate(expression.outputs))):
            if node in last and node in order and expression.outputs.index(node) == index:
                free[node.kind, node.extent].append(f"out{index}")
    used: Counter[Pool] = Counter()
    places: dict[Node, str] = {}
    steps = []
    for number, node in enumerate(order):
        pool = node.kind, node.extent
        dying = frozenset(item for item in node.operands if last.get(item) == number and item in places)
        for item in sorted(dying, key=lambda item: places[item]):
            free[item.kind, item.extent].append(places[item])
        final = f"out{expression.outputs.index(node)}" if node in expression.outputs else None
        if over_input and final and number >= inputs_read:
            target = final
        elif final in free[pool]:
            free[pool].remove(final)
            target = final
        elif final is None and free[pool]:
            target = free[pool].pop()
        else:  # also for an output whose memory holds something else: it is copied there at the end
            target = f"{_PREFIX[pool]}{used[pool]}"
            used[pool] += 1
        places[node] = target
        steps.append(Step(node, target, dying))
    copies = tuple(
        (f"out{index}", node)
        for index, node in enumerate(expression.outputs)
        if places.get(node) != f"out{index}" and not is_absent(node)
    )
    return Schedule(tuple(steps), used, copies, places)


def register_names(used: Counter[Pool]) -> list[tuple[str, Pool]]:
    """Return the names of all registers, with the kind and extent of each."""
    return [(f"{prefix}{number}", pool) for pool, prefix in _PREFIX.items() for number in range(used[pool])]
