"""From an expression to steps: lowered to what one dtype needs, in order, each result in a register that is free again.

A register is scratch memory for one element of each place in a tile. Registers are told apart by the kind of what they hold, and
one is used again as soon as nothing needs what is in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .elementary import DECOMPOSITIONS
from .expression import BOOL, CONSTANT, INPUT, NUMBER, REAL, ROW_OPERATIONS, SCALAR, Expression, Node
from .tracing import Symbol, Trace

COMPLEX = "FD"
"""The characters of complex dtypes."""

_POWERS = {2: "square", 0.5: "sqrt", -1: "reciprocal"}


def lowered(expression: Expression, char: str, decomposed: bool = True) -> Expression:
    """The expression as it is computed in the dtype of this character.

    Real numbers have no conjugates, and their magnitudes are numbers as they are; what has a decomposition is decomposed,
    unless it is left whole for an interpreter that knows it.
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
            new[node] = graph.node(node.operation, operands, kind, node.value)
    return Expression(tuple(new[output] for output in expression.outputs))


@dataclass(frozen=True, slots=True)
class Step:
    """One call: compute `node` from its operands into `target`, the name of a register or of an output."""

    node: Node
    target: str
    dying: frozenset[Node]
    """The operands that nothing needs afterwards."""


def depends_on(nodes: list[Node]) -> dict[Node, frozenset[Node]]:
    """The inputs that each node is computed from: where they broadcast, its shape is that of these together."""
    found: dict[Node, frozenset[Node]] = {}
    for node in nodes:
        sources = {source for operand in node.operands for source in found[operand]}
        found[node] = frozenset((node,) if node.operation == INPUT else sources)
    return found


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of a tile, how many registers of each kind they use, and what is to be copied to an output at the end."""

    steps: tuple[Step, ...]
    registers: Counter[str]
    copies: tuple[tuple[str, Node], ...]
    places: dict[Node, str]
    """Where each computed node is kept."""


ROW = "row"
"""In place of its kind for what is one number for each row of elements."""

_PREFIX = {NUMBER: "n", REAL: "p", BOOL: "b", ROW: "w"}


def pools(nodes: list[Node]) -> dict[Node, str]:
    """Which registers each node may be kept in: those of its kind, or those of one number for each row."""
    found: dict[Node, str] = {}
    for node in nodes:
        operands = [found[item] for item in node.operands if item.kind != SCALAR]
        of_rows = bool(operands) and all(pool == ROW for pool in operands)
        found[node] = ROW if node.operation in ROW_OPERATIONS or of_rows else node.kind
    return found


def computed(expression: Expression) -> list[Node]:
    """The nodes that take a step each."""
    return [node for node in expression.nodes() if node.kind != SCALAR and node.operation != INPUT]


def last_uses(expression: Expression, steps: list[Node]) -> dict[Node, int]:
    """After which step each node is not needed any more."""
    last = {operand: number for number, node in enumerate(steps) for operand in node.operands}
    return last | dict.fromkeys(expression.outputs, len(steps))


def scheduled(expression: Expression, *, over_input: bool) -> Schedule:
    """Give each step of the expression a register, or its output.

    If the output may be the memory of an input (`over_input`), it is not written before all inputs have been read for the last
    time. Otherwise it is a register too, if it is the only one: its last step needs nothing but its operands.
    """
    order = computed(expression)
    last = last_uses(expression, order)
    inputs_read = max(
        (last[node] for node in expression.nodes() if node.operation == INPUT and node in last), default=-1
    )
    pool = pools(expression.nodes())
    free: dict[str, list[str]] = {kind: [] for kind in _PREFIX}
    if not over_input and len(expression.outputs) == 1 and (only := expression.outputs[0]) in order:
        free[pool[only]].append("out0")
    used: Counter[str] = Counter()
    places: dict[Node, str] = {}
    steps = []
    for number, node in enumerate(order):
        dying = frozenset(item for item in node.operands if last.get(item) == number and item in places)
        for item in sorted(dying, key=lambda item: places[item]):
            free[pool[item]].append(places[item])
        if node in expression.outputs and number >= inputs_read:
            target = f"out{expression.outputs.index(node)}"
        elif free[pool[node]]:
            target = free[pool[node]].pop()
        else:
            target = f"{_PREFIX[pool[node]]}{used[pool[node]]}"
            used[pool[node]] += 1
        places[node] = target
        steps.append(Step(node, target, dying))
    copies = tuple(
        (f"out{index}", node) for index, node in enumerate(expression.outputs) if places.get(node) != f"out{index}"
    )
    return Schedule(tuple(steps), used, copies, places)


def register_names(used: Counter[str]) -> list[tuple[str, str]]:
    """All registers, and the kind of each."""
    return [(f"{_PREFIX[kind]}{number}", kind) for kind in _PREFIX for number in range(used[kind])]
