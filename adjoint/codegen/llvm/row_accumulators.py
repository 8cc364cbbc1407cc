"""The state of a row reduction for each lane of a vector: a sum, or an extreme value and whether a NaN has occurred.

Processors compare faster without checks for NaN, so a separate check runs at the end of the row.
"""

from __future__ import annotations

import ast
import math

from ..expression import Node
from .builtin_functions import reduce_add, reduce_or, shuffle
from .element_types import PointerType, VectorType, boolean
from .lowering import Lowering
from .values import Value, constant

Places = list[Value]
"""The locations on the stack of the parts of an accumulator."""


class Sum:
    """The sum of all values."""

    identity = 0.0

    def __init__(self, vector: VectorType) -> None:
        self.vector = vector

    def places(self, lowering: Lowering) -> Places:
        """Allocate memory for an accumulator."""
        return [Value(PointerType(self.vector), lowering.allocate(self.vector))]

    def reset(self, lowering: Lowering, places: Places) -> None:
        """Begin again."""
        lowering.store(places[0], constant(self.identity, self.vector))

    def add(self, lowering: Lowering, places: Places, value: Value) -> None:
        """Add a vector of values to the accumulator."""
        lowering.store(places[0], lowering.binary(ast.Add, lowering.load(places[0]), value))

    def merge(self, lowering: Lowering, places: Places, others: Places) -> None:
        """Merge another accumulator into this one."""
        self.add(lowering, places, lowering.load(others[0]))

    def result(self, lowering: Lowering, places: Places, along: bool) -> Value:
        """Return the result of each lane, or of all lanes together if they hold elements of one row (`along`)."""
        total = lowering.load(places[0])
        if along:
            total = reduce_add.lower(lowering, total)
        return total


class Extreme(Sum):
    """The greatest or smallest value, or NaN if a value is NaN."""

    def __init__(self, vector: VectorType, order: type[ast.cmpop]) -> None:
        super().__init__(vector)
        self.order = order
        self.identity = -math.inf if order is ast.Gt else math.inf
        self.flags = VectorType(boolean, vector.width)

    def places(self, lowering: Lowering) -> Places:
        """Allocate memory for the extreme value and for the lanes that have encountered a NaN."""
        return [*super().places(lowering), Value(PointerType(self.flags), lowering.allocate(self.flags))]

    def reset(self, lowering: Lowering, places: Places) -> None:
        """Begin again."""
        super().reset(lowering, places)
        lowering.store(places[1], constant(False, self.flags))

    def add(self, lowering: Lowering, places: Places, value: Value) -> None:
        """Add a vector of values to the accumulator."""
        self._take(lowering, places, value, lowering.compare(ast.NotEq, value, value))

    def merge(self, lowering: Lowering, places: Places, others: Places) -> None:
        """Merge another accumulator into this one."""
        self._take(lowering, places, lowering.load(others[0]), lowering.load(others[1]))

    def _take(self, lowering: Lowering, places: Places, value: Value, unordered: Value) -> None:
        lowering.store(places[0], self._extreme(lowering, value, lowering.load(places[0])))
        lowering.store(places[1], lowering.binary(ast.BitOr, lowering.load(places[1]), unordered))

    def _extreme(self, lowering: Lowering, value: Value, total: Value) -> Value:
        """Return the greater (or smaller) of two numbers. Ignore a value that is NaN."""
        return lowering.select(lowering.compare(self.order, value, total), value, total)

    def result(self, lowering: Lowering, places: Places, along: bool) -> Value:
        """Return the result of each lane, or of all lanes together if they hold elements of one row (`along`)."""
        total, unordered = lowering.load(places[0]), lowering.load(places[1])
        if along:
            unordered = reduce_or.lower(lowering, unordered)
            width = self.vector.width
            while width > 1:
                width //= 2
                halves = [shuffle.lower(lowering, total, total, range(start, start + width)) for start in (0, width)]
                total = self._extreme(lowering, *halves)
            total = lowering.value(f"extractelement {total}, i64 0", self.vector.element)
        return lowering.select(unordered, constant(math.nan, total.type), total)


def accumulator(node: Node, vector: VectorType) -> Sum:
    """Return the accumulator of a reduction."""
    if node.operation in ("row_max", "row_min"):
        return Extreme(vector, ast.Gt if node.operation == "row_max" else ast.Lt)
    return Sum(vector)
