"""Loops over arrays for elementwise expressions.

They traverse memory in vectors and access each operand according to its layout.

A kernel is compiled for one expression, one type of numbers, and the layout of each operand along the inner dimension:
`DENSE` for consecutive numbers, `PAIRED` for every second number (the parts of complex numbers), `REPEATED` for one
number in the whole row, and `SPACED` for any distance. A complex operand has a layout value for each of its two parts.
All other data is in the table of a call (`calls`), whose layout contains lengths and strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..expression import BOOL, Expression, Node
from .calls import ARRAYS_AT, elements_at
from .element_types import VectorType, boolean, u8
from .expressions import COSTLY, HEAVY, LONGEST, ExpressionWriter
from .functions import Builtin
from .host import HOST
from .language import *
from .lowering import Lowering
from .streaming import aligned_bytes, ask_ahead, elements_before_aligned, end_streams, stream
from .values import Value, constant, size_of

DENSE, REPEATED, SPACED, PAIRED = "dense", "repeated", "spaced", "paired"

ALIGNED_FROM = 8
"""A loop over rows with at least this number of vectors writes to aligned addresses. This costs one more vector."""


def layout_of(shape: Sequence[int], strides: Sequence[Sequence[int]], streamed: bool) -> list[int]:
    """Return the layout of a call: the row length, whether results are `streamed`, the outer dimensions, and the strides.

    The inner dimension comes first.
    """
    return [
        shape[-1],
        int(streamed),
        len(shape) - 1,
        *shape[-2::-1],
        *[step for steps in strides for step in steps[::-1]],
    ]


@dataclass(frozen=True, slots=True)
class Operand:
    """An input or output: its type in memory, whether it is a truth value, its layout, and its number of parts."""

    type: Any
    truth: bool
    mode: str
    parts: int = 1


class Plan:
    """The properties to which the code of a kernel is specialized."""

    def __init__(
        self,
        expression: Expression,
        type_: Any,
        inputs: Sequence[tuple[Sequence[Node], Operand]],
        outputs: Sequence[Operand],
        scalars: Sequence[Node],
    ) -> None:
        self.expression = expression
        self.element = type_
        self.nodes = [nodes for nodes, _ in inputs]
        self.operands = [*(operand for _, operand in inputs), *outputs]
        self.inputs = len(self.nodes)
        self.scalars = list(scalars)
        operations = [node.operation for node in expression.nodes() if node.operands]
        light = sum(name in COSTLY for name in operations) <= 2 and HEAVY.isdisjoint(operations)
        # More values do not stay in registers, and the longest functions are in float64 alone.
        bits = type_.bits if LONGEST.isdisjoint(operations) else 64
        self.width = max(1, HOST.vector_bytes * 8 // bits) * (2 if light else 1)
        self.values = Builtin(self._values)
        self.scalar_values = Builtin(self._scalar_values)

    def _scalar_values(self, lowering: Lowering, table: Any) -> list[Value]:
        """Return the scalars, which are read once for each call."""
        type_ = VectorType(self.element, self.width)
        first = ARRAYS_AT + len(self.operands)
        found = []
        for number in range(len(self.scalars)):
            place = lowering.offset(table, first + number)
            word = lowering.load(cast_pointer.lower(lowering, place, f64 if self.element.kind == "f" else i64))
            found.append(lowering.convert(word, type_))
        return found

    def _values(self, lowering: Lowering, inputs: list[Any], scalars: list[Value]) -> list[Any]:
        """Return the outputs for one vector of each input, in the types that they have in memory."""
        writer = ExpressionWriter(lowering, VectorType(self.element, self.width))
        given: dict[Node, Any] = dict(zip(self.scalars, scalars, strict=True))
        for nodes, operand, values in zip(self.nodes, self.operands, inputs, strict=False):
            for node, value in zip(nodes, values if operand.parts > 1 else [values], strict=True):
                given[node] = _as_truth(lowering, value) if operand.truth else lowering.convert(value, writer.type)
        results = iter(writer.write(self.expression, given))
        found = []
        for operand in self.operands[self.inputs :]:
            type_ = VectorType(operand.type, self.width)
            parts = [lowering.convert(next(results), type_) for _ in range(operand.parts)]
            found.append(parts if operand.parts > 1 else parts[0])
        return found


def _as_truth(lowering: Lowering, value: Value) -> Value:
    zero = constant(0, value.type).name
    return lowering.value(f"icmp ne {value}, {zero}", VectorType(boolean, value.type.width))


def operand_of(nodes: Sequence[Node], type_: Any, mode: str) -> Operand:
    """Return the operand for a node, or for the two nodes of a complex number. The numbers have this type in memory."""
    truth = nodes[0].kind == BOOL
    return Operand(u8 if truth else type_, truth, mode, len(nodes))


@loops(noalias=False)
def _find_row(distances: Pointer[i64], layout: Pointer[i64], row: Int, OPERANDS: Static) -> None:
    """Return the distance of a row from the beginning of each operand."""
    rank = layout[2] + 1
    for K in unrolled(OPERANDS):
        distances[K] = 0
    for d in rolled(layout[2]):
        index, following = row, i64(0)
        if d + 2 < rank:  # a division takes longer than the rest of a short row
            following = row // layout[d + 3]
            index = row - following * layout[d + 3]
        for K in unrolled(OPERANDS):
            distances[K] = distances[K] + index * layout[rank + 3 + K * rank + d]
        row = following


def masks_are_cheap(type_: Any) -> bool:
    """Return whether the processor can read parts of vectors of this type efficiently."""
    return bool(HOST.vector_bytes == 64 or (HOST.vector_bytes == 32 and type_.bits >= 32))


@loops(noalias=False)
def _read(place: Pointer[S], left: Int, WIDTH: Static, ELEMENT: Static) -> Static:
    """Read the next numbers of a row, or all remaining numbers if there are fewer."""
    if masks_are_cheap(ELEMENT):
        if left >= WIDTH:
            values = load(place, WIDTH)
        else:
            values = load(place, WIDTH, lanes(i32, WIDTH) < vector(i32, WIDTH)(left))
        return values
    source = place
    part = local(ELEMENT, WIDTH)
    if left < WIDTH:
        for i in rolled(left):
            part[i] = place[i]
        source = part
    return load(source, WIDTH)


@loops(noalias=False)
def _read_spaced(place: Pointer[S], stride: Int, left: Int, WIDTH: Static, ELEMENT: Static) -> Static:
    """Read the next numbers of a row whose elements are spaced. `stride` is in bytes."""
    part = local(ELEMENT, WIDTH)
    at = cast_pointer(place, u8)
    for i in rolled(minimum(left, i64(WIDTH))):
        part[i] = cast_pointer(at + i * stride, ELEMENT)[0]
    return load(part, WIDTH)


@loops(noalias=False)
def _read_paired(place: Pointer[S], left: Int, WIDTH: Static) -> Static:
    """Read every second number of the next part of a row, without reading beyond the last number."""
    there = lanes(i32, 2 * WIDTH) < vector(i32, 2 * WIDTH)(minimum(2 * left - 1, i64(2 * WIDTH)))
    pairs = load(place, 2 * WIDTH, there)
    return shuffle(pairs, pairs, [2 * LANE for LANE in unrolled(WIDTH)])


@loops(noalias=False)
def _write_paired(place: Pointer[S], values: T, left: Int, WIDTH: Static) -> None:
    """Write the next numbers of a row to every second position."""
    places = lanes(i32, 2 * WIDTH)
    there = (places < vector(i32, 2 * WIDTH)(minimum(2 * left - 1, i64(2 * WIDTH)))) & (places % 2 == 0)
    store(place, shuffle(values, values, [LANE // 2 for LANE in unrolled(2 * WIDTH)]), there)


@loops(noalias=False)
def _write(place: Pointer[S], values: T, left: Int, WIDTH: Static, ELEMENT: Static) -> None:
    """Write the next numbers of a row."""
    if left >= WIDTH:
        store(place, values)
    elif masks_are_cheap(ELEMENT):
        store(place, values, lanes(i32, WIDTH) < vector(i32, WIDTH)(left))
    else:
        part = local(ELEMENT, WIDTH)
        store(part, values)
        for i in rolled(left):
            place[i] = part[i]


@loops(noalias=False)
def _write_spaced(place: Pointer[S], stride: Int, values: T, left: Int, WIDTH: Static, ELEMENT: Static) -> None:
    """Write the next numbers of a row with spaced elements."""
    part = local(ELEMENT, WIDTH)
    store(part, values)
    at = cast_pointer(place, u8)
    for i in rolled(minimum(left, i64(WIDTH))):
        store(cast_pointer(at + i * stride, ELEMENT), part[i])


@loops(noalias=False)
def _distance(OPERAND: Static, done: Int, stride: Int) -> Static:
    """Return the distance of the element `done` of a row from the first element."""
    return done * (size_of(OPERAND.type) * OPERAND.parts) if OPERAND.mode == DENSE else done * stride


@loops(noalias=False, explicit=True, plain=True)
def pointwise(table: Pointer[i64], start: Int, stop: Int, PLAN: Static) -> None:
    """Compute the elements from `start` to `stop`, counted in row-major order."""
    W = PLAN.width
    layout = as_pointer(table[0], i64)
    scalars = PLAN.scalar_values(table)
    begins = [elements_at(table, K) for K in unrolled(len(PLAN.operands))]
    row_length = layout[0]
    streamed = layout[1] != 0
    rank = layout[2] + 1
    strides = [layout[rank + 2 + K * rank] for K in unrolled(len(PLAN.operands))]
    distances = local(i64, len(PLAN.operands))
    position = start
    row = start // row_length
    column = start - row * row_length
    while position < stop:
        count = minimum(row_length - column, stop - position)
        _find_row(distances, layout, row, len(PLAN.operands))
        places = [begins[K] + distances[K] + column * strides[K] for K in unrolled(len(PLAN.operands))]
        first = PLAN.operands[PLAN.inputs]
        step = i64(W)
        if first.parts == 1 and (streamed or count > ALIGNED_FROM * W):
            # The first elements, up to where vectors are aligned, are written like the last ones.
            before = elements_before_aligned(places[PLAN.inputs], W, first.type)
            step = before if before > 0 else step
        ends = [
            (places[PLAN.inputs + K] + step * strides[PLAN.inputs + K])
            & (aligned_bytes(W, PLAN.operands[PLAN.inputs + K].type) - 1)
            for K in unrolled(len(PLAN.operands) - PLAN.inputs)
        ]
        done = i64(0)
        while done < count:
            left = minimum(count - done, step)
            at = [places[K] + _distance(PLAN.operands[K], done, strides[K]) for K in unrolled(len(PLAN.operands))]
            if streamed:
                for K in unrolled(PLAN.inputs):
                    if PLAN.operands[K].mode == DENSE:
                        ask_ahead(at[K], W, PLAN.operands[K].type)
            inputs = [read_operand(PLAN.operands[K], W, at[K], strides[K], left) for K in unrolled(PLAN.inputs)]
            results = PLAN.values(inputs, scalars)
            for K in unrolled(len(results)):
                OUT = PLAN.inputs + K
                write_operand(PLAN.operands[OUT], W, at[OUT], strides[OUT], left, results[K], streamed and ends[K] == 0)
            done += step
            step = i64(W)
        position += count
        row += 1
        column = i64(0)
    if streamed:
        end_streams()


@loops(noalias=False)
def read_operand(OPERAND: Static, WIDTH: Static, place: Int, stride: Int, left: Int) -> Static:
    """Return the next numbers of an operand."""
    at = as_pointer(place, OPERAND.type)
    if OPERAND.parts == 2:
        if OPERAND.mode == DENSE:
            pairs = _read(at, 2 * left, 2 * WIDTH, OPERAND.type)
            return [shuffle(pairs, pairs, [2 * LANE + PART for LANE in unrolled(WIDTH)]) for PART in unrolled(2)]
        if OPERAND.mode == REPEATED:
            return [vector(OPERAND.type, WIDTH)(at[PART]) for PART in unrolled(2)]
        return [_read_spaced(at + PART, stride, left, WIDTH, OPERAND.type) for PART in unrolled(2)]
    if OPERAND.mode == DENSE:
        return _read(at, left, WIDTH, OPERAND.type)
    if OPERAND.mode == REPEATED:
        return vector(OPERAND.type, WIDTH)(at[0])
    if OPERAND.mode == PAIRED:
        return _read_paired(at, left, WIDTH)
    return _read_spaced(at, stride, left, WIDTH, OPERAND.type)


@loops(noalias=False)
def write_operand(
    OPERAND: Static, WIDTH: Static, place: Int, stride: Int, left: Int, values: Any, streamed: Any = False
) -> None:  # fmt: skip
    """Write the next numbers of an output. If `streamed`, bypass the cache."""
    at = as_pointer(place, OPERAND.type)
    if OPERAND.parts == 2:
        if OPERAND.mode == DENSE:
            pairs = shuffle(values[0], values[1], [LANE // 2 + LANE % 2 * WIDTH for LANE in unrolled(2 * WIDTH)])
            _write(at, pairs, 2 * left, 2 * WIDTH, OPERAND.type)
        else:
            for PART in unrolled(2):
                _write_spaced(at + PART, stride, values[PART], left, WIDTH, OPERAND.type)
    elif OPERAND.mode == DENSE:
        if streamed and left >= WIDTH:
            stream(at, values)
        else:
            _write(at, values, left, WIDTH, OPERAND.type)
    elif OPERAND.mode == PAIRED:
        _write_paired(at, values, left, WIDTH)
    else:
        _write_spaced(at, stride, values, left, WIDTH, OPERAND.type)


class ExpressionLoops(Loops):
    """Loops for one expression. Their text contains the expression."""

    def __init__(self, loops: Loops, name: str, expression: str) -> None:
        super().__init__(loops.function, noalias=False, explicit=True, plain=True)
        self.name = name
        self._expression = expression

    @property
    def text(self) -> str:
        """Return the expression and the loops around it."""
        return "\n".join([*(f"# {line}" for line in self._expression.splitlines()), super().text])


def pointwise_kernel(name: str, plan: Plan, expression: str) -> CompiledFunction:
    """Compile the loops of a plan."""
    return ExpressionLoops(pointwise, name, expression).compiled(PLAN=plan)
