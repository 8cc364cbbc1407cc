"""The computations of each step in the loops of a row program, as instructions for one expression.

`ALONG`: the elements of a row are consecutive in memory, and vectors run along the row. `ACROSS`: there are dimensions
after the row. Vectors hold one element of each of several rows, and the rows advance together. `TURNED`: rows are
consecutive in memory but short. Groups of rows are transposed in a copy, and vectors run across them. `PARTED`: rows
consist of parts, and vectors run along each part. If a later pass needs costly values of an earlier pass, they are
stored in the memory of an output.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._runtime.first_use import computed_once
from ...kernels.runtime.costs import NARROW, SHORT
from ..expression import COLUMN, CONSTANT, ELEMENT, INPUT, PART, ROW, ROW_LENGTH, SCALAR, Expression, Node
from .builtin_functions import as_integer, cast_pointer, lanes, maximum, minimum, reduce_add
from .calls import ARRAYS_AT, elements_at
from .element_types import PointerType, VectorType, boolean, f64, i32, i64
from .expressions import COSTLY, ExpressionWriter
from .functions import Builtin, LoopRange
from .host import HOST
from .language import *
from .lowering import Lowering
from .pointwise_loops import DENSE, Operand, read_operand, write_operand
from .row_accumulators import Places, Sum, accumulator
from .streaming import ask_ahead
from .values import CompilationError, Value, constant
from .vectors import turn

ALONG, ACROSS, TURNED, PARTED = "along", "across", "turned", "parted"

RUN = 64
"""The number of vectors of a row that are accumulated before their sum is added to the sum of the row."""

TILE_VECTORS = 64
"""The maximum number of strips in a tile of columns. Their accumulators stay in the first-level cache."""

LAYOUT = Struct("units length inner block chunk tile rest step outer_step place:5 parts stretches distance period")
"""The layout of a call: the number of units of work, the length of a row (or of a stretch of a part), the size of the dimensions
after the row, and the number of units in a block. A unit is a `chunk` of a row and a `tile` of columns. Elements of a row are
`step` apart, and rows of different matrices `outer_step`, or as `row_place` says. `rest`: the length of one more row at the end.
If rows are `PARTED`, there are the number of parts in a row, the number of stretches in a part, the distance between stretches,
and the number of rows after which the inputs with one value per part repeat."""

REDUCTIONS = frozenset(("row_sum", "row_prod", "row_max", "row_min", "part_sum", "part_total"))


@dataclass(frozen=True, slots=True)
class RowArray:
    """An input or output, with its node, its type in memory, and its extent."""

    node: Node
    type: Any
    extent: str


class RowPlan:
    """The properties to which the code of a row program is specialized."""

    def __init__(
        self,
        expression: Expression,
        type_: Any,
        inputs: Sequence[RowArray],
        outputs: Sequence[RowArray],
        scalars: Sequence[Node],
        mode: str,
        chunked: bool = False,
        apart: bool = False,
        glued: bool = False,
        single: bool = False,
        lanes: int = 1,
        registers: int = 4,
    ) -> None:
        self.chunked, self.apart, self.glued, self.lanes = chunked, apart, glued, lanes
        self.expression = expression
        self.element = type_
        self.inputs, self.outputs, self.scalars = list(inputs), list(outputs), list(scalars)
        self.mode = mode
        self.along, self.turned, self.parted = mode in (ALONG, PARTED), mode == TURNED, mode == PARTED
        self.levels = _levels(expression)
        last = [self.levels[node] - (node.extent in (ROW, PART)) for node in expression.nodes() if node.operands]
        self.passes = 1 + max(last, default=0)
        only_reduces = self.passes == 1 and all(item.extent == ROW for item in outputs)
        # Several registers hide the latency of sums.
        self.width = (registers if only_reduces else 2) * max(1, HOST.vector_bytes * 8 // type_.bits)
        self.overlaps = only_reduces and self.along
        self.merges = mode != TURNED and not single
        self.run = RUN // 8 if only_reduces and mode == ACROSS else RUN
        self.strips = TILE_VECTORS if mode == ACROSS else 1
        self.vector = VectorType(type_, self.width)
        names = "begin sums turn of_row numbers offset begin_part end_part places reset step merge end_pass end_row"
        for name in names.split():
            setattr(self, name, Builtin(getattr(self, f"_{name}")))

    @property
    def sums_bytes(self) -> int:
        """Return the number of bytes that the sums over rows need for one position in a row."""
        return sum(item.extent == COLUMN for item in self.outputs) * self.element.bits // 8

    # -- the order of the computation --------------------------------------------------------------------------------------

    @computed_once
    def reductions(self) -> list[list[Node]]:
        """Return the reductions of each pass."""
        found: list[list[Node]] = [[] for _ in range(self.passes)]
        for node in self.expression.nodes():
            if node.operation in REDUCTIONS:
                found[self.levels[node] - (node.operation != "part_sum")].append(node)
        return found

    @computed_once
    def accumulators(self) -> list[list[Sum]]:
        """Return the states of the reductions of each pass."""
        return [[accumulator(node, self.vector, self.along) for node in nodes] for nodes in self.reductions]

    @computed_once
    def written(self) -> list[list[int]]:
        """Return the outputs that each pass writes, except outputs with one value per row."""
        found: list[list[int]] = [[] for _ in range(self.passes)]
        for number, item in enumerate(self.outputs):
            if item.extent not in (ROW, PART):
                found[self.levels[item.node]].append(number)
        return found

    def needed(self, number: int) -> set[Node]:
        """Return the values that a pass computes for each element if nothing has been stored."""
        targets = [node.operands[0] for node in self.reductions[number]]
        targets += [self.outputs[output].node for output in self.written[number]]
        found: set[Node] = set()
        while targets:
            node = targets.pop()
            if node not in found and node.kind != SCALAR and node.extent not in (ROW, PART):
                found.add(node)
                targets += node.operands
        return found

    @computed_once
    def kept(self) -> dict[Node, int]:
        """Return the costly values that are stored in an output until a later pass needs them."""
        found: dict[Node, int] = {}
        for number in range(self.passes):
            later = set().union(*(self.needed(other) for other in range(number + 1, self.passes)))
            for node in self.needed(number) & later:
                if node.operation not in COSTLY or node in found or node.extent != ELEMENT:
                    continue
                for output, item in enumerate(self.outputs):
                    last = max(other for other in range(self.passes) if node in self.needed(other))
                    free = item.extent == ELEMENT and item.type == self.element and output not in found.values()
                    if free and self.levels[item.node] >= last:
                        found[node] = output
                        break
        return found

    # -- instructions --------------------------------------------------------------------------------------------------------

    def _begin(self, lowering: Lowering, table: Value, length: Value, whole: Value) -> dict[Any, Any]:
        """Load the scalars and the addresses of arrays."""
        arrays = len(self.inputs) + len(self.outputs) + (self.sums_bytes > 0)
        known: dict[Any, Any] = {"place": {}, "length": length, "found": {}}
        for number in range(arrays):
            known["place"][number] = lowering.call(elements_at, [table, number], {})
        known["lies"] = dict(known["place"])
        for number, type_ in self._turned_arrays():
            memory = Value(PointerType(type_), lowering.allocate(type_, NARROW * self.width))
            known["place"][number] = as_integer.lower(lowering, memory)
        for number, node in enumerate(self.scalars):
            if node.operation == "parameter" and node.value == ROW_LENGTH:
                known[node] = lowering.convert(whole, self.element)
            else:
                place = lowering.offset(table, ARRAYS_AT + arrays + number)
                word = lowering.load(cast_pointer.lower(lowering, place, f64))
                known[node] = lowering.convert(word, self.element)
        return known

    def _turned_arrays(self) -> list[tuple[int, Any]]:
        """Return the numbers and types of the arrays whose groups of rows are transposed."""
        arrays = [*self.inputs, *self.outputs] if self.turned else []
        return [(number, item.type) for number, item in enumerate(arrays) if item.extent == ELEMENT]

    def _turn(self, lowering: Lowering, known: Any, row: Value, left: Value, back: bool) -> None:
        """Transpose a group of rows of the inputs into a copy, or of the outputs back."""
        for number, type_ in self._turned_arrays():
            if back == (number >= len(self.inputs)):
                where = [known["place"][number], known["lies"][number], row, left, known["length"]]
                lowering.call(turn, [*where, type_, self.width, back], {})

    def _sums(self, _lowering: Lowering, known: Any) -> Any:
        """Return the address of the sums over rows, if there are any."""
        return known["place"].get(len(self.inputs) + len(self.outputs), 0)

    def _place(self, lowering: Lowering, known: Any, number: int, index: Value) -> Any:
        """Return the address of an element of an array."""
        item = [*self.inputs, *self.outputs][number]
        distance = lowering.binary(ast.Mult, index, item.type.bits // 8)
        return lowering.binary(ast.Add, known["place"][number], distance)

    def _at(self, lowering: Lowering, place: Value, type_: Any) -> Value:
        """Return the pointer to an element whose address is known."""
        return Value(PointerType(type_), lowering.value(f"inttoptr {place} to ptr", None).name)

    def _read(self, lowering: Lowering, known: Any, number: int, index: Value, left: Value, ahead: bool = False) -> Any:
        item = self.inputs[number]
        place = self._place(lowering, known, number, index)
        operand = Operand(item.type, False, DENSE)
        if ahead:
            lowering.call(ask_ahead, [place, self.width, item.type], {})
        value = lowering.call(read_operand, [operand, self.width, place, left], {})
        return lowering.convert(value, self.vector)

    def _read_one(self, lowering: Lowering, known: Any, number: int, index: Value) -> Any:
        place = self._place(lowering, known, number, index)
        return lowering.convert(lowering.load(self._at(lowering, place, self.inputs[number].type)), self.element)

    def _numbers(self, lowering: Lowering, width: Value) -> Any:
        """Return the numbers of the strips of a tile with `width` columns."""
        if self.mode != ACROSS:
            return range(1)
        return LoopRange((lowering.binary(ast.FloorDiv, lowering.binary(ast.Add, width, self.width - 1), self.width),))

    def _of_row(self, lowering: Lowering, number: int, known: Any, place: Value, width: Value, strip: Any) -> Any:
        """Return the values for the row, or for each of several adjacent rows, that a pass needs."""
        current = dict(known)
        offset = self._offset(lowering, strip, width)
        index, left = lowering.binary(ast.Add, place, offset), lowering.binary(ast.Sub, width, offset)
        for which, item in enumerate(self.inputs):
            if item.extent == ROW:
                current[item.node] = (
                    self._read_one(lowering, known, which, index)
                    if self.along
                    else self._read(lowering, known, which, index, left)
                )
        for node, found in known["found"].items():
            if self.levels[node] <= number:
                current[node] = lowering.load(lowering.offset(found, strip)) if self.mode == ACROSS else found
        self._values(lowering, current, ROW, number)
        return current

    def _offset(self, lowering: Lowering, strip: Any, width: Value) -> Any:
        """Return the number of columns before a strip. If nothing is stored twice, the last strip overlaps the one before."""
        offset = lowering.binary(ast.Mult, strip, self.width)
        if self.mode != ACROSS or self.glued or any(item.extent != ROW for item in self.outputs):
            return offset
        last = maximum.lower(lowering, lowering.binary(ast.Sub, width, self.width), constant(0, i64))
        return minimum.lower(lowering, offset, last)

    def _values(self, lowering: Lowering, known: Any, extent: str, level: int) -> None:
        """Compute the values with one number per row or part whose operands are available."""
        writer = ExpressionWriter(lowering, self.element if self.along else self.vector)
        for node in self.expression.nodes():
            of_extent = node.extent == extent and node.kind != SCALAR and node.operation not in (*REDUCTIONS, INPUT)
            available = all(item in known or item.operation == CONSTANT for item in node.operands)
            if of_extent and node not in known and self.levels[node] <= level and available:
                known[node] = writer.node(node, [_operand(known, item) for item in node.operands])

    def _begin_part(self, lowering: Lowering, number: int, known: Any, part: Value, places: list[Places]) -> Any:
        """Load the inputs that have one value for the part, and reset the sums of a part."""
        current = dict(known)
        for which, array in enumerate(self.inputs):
            if array.extent == PART:
                current[array.node] = self._read_one(lowering, known, which, part)
        self._values(lowering, current, PART, number)
        for node, item, place in zip(self.reductions[number], self.accumulators[number], places, strict=True):
            if node.operation == "part_sum":
                item.reset(lowering, place)
        return current

    def _end_part(self, lowering: Lowering, number: int, known: Any, part: Value, places: list[Places]) -> None:
        """Compute the sums of a part and the values that depend on them, write outputs, and add to the totals of the row."""
        found = list(zip(self.reductions[number], self.accumulators[number], places, strict=True))
        for node, item, place in found:
            if node.operation == "part_sum":
                known[node] = item.result(lowering, place, 1)
        self._values(lowering, known, PART, number)
        for output, array in enumerate(self.outputs):
            if array.extent == PART and self.levels[array.node] == number:
                self._write_one(lowering, known, output, part)
        first = lowering.compare(
            ast.Eq, lanes.lower(lowering, i64, self.width), lowering.broadcast(constant(0, i64), self.width)
        )
        for node, item, place in found:
            if node.operation == "part_total":
                value = lowering.as_type(_operand(known, node.operands[0]), self.vector)
                item.add(lowering, place, lowering.select(first, value, constant(0, self.vector)))

    def _places(self, lowering: Lowering, number: int) -> tuple[list[Places], list[Places]]:
        """Allocate memory for the accumulators of a pass, for each strip, and for the accumulators of a run."""
        items = self.accumulators[number]
        runs = [item.run(lowering) for item in items]
        return [item.totals(lowering, self.strips) for item in items] if self.merges else runs, runs

    def _reset(self, lowering: Lowering, number: int, places: list[Places], strip: Any) -> None:
        """Reset the accumulators of a pass."""
        for item, place in zip(self.accumulators[number], places, strict=True):
            item.reset(lowering, _at_strip(lowering, place, strip))

    def _merge(self, lowering: Lowering, number: int, places: list[Places], strip: Any, others: list[Places]) -> None:
        """Merge the accumulators of a part of a pass into the accumulators of the whole pass."""
        for item, place, other in zip(self.accumulators[number], places, others, strict=True):
            item.merge(lowering, _at_strip(lowering, place, strip), other)

    def _counted(self, lowering: Lowering, order: type[ast.cmpop], limit: Value) -> Any:
        """Return the lanes before or after a limit."""
        numbers = lanes.lower(lowering, i32, self.width)
        return lowering.compare(order, numbers, lowering.broadcast(lowering.convert(limit, i32), self.width))

    def _step(
        self, lowering: Lowering, number: int, known: Any, index: Value, position: Value, left: Value, sums: Any,
        places: list[Places], skipped: Any = 0,
    ) -> None:  # fmt: skip
        """Compute one vector of a pass, with `left` valid lanes, without the `skipped` first ones."""
        values = dict(known)
        writer = ExpressionWriter(lowering, self.vector)

        def value(node: Node) -> Any:
            if node not in values and not (node.kind == SCALAR and node.operation == CONSTANT):
                values[node] = self._value(lowering, writer, node, values, value, (number, index, position, left))
            return _operand(values, node)

        counted = None
        if left != self.width:
            counted = self._counted(lowering, ast.Lt, left)
        elif isinstance(skipped, Value):
            counted = self._counted(lowering, ast.GtE, skipped)
        for which, node in enumerate(self.reductions[number]):
            if node.operation == "part_total":
                continue
            accumulated = self.accumulators[number][which]
            item = lowering.as_type(value(node.operands[0]), self.vector)
            if counted is not None and (self.along or self.glued):
                item = lowering.select(counted, item, constant(accumulated.identity, self.vector))
            accumulated.add(lowering, places[which], item)
        results = [(output, value(self._written_node(output))) for output in self.written[number]]
        for node, output in self.kept.items():
            if node in values and node not in known and not self._is_kept_before(node, number):
                self._write(lowering, known, output, index, left, values[node])
        for output, result in results:
            item = lowering.as_type(result, self.vector) if _is_number(result) else result
            if self.outputs[output].extent == COLUMN:
                self._add_to_sums(lowering, sums, output, position, left, counted, item)
            else:
                self._write(lowering, known, output, index, left, item)

    def _written_node(self, output: int) -> Node:
        node = self.outputs[output].node
        return node.operands[0] if node.operation == "column_sum" else node

    def _is_kept_before(self, node: Node, number: int) -> bool:
        return any(node in self.needed(other) for other in range(number))

    def _value(self, lowering: Lowering, writer: Any, node: Node, values: Any, value: Any, where: Any) -> Any:
        number, index, position, left = where
        if node.operation == INPUT:
            which = next(place for place, item in enumerate(self.inputs) if item.node is node)
            if node.extent == COLUMN and not self.along:
                return lowering.broadcast(self._read_one(lowering, values, which, position), self.width)
            at = position if node.extent == COLUMN else index
            first = (
                number == 0 and self.passes > 1 and self.along and node.extent == ELEMENT
            )  # later passes find the row in the cache
            return self._read(lowering, values, which, at, left, ahead=first)
        if node in self.kept and self._is_kept_before(node, number):
            place = self._place(lowering, values, len(self.inputs) + self.kept[node], index)
            return lowering.call(read_operand, [Operand(self.element, False, DENSE), self.width, place, left], {})
        return writer.node(node, [value(item) for item in node.operands])

    def _write(self, lowering: Lowering, known: Any, output: int, index: Value, left: Value, value: Value) -> None:
        item = self.outputs[output]
        place = self._place(lowering, known, len(self.inputs) + output, index)
        memory = lowering.convert(value, VectorType(item.type, self.width))
        lowering.call(write_operand, [Operand(item.type, False, DENSE), self.width, place, left, memory], {})

    def _add_to_sums(
        self, lowering: Lowering, sums: Any, output: int, position: Value, left: Any, counted: Value | None, value: Value
    ) -> None:  # fmt: skip
        """Add to a sum over rows. Each block of rows has a separate sum."""
        order = [number for number, item in enumerate(self.outputs) if item.extent == COLUMN].index(output)
        distance = lowering.binary(ast.Add, lowering.binary(ast.Mult, sums[1], constant(order, i64)), position)
        place = lowering.binary(ast.Add, sums[0], lowering.binary(ast.Mult, distance, self.element.bits // 8))
        operand = Operand(self.element, False, DENSE)
        if self.along:
            before = lowering.call(read_operand, [operand, self.width, place, left], {})
            total = lowering.binary(ast.Add, before, value)
            lowering.call(write_operand, [operand, self.width, place, left, total], {})
            return
        if counted is not None:
            value = lowering.select(counted, value, constant(0, self.vector))
        at = self._at(lowering, place, self.element)
        lowering.store(at, lowering.binary(ast.Add, lowering.load(at), reduce_add.lower(lowering, value)))

    def _end_pass(self, lowering: Lowering, number: int, known: Any, places: list[Places]) -> None:
        """Compute the results of a pass's reductions."""
        for node, item, place in zip(self.reductions[number], self.accumulators[number], places, strict=True):
            if node.operation != "part_sum":
                known["found"][node] = (
                    place[0] if self.mode == ACROSS
                    else item.result(lowering, place, self.lanes if self.along else self.width)
                )  # fmt: skip

    def _end_row(self, lowering: Lowering, known: Any, place: Value, target: Value, width: Value, strip: Any) -> None:
        """Write the outputs with one value per row."""
        if not any(item.extent == ROW for item in self.outputs):
            return
        current = self._of_row(lowering, self.passes, known, place, width, strip)
        offset = self._offset(lowering, strip, width)
        index, left = lowering.binary(ast.Add, target, offset), lowering.binary(ast.Sub, width, offset)
        for number, item in enumerate(self.outputs):
            if item.extent != ROW:
                continue
            if self.along:
                self._write_one(lowering, current, number, lowering.binary(ast.Mult, index, self.lanes))
            else:
                value = lowering.as_type(_operand(current, item.node), self.vector)
                self._write(lowering, current, number, index, left, value)

    def _write_one(self, lowering: Lowering, known: Any, output: int, index: Value) -> None:
        """Write an output with one value for a row or part."""
        item = self.outputs[output]
        place = self._place(lowering, known, len(self.inputs) + output, index)
        value = _operand(known, item.node)
        result = lowering.convert(value, item.type) if isinstance(value, Value) else value
        lowering.store(self._at(lowering, place, getattr(result, "type", item.type)), result)


def _at_strip(lowering: Lowering, places: Places, strip: Any) -> Places:
    return [lowering.offset(place, strip) for place in places]


def _is_number(value: Any) -> bool:
    return not isinstance(value, Value) or value.type.element is not boolean


def _operand(values: Any, node: Node) -> Any:
    if node in values:
        return values[node]
    if node.operation == CONSTANT:
        return node.value
    raise CompilationError(f"{node.operation} is not known")


def _levels(expression: Expression) -> dict[Node, int]:
    """Return, for each value, the number of passes over the row that it requires."""
    levels: dict[Node, int] = {}
    for node in expression.nodes():
        below = max((levels[item] for item in node.operands), default=0)
        levels[node] = below + (node.operation in REDUCTIONS and node.operation != "part_sum")
    return levels


def turned_length(expression: Expression, types: Sequence[Any]) -> int:
    """Return the maximum length of rows that are transposed for a program on these types, as measured on an EPYC."""
    if max(_levels(expression).values()) < 2:
        return SHORT
    if min(type_.bits for type_ in types) < 32:
        return 2 * SHORT - 1  # masked loads are slow
    return NARROW * 32 // max(type_.bits for type_ in types)
