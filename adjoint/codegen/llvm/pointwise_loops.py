"""Loops over arrays for elementwise expressions. They access each operand according to its layout.

A kernel is compiled for one expression, one type of numbers, and the layout of each operand along a row: `DENSE` for
consecutive numbers, `PAIRED` for every second number (the parts of complex numbers), and `REPEATED` for one number in the
whole row. All other data is in the table of a call (`calls`), whose layout contains lengths and strides.

A row consists of the last dimension, or of several if the last one is narrow. An operand with any other layout has a table
of distances for a tile of a row, and all tiles use the same table. Outputs are written one by one (`INDEXED`). Inputs are
first collected in dense memory: one by one (`GATHERED`), by runs of consecutive numbers (`RUNS`) or of one number
(`REPEATS`), or only once, if all tiles are the same (`PATTERN`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy import ndarray

from ...kernels.runtime.costs import NARROW
from ..expression import BOOL, Expression, Node
from .calls import ARRAYS_AT, elements_at
from .element_types import VectorType, boolean, type_of, u8
from .expressions import COSTLY, HEAVY, LONGEST, ExpressionWriter
from .functions import Builtin
from .host import HOST
from .language import *
from .lowering import Lowering
from .streaming import aligned_bytes, ask_ahead, elements_before_aligned, end_streams, stream
from .values import Value, size_of

DENSE, REPEATED, PAIRED, INDEXED = "dense", "repeated", "paired", "indexed"
COLLECTED = GATHERED, RUNS, REPEATS, PATTERN = "gathered", "runs", "repeats", "pattern"

TILE = 1024
"""The maximum number of elements of a table."""

LAYOUT = Struct("length tile run fresh streamed dimensions")
"""The beginning of a layout: the elements of a row, a tile and a run, whether results are new memory, whether they are
streamed, and the dimensions outside rows. The lengths of these dimensions follow, the innermost first; then for each operand
the distance of tiles and of these dimensions; then the tables."""


def layout_of(
    shape: Sequence[int], inputs: Sequence[ndarray], outputs: Sequence[ndarray], fresh: bool, streamed: bool
) -> tuple[tuple[str, ...], list[int]]:
    """Return the layouts of the operands along a row, and of a call. `fresh` outputs share no memory with inputs."""
    inner = 1
    while inner < len(shape) and math.prod(shape[-inner:]) < TILE // 2:
        inner += 1
    modes = _modes(inputs, outputs, inner)
    if shape[-1] >= NARROW and not {INDEXED, GATHERED, RUNS, REPEATS}.isdisjoint(modes):
        inner = 1
        modes = _modes(inputs, outputs, inner)
    outer, (first, *others) = shape[:-inner], shape[-inner:]
    width = math.prod(others)
    rows = min(first, 1 << (TILE // width).bit_length() - 1)
    layout = LAYOUT.pack(
        length=first * width, tile=rows * width, run=shape[-1], fresh=fresh, streamed=streamed, dimensions=len(outer)
    )  # fmt: skip
    layout += outer[::-1]
    views = [*inputs, *outputs]
    for view in views:
        layout += [rows * view.strides[-inner], *view.strides[:-inner][::-1]]
    for view, mode in zip(views, modes, strict=True):
        if mode in (INDEXED, *COLLECTED):
            places = numpy.zeros(1, numpy.int64)
            by_run = mode in (RUNS, REPEATS)
            for length, stride in zip((rows, *others)[: inner - by_run], view.strides[-inner:], strict=False):
                places = numpy.add.outer(places, numpy.arange(length) * stride).ravel()
            layout += [*places.tolist(), *[0] * (rows * width - len(places))]
    return modes, layout


def _modes(inputs: Sequence[ndarray], outputs: Sequence[ndarray], inner: int) -> tuple[str, ...]:
    """Return the layout of each operand along rows that consist of the `inner` last dimensions."""
    modes = [_mode(view, inner) for view in (*inputs, *outputs)]
    for number, view in enumerate(inputs):
        if modes[number] == INDEXED:
            run, stride = view.shape[-1], view.strides[-1]
            if not any(view.strides[: view.ndim - inner + 1]):
                modes[number] = PATTERN
            elif inner > 1 and stride == 0:
                modes[number] = REPEATS
            # Shorter runs are collected one by one.
            elif stride == view.itemsize and run >= 4 and inner > 1 and masks_are_cheap(part_type(view)):
                modes[number] = RUNS
            else:
                modes[number] = GATHERED
    return tuple(modes)


def part_type(view: ndarray) -> Any:
    """Return the type of the numbers of an array, or of the parts of complex numbers."""
    return type_of(view.real.dtype) if view.dtype.kind == "c" else u8 if view.dtype.kind == "b" else type_of(view.dtype)


def _mode(view: ndarray, inner: int) -> str:
    shape, strides, stride = view.shape[-inner:], view.strides[-inner:], view.strides[-1]
    if any(strides[k] != strides[k + 1] * shape[k + 1] for k in range(inner - 1)):
        return INDEXED
    if stride == view.itemsize or shape == (1,):
        return DENSE
    if stride == 2 * view.itemsize and view.dtype.char in "fd" and masks_are_cheap(type_of(view.dtype)):
        return PAIRED
    return INDEXED if stride else REPEATED


@dataclass(frozen=True, slots=True)
class Operand:
    """An input or output: its type in memory, whether it is a truth value, its layout, and its number of parts."""

    type: Any
    truth: bool
    mode: str
    parts: int = 1

    @property
    def step(self) -> int:
        """The distance in bytes of an element of a row from the previous one, or 0 if it is in a table."""
        steps = {REPEATED: 0, INDEXED: 0, PAIRED: 2}
        return steps.get(self.mode, 1) * self.parts * size_of(self.type)


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
        self.whole = COSTLY.isdisjoint(operations) and len(operations) <= 12  # checks take no longer than more
        self.tables = [operand.mode in (INDEXED, *COLLECTED) for operand in self.operands]
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
                given[node] = lowering.convert(value, boolean if operand.truth else writer.type)
        results = iter(writer.write(self.expression, given))
        found = []
        for operand in self.operands[self.inputs :]:
            type_ = VectorType(operand.type, self.width)
            parts = [lowering.convert(next(results), type_) for _ in range(operand.parts)]
            found.append(parts if operand.parts > 1 else parts[0])
        return found


def operand_of(nodes: Sequence[Node], type_: Any, mode: str) -> Operand:
    """Return the operand for a node, or for the two nodes of a complex number. The numbers have this type in memory."""
    truth = nodes[0].kind == BOOL
    return Operand(u8 if truth else type_, truth, mode, len(nodes))


@loops(noalias=False)
def _find_tile(
    places: Pointer[i64], shape: Pointer[i64], dimensions: Int, row: Int, tile: Int, OPERANDS: Static
) -> None:
    """Move each operand's place to a tile of a row."""
    strides = shape + dimensions
    for K in unrolled(OPERANDS):
        places[K] += tile * strides[K * (dimensions + 1)]
    for d in rolled(dimensions):
        index, following = row, i64(0)
        if d + 1 < dimensions:  # a division takes longer than the rest of a short row
            following = row // shape[d]
            index = row - following * shape[d]
        for K in unrolled(OPERANDS):
            places[K] += index * strides[K * (dimensions + 1) + d + 1]
        row = following


