"""The state of a row reduction for each lane of a vector: a sum, or an extreme value and whether a NaN has occurred.

Processors compare faster without checks for NaN, so a NaN sets a flag, which is read at the end of a run.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy

from ..expression import CONSTANT, Node
from .builtin_functions import maximum, minimum, shuffle
from .element_types import PointerType, VectorType, boolean
from .lowering import Lowering
from .values import Value, constant

Places = list[Value]
"""The locations on the stack of the parts of an accumulator."""


class Sum:
    """The sum of all values."""

    operation: type[ast.operator] = ast.Add
    identity: float = 0

    def __init__(self, vector: VectorType) -> None:
        self.vector = vector

    def totals(self, lowering: Lowering, count: int) -> Places:
        """Allocate memory for `count` accumulators, into which others are merged."""
        return [Value(PointerType(self.vector), lowering.allocate(self.vector, count))]

    def run(self, lowering: Lowering) -> Places:
        """Allocate memory for an accumulator to which values are added."""
        return self.totals(lowering, 1)

    def reset(self, lowering: Lowering, places: Places) -> None:
        """Begin again."""
        lowering.store(places[0], constant(self.identity, self.vector))

    def add(self, lowering: Lowering, places: Places, value: Value) -> None:
        """Add a vector of values to the accumulator."""
        lowering.store(places[0], self.combine(lowering, lowering.load(places[0]), value))

    def merge(self, lowering: Lowering, places: Places, others: Places) -> None:
        """Merge another accumulator into this one."""
        lowering.store(places[0], self.combine(lowering, lowering.load(places[0]), self.value(lowering, others)))

    def value(self, lowering: Lowering, places: Places) -> Value:
        """Return the result of each lane."""
        return lowering.load(places[0])

    def combine(self, lowering: Lowering, total: Value, value: Value) -> Any:
        """Return the combination of two results."""
        return lowering.binary(self.operation, total, value)

    def result(self, lowering: Lowering, places: Places, width: int) -> Value:
        """Return the results of groups of lanes: each of `width` lanes combines with the lanes at a distance of `width`."""
        total = self.value(lowering, places)
        while total.type.width > width:
            half = total.type.width // 2
            halves = [shuffle.lower(lowering, total, total, range(start, start + half)) for start in (0, half)]
            total = self.combine(lowering, *halves)
        return lowering.value(f"extractelement {total}, i64 0", self.vector.element) if width == 1 else total


class Product(Sum):
    """The product of all values."""

    operation = ast.Mult
    identity = 1


class Extreme(Sum):
    """The greatest or smallest value, or NaN unless values are `ordered`. `flagged` lanes remember NaN."""

    def __init__(self, vector: VectorType, order: type[ast.cmpop], ordered: bool, flagged: bool) -> None:
        super().__init__(vector)
        self.ordered = ordered
        self.order = order
        self.extreme = maximum if order is ast.Gt else minimum
        self.identity = -math.inf if order is ast.Gt else math.inf
        self.flags = VectorType(boolean, vector.width) if flagged and not ordered else None
        if vector.kind != "f":
            limits = numpy.iinfo(f"{vector.kind}{vector.element.bits // 8}")
            self.identity = limits.min if order is ast.Gt else limits.max

    def run(self, lowering: Lowering) -> Places:
        """Allocate memory for an extreme value and for the lanes that have encountered a NaN."""
        flags = [Value(PointerType(self.flags), lowering.allocate(self.flags))] if self.flags else []
        return super().run(lowering) + flags

    def reset(self, lowering: Lowering, places: Places) -> None:
        """Begin again."""
        super().reset(lowering, places)
        for flags in places[1:]:
            lowering.store(flags, constant(False, self.flags))

    def add(self, lowering: Lowering, places: Places, value: Value) -> None:
        """Add a vector of values to the accumulator. A NaN sets only the flag."""
        if not self.flags:
            super().add(lowering, places, value)
            return
        total, flags = map(lowering.load, places)
        lowering.store(places[0], self._ordered(lowering, total, value))
        lowering.store(places[1], lowering.binary(ast.BitOr, flags, lowering.compare(ast.NotEq, value, value)))

    def value(self, lowering: Lowering, places: Places) -> Value:
        """Return the result of each lane."""
        total, *flags = map(lowering.load, places)
        return lowering.select(flags[0], constant(math.nan, total.type), total) if flags else total

    def combine(self, lowering: Lowering, total: Value, value: Value) -> Any:
        """Return the greater (or smaller) of two numbers, or NaN if one is NaN."""
        if self.ordered:
            return self._ordered(lowering, total, value)
        return self.extreme.lower(lowering, total, value)

    def _ordered(self, lowering: Lowering, total: Value, value: Value) -> Value:
        return lowering.select(lowering.compare(self.order, value, total), value, total)


def accumulator(node: Node, vector: VectorType, along: bool) -> Sum:
    """Return the accumulator of a reduction, whose values follow one another `along` a row or belong to several rows."""
    if node.operation in ("row_max", "row_min"):
        (operand,) = node.operands
        chosen = operand.operation == "where" and all(item.operation == CONSTANT for item in operand.operands[1:])
        order = ast.Gt if node.operation == "row_max" else ast.Lt
        return Extreme(vector, order, chosen or vector.kind != "f", along)
    return Product(vector) if node.operation == "row_prod" else Sum(vector)
