"""Passes over the instructions of a program with known sizes. Each pass returns other instructions that compute the same bits."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy

from ..codegen.compiled_ufuncs import of_any_size
from .blocks import SMALL
from .buffers import Buffers
from .extents import Same, is_contiguous
from .fusion import Fused
from .program import Constant, Instruction, Program, Reference, numbers_in, used
from .tracer import Overwriting


class Owners:
    """The uses of buffers.

    `last` is the position of the last use of each buffer, and `held` lists the buffers that are also used outside.
    """

    def __init__(self, program: Program, instructions: list[Instruction], lasting: set[int]) -> None:
        self.program, self.buffers = program, Buffers(program)
        self.last: dict[int, int] = {}
        self.made: dict[int, Instruction] = {}
        for position, each in enumerate(instructions):
            for number in (*each.reads(), *each.results):
                if (buffer := self.buffers.of.get(number)) is not None:  # type: ignore[arg-type]
                    self.last[buffer] = position
                    self.made.setdefault(buffer, each)
        self.held = {self.buffers.of.get(number) for number in (*lasting, *program.inputs)}

    def given_up(self, operand: Any, result: int | None, position: int) -> int | None:
        """Return the value of an operand that the result may overwrite: same form, own memory, and no use after this position."""
        buffers = self.buffers
        if not isinstance(operand, Reference) or operand.number not in buffers.of or result not in buffers.of:
            return None
        number, buffer = operand.number, buffers.of[operand.number]
        alone = self.last[buffer] == position and self.held.isdisjoint([buffer, buffers.of[result]])
        fresh = self.made[buffer].results and not isinstance(self.made[buffer].function, Same)
        fits = alone and fresh and buffers.whole(number) and buffers.alike(number, result)
        return self.first(number) if fits else None

    def first(self, number: int) -> int:
        """Return the first value with the memory and form of a value. Views between these values are then not needed."""
        for each in self.made[self.buffers.of[number]].results:
            if each is not None and self.program.memory[each] == self.program.memory[number]:
                return each if self.buffers.alike(each, number) else number
        return number

    def join(self, number: int, target: int) -> None:
        """Make a value the same array as another value."""
        before, buffer = self.buffers.of[number], self.buffers.of[target]
        self.buffers.join(number, target)
        self.last[buffer] = self.last.get(before, self.last[buffer])


def renamed(operand: Any, names: dict[int, int]) -> Any:
    """Return an operand with other numbers of values."""
    if isinstance(operand, Reference):
        return Reference(names.get(operand.number, operand.number))
    if isinstance(operand, (list, tuple)) and not isinstance(operand, Constant):
        return type(operand)([renamed(each, names) for each in operand])
    return operand


def in_few_buffers(program: Program, instructions: list[Instruction], lasting: set[int]) -> list[Instruction]:
    """Return instructions without copies of unused operands, and with large results written over such operands.

    Most gradients are computed once and stored. The engine copies a gradient if it cannot see that the gradient has no
    other owner.
    """
    owners = Owners(program, instructions, lasting)
    names: dict[int, int] = {}
    result = []
    for position, each in enumerate(instructions):
        each = each._replace(operands=[renamed(operand, names) for operand in each.operands])
        if each.name == "clone":
            target = owners.given_up(each.operands[0], each.results[0], position)
            written = None
        else:
            written, target = overwriting(owners, each, position)
        if target is None:
            result.append(each)
            continue
        (number,) = each.results
        names[number] = target  # type: ignore[index]
        owners.join(number, target)  # type: ignore[arg-type]
        result += [] if written is None else [written]
    kept = used(result, lasting)
    return [each for each, keep in zip(result, kept, strict=True) if keep]


def overwriting(owners: Owners, given: Instruction, position: int) -> tuple[Instruction | None, int | None]:
    """Return an instruction that writes its large result over its first operand, and that operand, if possible."""
    if isinstance(given.function, Fused):
        return overwriting_fused(owners, given, position)
    op, buffers = given.kernel, owners.buffers
    kernel = None if op is None or given.keeps or given.several or op.view else op.kernel.inplace
    if kernel is None or len(given.results) != 1 or buffers.of.get(given.results[0], -1) < 0:  # type: ignore[arg-type]
        return None, None
    first, *others = given.operands
    if math.prod(owners.program.shapes[given.results[0]][0]) <= SMALL:  # type: ignore[index]
        return None, None
    target = owners.given_up(first, given.results[0], position)
    if target is None and op.name == "add" and [*map(str, others[1:])] == ["1"]:
        first, others[0] = others[0], first
        target = owners.given_up(first, given.results[0], position)
    if target is None or any(buffers.of.get(number) == buffers.of[target] for number in numbers_in(others)):
        return None, None
    names = [each for each in op.names if each in op.keyword_only]
    function = Overwriting(of_any_size(kernel), len(given.operands) - len(names), names)
    operands = [Reference(target), *others]
    return given._replace(
        name=f"{op.name}_", function=function, operands=operands, results=[], changes=True, keeps=True
    ), target


def overwriting_fused(owners: Owners, given: Instruction, position: int) -> tuple[Instruction | None, int | None]:
    """Return the same as `overwriting` for a loop of several instructions, which may overwrite any of its operands."""
    if given.several:
        return None, None
    buffers = owners.buffers
    for place, operand in enumerate(given.operands):
        target = owners.given_up(operand, given.results[0], position)
        others = given.operands[:place] + given.operands[place + 1 :]
        if target is not None and all(buffers.of.get(number) != buffers.of[target] for number in numbers_in(others)):
            function = Fused(given.function.loop, given.function.instructions, place)
            operands = [Reference(target), *others]
            return given._replace(function=function, operands=operands, results=[], changes=True, keeps=True), target
    return None, None


# --- views --------------------------------------------------------------------------------------------------------------------


def with_short_views(program: Program, instructions: list[Instruction]) -> list[Instruction]:
    """Return instructions that create views through methods of arrays, which are much faster than the kernels of views."""
    return [method_for(program, each) for each in instructions]


def method_for(program: Program, given: Instruction) -> Instruction:
    """Return an instruction that calls a method of the first operand to create a view, if there is such a method."""
    if not given.is_view or given.several or len(given.results) != 1:
        return given
    (result,), (operand, *options) = given.results, given.operands
    if result is None or not all(isinstance(each, Constant) for each in options):
        return given
    shapes, memory = program.shapes, program.memory
    (shape, dtype), (strides, _) = shapes[operand.number], memory[operand.number]
    if given.name in ("view_shape", "unsafe_view", "unsqueeze"):
        whole = is_contiguous(shape, strides, numpy.dtype(dtype).itemsize)
        new = Constant(shapes[result][0])  # type: ignore[index]
        return given._replace(function="{0}.reshape({1})", operands=[operand, new]) if whole else given
    order, numbers = [*range(len(shape))], [each.value for each in options]
    if given.name == "transpose" and order:
        one, other = numbers
        order[one], order[other] = order[other], order[one]
    elif given.name == "permute":
        (order,) = numbers
    elif given.name == "t":
        order.reverse()
    else:
        return given
    return given._replace(function=f"{{0}}.transpose({tuple(order)})")


# --- memory ---------------------------------------------------------------------------------------------------------------


ENOUGH = 0.77
"""Values are computed again until the peak of memory has fallen to this fraction. A lower peak would cost time."""

WORTHWHILE = 1 << 24
"""If the peak is below this number of bytes, no value is computed again, and runs may use any memory."""


class Lives:
    """The times at which buffers are in use.

    `uses` maps a buffer to the positions of its instructions. `gaps` lists the times at which a buffer is not stored. `held`: the
    buffers that are also used outside. `kept`: the buffers that stay in use after their last instruction.
    """

    def __init__(self, program: Program, instructions: list[Instruction], lasting: set[int]) -> None:
        buffers = self.buffers = Buffers(program)
        self.count = len(instructions)
        self.uses: dict[int, list[int]] = {}
        self.gaps: dict[int, tuple[int, int]] = {}
        dropped: dict[int, int] = {}
        self.held = {buffers.of.get(number) for number in (*lasting, *program.inputs)}
        stored = [number for each in instructions if each.name == "set_grad" for number in each.reads()]
        self.kept = self.held | {buffers.of.get(number) for number in stored}
        for position, each in enumerate(instructions):
            for buffer in dict.fromkeys(buffers.of.get(number) for number in (*each.reads(), *each.results)):  # type: ignore[arg-type]
                if buffer is None:
                    continue
                if buffer in dropped:
                    self.gaps[buffer] = dropped.pop(buffer), position
                if each.name == "drop":
                    dropped[buffer] = position
                self.uses.setdefault(buffer, []).append(position)

    def spans(self, buffer: int) -> list[tuple[int, int]]:
        """Return the first and last positions at which a buffer is stored, twice if it is computed again."""
        first, last = self.uses[buffer][0], self.uses[buffer][-1]
        last = self.count - 1 if buffer in self.kept else last
        if buffer not in self.gaps:
            return [(first, last)]
        begin, end = self.gaps[buffer]
        return [(first, begin), (end, last)]

    def memory(self) -> Any:
        """Return the memory in use at each position."""
        changes = numpy.zeros(self.count + 1, numpy.int64)
        for buffer in self.uses:
            for begin, end in self.spans(buffer):
                changes[begin] += self.buffers.sizes[buffer]
                changes[end + 1] -= self.buffers.sizes[buffer]
        return changes.cumsum()

    def peak(self) -> tuple[int, int]:
        """Return the highest memory use, and its position."""
        sizes = self.memory()
        return int(sizes.max()), int(sizes.argmax())

    def is_stored(self, buffer: int, position: int) -> bool:
        """Return whether a buffer is in use at a position, or is computed again there."""
        begin, end = self.gaps.get(buffer, (position, position))
        return self.uses[buffer][-1] >= position and not begin < position < end

    def around(self, buffer: int, position: int) -> tuple[int, int] | None:
        """Return the last use of a buffer before a position and the first use after it, or None if the buffer is in use there."""
        positions = self.uses[buffer]
        at = bisect.bisect_left(positions, position)
        idle = 0 < at < len(positions) and positions[at] != position and buffer not in self.gaps
        return (positions[at - 1], positions[at]) if idle else None


class RunMemory:
    """The memory in use during runs. A run holds arrays from outside until its end, and allocates its results at its beginning.

    `most`: the memory that may be in use: little more than the peak of the instructions one by one.
    """

    def __init__(self, program: Program, instructions: list[Instruction], lasting: set[int]) -> None:
        lives = Lives(program, instructions, lasting)
        self.sizes = lives.memory()
        self.most = self.sizes.max(initial=0) * 1.02
        self.made: dict[int, list[int]] = {}
        self.freed: dict[int, list[tuple[int, int]]] = {}
        for buffer in lives.uses if self.most > WORTHWHILE else ():
            for begin, end in lives.spans(buffer):
                self.made.setdefault(begin, []).append(lives.buffers.sizes[buffer])
                self.freed.setdefault(end, []).append((begin, lives.buffers.sizes[buffer]))

    def begin(self, position: int) -> None:
        """Begin a run."""
        self.start, self.during, self.late = position, self.sizes[position:].copy(), 0

    def takes(self, position: int) -> bool:
        """Return whether the run may contain the next instruction, too."""
        at = position - self.start
        self.during[at] += self.late
        self.during[:at] += sum(self.made.get(position, ()))
        for begin, size in self.freed.get(position, ()):
            if begin < self.start:
                self.late += size
            else:
                self.during[: begin - self.start] -= size
        return not self.made or not at or self.during[: at + 1].max() <= self.most


def recomputed(program: Program, instructions: list[Instruction], lasting: set[int]) -> list[Instruction]:
    """Return instructions that compute large values twice if this lowers the peak of memory.

    Such a value is computed element by element, or row by row, from values that stay in memory until its next use, such
    as the inputs of activations and normalizations.
    """
    lives = Lives(program, instructions, lasting)
    buffers, held = lives.buffers, lives.held
    changed: dict[int | None, list[int]] = {}
    makers: dict[int, tuple[int, list[int]]] = {}
    hosts: list[int] = []
    for position, each in enumerate(instructions):
        for number in numbers_in(each.operands[:1]) if each.changes else ():
            changed.setdefault(buffers.of.get(number), []).append(position)
        if each.kernel is None:
            known = each.name in ("set_grad", "zero_grad") or isinstance(each.function, Fused)
            hosts += [position] if each.keeps and not known else []
            continue
        kernel, buffer = each.kernel.kernel, buffers.of.get(each.results[0] if each.results else None)  # type: ignore[arg-type]
        if each.keeps or buffer is None or buffer in lives.kept or (kernel.expression is None and kernel.rows is None):
            continue
        if buffers.sizes[buffer] > SMALL * numpy.float32().itemsize:
            makers[buffer] = position, [buffers.of[number] for number in each.reads() if number in buffers.of]

    def fits(buffer: int, gap: tuple[int, int]) -> bool:
        """Return whether the operands of a buffer's instruction exist at the end of a gap, unchanged by known functions."""
        position, read = makers[buffer]
        changes = [*hosts, *(other for each in read for other in changed.get(each, ()))]
        same = buffer not in changed and not any(position < other <= gap[1] for other in changes)
        return same and all(each in held or lives.is_stored(each, gap[1]) for each in read)

    most, position = lives.peak()
    size = most
    while size > max(ENOUGH * most, WORTHWHILE):
        found = [(buffers.sizes[each], each, gap) for each in makers if (gap := lives.around(each, position))]
        found = [each for each in found if fits(*each[1:])]
        if not found:
            break
        _, buffer, gap = max(found)
        lives.gaps[buffer] = gap
        for operand in makers[buffer][1]:
            bisect.insort(lives.uses[operand], gap[1])
        size, position = lives.peak()
    in_order = sorted(lives.gaps.items(), key=lambda each: makers[each[0]][0])
    return with_gaps(buffers, instructions, dict(in_order))


def with_gaps(buffers: Buffers, instructions: list[Instruction], gaps: dict[int, tuple[int, int]]) -> list[Instruction]:
    """Return instructions that free buffers after one position, and compute buffers and views again before another position."""
    dropped: dict[int, list[Instruction]] = {}
    again: dict[int, list[Instruction]] = {}
    for buffer, (begin, end) in gaps.items():
        needed = {number for each in instructions[end:] for number in each.reads() if buffers.of.get(number) == buffer}
        made: list[Instruction] = []
        for each in reversed(instructions[: begin + 1]):
            if not needed.isdisjoint(each.results):
                made.insert(0, each)
                needed.update(number for number in each.reads() if buffers.of.get(number) == buffer)
        values = [Reference(number) for each in made for number in each.results if number in needed]
        text = f"del {', '.join(['{}'] * len(values))}"
        drop = Instruction("drop", text, [*values], [], False, False, True, None, made[0].line)
        dropped.setdefault(begin, []).append(drop)
        again.setdefault(end, []).extend(made)
    result = []
    for position, each in enumerate(instructions):
        result += [*again.get(position, ()), each, *dropped.get(position, ())]
    return result