def masks_are_cheap(type_: Any) -> bool:
    """Return whether the processor can read parts of vectors of this type efficiently."""
    return bool(HOST.vector_bytes == 64 or (HOST.vector_bytes == 32 and type_.bits >= 32))


@loops(noalias=False)
def _read(place: Pointer[S], left: Any, WIDTH: Static, ELEMENT: Static) -> Static:
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
def _read_paired(place: Pointer[S], left: Any, WIDTH: Static) -> Static:
    """Read every second number of the next part of a row, without reading beyond the last number."""
    there = lanes(i32, 2 * WIDTH) < vector(i32, 2 * WIDTH)(minimum(2 * left - 1, i64(2 * WIDTH)))
    pairs = load(place, 2 * WIDTH, there)
    return shuffle(pairs, pairs, [2 * LANE for LANE in unrolled(WIDTH)])


@loops(noalias=False)
def _write_paired(place: Pointer[S], values: T, left: Any, WIDTH: Static) -> None:
    """Write the next numbers of a row to every second position."""
    places = lanes(i32, 2 * WIDTH)
    there = (places < vector(i32, 2 * WIDTH)(minimum(2 * left - 1, i64(2 * WIDTH)))) & (places % 2 == 0)
    store(place, shuffle(values, values, [LANE // 2 for LANE in unrolled(2 * WIDTH)]), there)


@loops(noalias=False)
def _write(place: Pointer[S], values: T, left: Any, WIDTH: Static, ELEMENT: Static) -> None:
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
def _write_indexed(place: Int, table: Pointer[i64], values: T, left: Any, WIDTH: Static, ELEMENT: Static) -> None:
    """Write the next numbers of a row, whose distances in bytes are in a table."""
    part = local(ELEMENT, WIDTH)
    store(part, values)
    for i in rolled(minimum(left, i64(WIDTH))):
        store(as_pointer(place + table[i], ELEMENT), part[i])


@loops(noalias=False, explicit=True, plain=True)
def pointwise(table: Pointer[i64], start: Int, stop: Int, PLAN: Static) -> None:
    """Compute the elements from `start` to `stop`, counted in row-major order."""
    W = PLAN.width
    N = len(PLAN.operands)
    layout = as_pointer(table[0], i64)
    head = fields(layout, LAYOUT)
    streamed = head.streamed != 0
    shape = layout + LAYOUT.size
    tables = shape + (head.dimensions + N * (head.dimensions + 1))
    scalars = PLAN.scalar_values(table)
    begins = [elements_at(table, K) for K in unrolled(N)]
    indices = [tables + sum(PLAN.tables[:K]) * head.tile for K in unrolled(N)]
    collected = [_memory(PLAN.operands[K]) for K in unrolled(N)]
    for K in unrolled(N):
        if PLAN.operands[K].mode == PATTERN:
            _collect(PLAN.operands[K], collected[K], begins[K], indices[K], head.run, i64(0), head.tile)
    places = local(i64, N)
    position = start
    row = start // head.length
    column = start - row * head.length
    while position < stop:
        tile, within = i64(0), column
        count = minimum(head.length - column, stop - position)
        if any(PLAN.tables):
            tile = column // head.tile
            within = column - tile * head.tile
            count = minimum(count, head.tile - within)
        for K in unrolled(N):
            places[K] = begins[K]
        _find_tile(places, shape, head.dimensions, row, tile, N)
        for K in unrolled(N):
            if PLAN.operands[K].mode in COLLECTED:
                if PLAN.operands[K].mode != PATTERN:
                    _collect(PLAN.operands[K], collected[K], places[K], indices[K], head.run, within, count)
                places[K] = as_integer(collected[K])
        at = [places[K] + within * PLAN.operands[K].step for K in unrolled(N)]
        indices_at = [indices[K] + within for K in unrolled(N)]
        first = PLAN.operands[PLAN.inputs]
        step = i64(W)
        if first.parts == 1 and (streamed or (count > W and not any(PLAN.tables))):
            # The first elements, up to where vectors are aligned, are written like the last ones.
            before = elements_before_aligned(at[PLAN.inputs], W, first.type)
            step = before if before > 0 else step
        done, last = i64(0), count - (W - 1)
        if PLAN.whole and head.fresh != 0 and not streamed and count >= W:
            # The first vector and the last one are whole. They overlap others, and write the same elements again.
            done = step - W
            step = i64(W)
            last = count
        while done < count:
            if PLAN.whole and not streamed and step == W:
                while done < last:
                    _vector(PLAN, at, indices_at, minimum(maximum(done, i64(0)), count - W), W, scalars, False)
                    done += W
            if done < count:
                _vector(PLAN, at, indices_at, done, minimum(count - done, step), scalars, streamed)
            done += step
            step = i64(W)
        position += count
        column += count
        if column == head.length:
            row += 1
            column = i64(0)
    if streamed:
        end_streams()


@loops(noalias=False)
def _memory(OPERAND: Static) -> Static:
    """Return memory for the numbers of a tile that are collected. A vector may extend beyond the tile."""
    if OPERAND.mode in COLLECTED:
        return local(OPERAND.type, TILE * OPERAND.parts + HOST.vector_bytes)
    return None


@loops(noalias=False)
def _collect(
    OPERAND: Static, target: Pointer[S], place: Int, table: Pointer[i64], run: Int, start: Int, count: Int
) -> None:  # fmt: skip
    """Collect numbers of a tile, or all runs that contain them."""
    W = HOST.vector_bytes // size_of(OPERAND.type)
    if OPERAND.mode in (RUNS, REPEATS):
        length = run * OPERAND.parts
        for i in rolled(start // run, (start + count + run - 1) // run):
            source = as_pointer(place + table[i], OPERAND.type)
            first = [source[0], source[OPERAND.parts - 1]]
            done = i64(0)
            while done < length:
                if OPERAND.mode == RUNS:
                    store(target + (i * length + done), _read(source + done, length - done, W, OPERAND.type))
                else:
                    numbers = broadcast(first[0], W)
                    if OPERAND.parts == 2:
                        numbers = shuffle(numbers, broadcast(first[1], W), [LANE % 2 * W for LANE in unrolled(W)])
                    store(target + (i * length + done), numbers)
                done += W
    else:
        for i in rolled(start, start + count):
            source = as_pointer(place + table[i], OPERAND.type)
            for PART in unrolled(OPERAND.parts):
                target[i * OPERAND.parts + PART] = source[PART]


@loops(noalias=False)
def _vector(
    PLAN: Static, begins: list[Any], indices: list[Any], done: Int, left: Any, scalars: Any, streamed: Any
) -> None:  # fmt: skip
    """Compute the vector of a tile that begins after `done` elements, or its first `left` elements."""
    W = PLAN.width
    at = [begins[K] + done * PLAN.operands[K].step for K in unrolled(len(PLAN.operands))]
    if streamed:
        for K in unrolled(PLAN.inputs):
            if PLAN.operands[K].mode == DENSE:
                ask_ahead(at[K], W, PLAN.operands[K].type)
    inputs = [read_operand(PLAN.operands[K], W, at[K], left) for K in unrolled(PLAN.inputs)]
    results = PLAN.values(inputs, scalars)
    for K in unrolled(len(results)):
        OPERAND, place = PLAN.operands[PLAN.inputs + K], at[PLAN.inputs + K]
        aligned = streamed and place & (aligned_bytes(W, OPERAND.type) - 1) == 0
        write_operand(OPERAND, W, place, left, results[K], indices[PLAN.inputs + K] + done, aligned)


@loops(noalias=False)
def read_operand(OPERAND: Static, WIDTH: Static, place: Int, left: Any) -> Static:
    """Return the next numbers of an operand."""
    at = as_pointer(place, OPERAND.type)
    if OPERAND.parts == 2:
        if OPERAND.mode in (DENSE, *COLLECTED):
            pairs = _read(at, 2 * left, 2 * WIDTH, OPERAND.type)
            return [shuffle(pairs, pairs, [2 * LANE + PART for LANE in unrolled(WIDTH)]) for PART in unrolled(2)]
        return [vector(OPERAND.type, WIDTH)(at[PART]) for PART in unrolled(2)]
    if OPERAND.mode in (DENSE, *COLLECTED):
        return _read(at, left, WIDTH, OPERAND.type)
    if OPERAND.mode == PAIRED:
        return _read_paired(at, left, WIDTH)
    return vector(OPERAND.type, WIDTH)(at[0])


@loops(noalias=False)
def write_operand(
    OPERAND: Static, WIDTH: Static, place: Int, left: Any, values: Any, table: Any = None, streamed: Any = False
) -> None:  # fmt: skip
    """Write the next numbers of an output. If `streamed`, bypass the cache."""
    at = as_pointer(place, OPERAND.type)
    if OPERAND.parts == 2:
        if OPERAND.mode == DENSE:
            pairs = shuffle(values[0], values[1], [LANE // 2 + LANE % 2 * WIDTH for LANE in unrolled(2 * WIDTH)])
            _write(at, pairs, 2 * left, 2 * WIDTH, OPERAND.type)
        else:
            for PART in unrolled(2):
                _write_indexed(place + PART * size_of(OPERAND.type), table, values[PART], left, WIDTH, OPERAND.type)
    elif OPERAND.mode == DENSE:
        if streamed and left >= WIDTH:
            stream(at, values)
        else:
            _write(at, values, left, WIDTH, OPERAND.type)
    elif OPERAND.mode == PAIRED:
        _write_paired(at, values, left, WIDTH)
    else:
        _write_indexed(place, table, values, left, WIDTH, OPERAND.type)


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
