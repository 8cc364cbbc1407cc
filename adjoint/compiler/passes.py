"""Passes over the instructions of a program whose sizes are known: each returns other instructions that compute the same bits."""

from __future__ import annotations

from typing import Any

import numpy

from .extents import Same
from .program import Constant, Instruction, Program, Reference, used


class Buffers:
    """Which values share memory: `of`, by value, the number of its buffer; `sizes`: of each, in bytes.

    The arrays of a capture are all alive at its end, so two values share memory if their addresses did.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.of: dict[int, int] = {}
        self.sizes: list[int] = []
        end = -1
        for begin, stop, number in sorted(self.spans()):
            if begin >= end:
                self.sizes.append(0)
                first = begin
            end = max(end, stop)
            self.of[number] = len(self.sizes) - 1
            self.sizes[-1] = end - first

    def spans(self) -> list[tuple[int, int, int]]:
        """The first address of each value that has elements, the one behind its last, and its number."""
        found = []
        for number, (form, memory) in enumerate(zip(self.program.shapes, self.program.memory, strict=True)):
            if form is None or memory is None or 0 in form[0]:
                continue
            steps = [step * (size - 1) for size, step in zip(form[0], memory[0], strict=True)]
            begin = memory[1] + sum(step for step in steps if step < 0)
            stop = memory[1] + sum(step for step in steps if step > 0) + numpy.dtype(form[1]).itemsize
            found.append((begin, stop, number))
        return found


def renamed(operand: Any, names: dict[int, int]) -> Any:
    """An operand with other numbers of values."""
    if isinstance(operand, Reference):
        return Reference(names.get(operand.number, operand.number))
    if isinstance(operand, (list, tuple)) and not isinstance(operand, Constant):
        return type(operand)([renamed(each, names) for each in operand])
    return operand


def without_copies(program: Program, instructions: list[Instruction], lasting: set[int]) -> list[Instruction]:
    """Remove copies of arrays that are not used afterwards: the copy becomes the array itself.

    Most gradients are computed once, and stored: the engine copies them where it cannot see that nobody else has them.
    """
    buffers = Buffers(program)
    last: dict[int | None, int] = {}
    made: dict[int | None, Instruction] = {}
    for position, each in enumerate(instructions):
        for number in (*each.reads(), *each.results):
            buffer = buffers.of.get(number)  # type: ignore[arg-type]
            last[buffer] = position
            made.setdefault(buffer, each)
    held = {buffers.of.get(number) for number in (*lasting, *program.inputs)}
    names: dict[int, int] = {}
    result = []
    for position, each in enumerate(instructions):
        each = each._replace(operands=[renamed(operand, names) for operand in each.operands])
        if each.name == "clone" and (copied := whole(program, buffers, each)) is not None:
            buffer, (copy,) = buffers.of[copied], each.results
            fresh = copied in made[buffer].results and not isinstance(made[buffer].function, Same)
            if fresh and last[buffer] == position and buffer not in held and copy not in lasting:
                names[copy] = copied  # type: ignore[index]
                last[buffer] = last[buffers.of[copy]]  # type: ignore[index]
                continue
        result.append(each)
    kept = used(result, lasting)
    return [each for each, keep in zip(result, kept, strict=True) if keep]


def whole(program: Program, buffers: Buffers, copy: Instruction) -> int | None:
    """The first value in the memory of the copied array, if the copy has the same layout and covers all of it."""
    (given, *_), (number,) = copy.operands, copy.results
    buffer = buffers.of.get(given.number) if isinstance(given, Reference) else None
    if buffer is None or number is None:
        return None
    first = min(value for value, other in buffers.of.items() if other == buffer)
    wanted = program.shapes[number], program.memory[number][0]  # type: ignore[index]
    size = numpy.dtype(wanted[0][1]).itemsize * int(numpy.prod(wanted[0][0]))  # type: ignore[index]
    for value in (first, given.number):
        memory = program.memory[value]
        if (program.shapes[value], memory[0]) != wanted or memory[1] != program.memory[given.number][1]:  # type: ignore[index]
            return None
    return first if size == buffers.sizes[buffer] else None
