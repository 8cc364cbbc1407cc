"""The numbers of a plan that differ from size to size, and the code that computes them again for other sizes.

A plan is written once, for the sizes of one call. The numbers of other sizes are then computed by straight-line code: all
arithmetic with varying numbers is recorded, and all comparisons of them must have the same results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .objects import Deferred


class Dim(int):
    """A whole number that varies from size to size. In the text of a block it is the name of a variable."""

    table: Table
    table_index: int

    __hash__ = int.__hash__

    def __str__(self) -> str:
        return self.table.writer.size_name(self)

    def __format__(self, form: str) -> str:
        return str(self)

    def __bool__(self) -> bool:
        return self != 0


class FloatDim(float):
    """A `float` that varies from size to size. No code is written for it."""

    table_index: int


class Table:
    """The numbers that vary, and the code that computes them from `sizes`, `memory` and `constants` of a folded program.

    `writer`: the writer of the blocks that name the numbers.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sources: dict[str, int] = {}
        self.conditions: set[str] = set()
        self.known: dict[int, Dim] = {}
        self.writer: Any = None

    def number(self, source: str) -> int:
        """Return the position of the number that some source computes."""
        found = self.sources.get(source)
        if found is None:
            found = self.sources[source] = len(self.sources)
            self.lines.append(f"t{found} = {source}")
        return found

    def dim(self, source: str, value: int) -> Dim:
        """Return a number that some source computes, with its current value."""
        index = self.number(source)
        if index not in self.known:
            self.known[index] = made = Dim(value)
            made.table, made.table_index = self, index
        return self.known[index]

    def require(self, condition: str) -> None:
        """Require a condition of sizes for which the plan is used."""
        if condition not in self.conditions:
            self.conditions.add(condition)
            self.lines.append(f"if not ({condition}): return None")

    def constant(self, place: str, value: Any) -> Any:
        """Return a constant that follows from sizes as numbers that vary. `place`: the source of the constant."""
        kind = type(value)
        if kind is int:
            return self.dim(place, value)
        if kind is float:
            made = FloatDim(value)
            made.table_index = self.number(place)
            return made
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            parts = [self.constant(f"{place}[{k}]", each) for k, each in enumerate(value)]
            return parts if kind is list else tuple(parts)
        if hasattr(value, "table_index"):
            value.table_index = self.number(place)
        else:
            self.require(f"{place} == {value!r}" if value is None or kind in (bool, str) else "False")
        return value

    def function(self) -> str:
        """Return the source of the function that computes the numbers, or None for sizes that need another plan."""
        names = "".join([f"t{number}, " for number in range(len(self.sources))])
        lines = [f"    {line}" for line in self.lines]
        return "\n".join(["def numbers(sizes, memory, constants):", *lines, f"    return ({names})", ""])


def named(value: Any) -> str:
    """Return the source of a number in the code of a table."""
    return f"t{value.table_index}" if type(value) is Dim else f"({int(value)})"


def computing(symbol: str, function: Callable[[int, int], int], reflected: bool) -> Any:
    """Return a method of arithmetic. The results of the method vary from size to size too."""

    def computed(self: Dim, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        one, two = (other, self) if reflected else (self, other)
        return self.table.dim(f"{named(one)} {symbol} {named(two)}", function(int(one), int(two)))

    return computed


def comparing(symbol: str, function: Callable[[int, int], bool]) -> Any:
    """Return a method that compares. The result must be the same at all sizes for which the plan is used."""

    def compared(self: Dim, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        result = function(int(self), int(other))
        if type(other) is not Dim or other.table_index != self.table_index:
            condition = f"{named(self)} {symbol} {named(other)}"
            self.table.require(condition if result else f"not {condition}")
        return result

    return compared


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    _function = getattr(operator, _name)
    setattr(Dim, f"__{_name}__", computing(_symbol, _function, False))
    setattr(Dim, f"__r{_name}__", computing(_symbol, _function, True))
for _name, _symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Dim, f"__{_name}__", comparing(_symbol, getattr(operator, _name)))
Dim.__neg__ = lambda self: 0 - self  # type: ignore[method-assign]


class Numbers(NamedTuple):
    """The numbers of a table at some sizes, and the program at these sizes."""

    values: tuple[Any, ...]
    program: Any


def plain(value: Any) -> Any:
    """Return a value with its current numbers as ordinary numbers, for code whose comparisons are repeated at each size."""
    kind = type(value)
    if kind is Dim:
        return int(value)
    if kind is FloatDim:
        return float(value)
    if kind is tuple or kind is list:
        return kind([*map(plain, value)])
    return kind(*map(plain, value)) if isinstance(value, tuple) and hasattr(value, "_fields") else value


FIXED = frozenset((int, str, float, bool, type(None)))
"""The types of values that do not depend on sizes."""


def at(value: Any, numbers: Numbers) -> Any:
    """Return a value at sizes with these numbers of the table. It is the same object if it does not depend on sizes."""
    kind = type(value)
    if kind is Dim or kind is FloatDim:
        return numbers.values[value.table_index]
    if kind in FIXED:
        return value
    if isinstance(value, (tuple, list)):
        parts = [each if type(each) in FIXED else at(each, numbers) for each in value]
        if all(map(operator.is_, parts, value)):
            return value
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    if kind is partial:
        args = at(value.args, numbers)
        return value if args is value.args else partial(value.func, *args, **value.keywords)
    if kind is Deferred:
        make = at(value.make, numbers)
        return value if make is value.make else Deferred(make, value.__self__)
    if getattr(value, "table_index", None) is not None:
        return numbers.values[value.table_index]
    return value.for_numbers(numbers) if hasattr(kind, "for_numbers") else value
