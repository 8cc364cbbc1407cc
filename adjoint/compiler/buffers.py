"""The memory of a program's values, and which values share it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy

from .program import Program


class Buffers:
    """The values that share memory.

    `of` maps a value to the number of its buffer, `sizes` a buffer to its size, and `members` a buffer to its values.

    All arrays of a capture are alive at its end, so two values share memory if their addresses overlap. This does not depend on
    sizes, so sizes that vary are plain numbers here.
    """

    def __init__(self, program: Program, numbers: Iterable[int] | None = None) -> None:
        """`numbers`: the values, by default all values of the program."""
        self.program, self.numbers = program, range(len(program.shapes)) if numbers is None else numbers
        self.of: dict[int, int] = {}
        self.sizes: list[int] = []
        self.members: list[list[int]] = []
        end = -1
        for begin, stop, number in sorted(self.spans()):
            if begin >= end:
                self.sizes.append(0)
                self.members.append([])
                first = begin
            end = max(end, stop)
            self.of[number] = len(self.sizes) - 1
            self.members[-1].append(number)
            self.sizes[-1] = end - first

    def spans(self) -> list[tuple[int, int, int]]:
        """Return the first address of each value that has elements, the address after its last element, and its number."""
        found = []
        for number in self.numbers:
            form, memory = self.program.shapes[number], self.program.memory[number]
            if form is None or memory is None or 0 in form[0] or not memory[1]:
                continue
            steps = [int(step) * (int(size) - 1) for size, step in zip(form[0], memory[0], strict=True)]
            begin = memory[1] + sum(step for step in steps if step < 0)
            stop = memory[1] + sum(step for step in steps if step > 0) + numpy.dtype(form[1]).itemsize
            found.append((begin, stop, number))
        return found

    def whole(self, number: int) -> bool:
        """Return whether a value covers its whole buffer."""
        shape, dtype = self.program.shapes[number]  # type: ignore[misc]
        return math.prod(map(int, shape)) * numpy.dtype(dtype).itemsize == self.sizes[self.of[number]]

    def alike(self, one: int, other: int) -> bool:
        """Return whether two values have the same shape, dtype and layout."""
        (shapes, memory) = self.program.shapes, self.program.memory
        return shapes[one] == shapes[other] and memory[one][0] == memory[other][0]  # type: ignore[index]

    def join(self, number: int, target: int) -> None:
        """Store a value and its views in the memory of another value with the same form."""
        memory = self.program.memory
        apart = memory[target][1] - memory[number][1]  # type: ignore[index]
        buffer = self.of[target]
        for each in self.members[self.of[number]]:
            strides, place = memory[each]  # type: ignore[misc]
            memory[each] = strides, place + apart
            self.of[each] = buffer
            self.members[buffer].append(each)
