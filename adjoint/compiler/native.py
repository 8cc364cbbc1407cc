"""Runs of small instructions as one native call.

A small operation takes less time than the call of its kernel. Machine code runs the blocks of such instructions one
after the other, on arrays of one floating-point dtype. Their intermediate values are stored in an arena.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from .._runtime.platform import ctypes
from ..codegen.acceleration import LOOPS
from ..codegen.llvm.calls import ARRAYS_AT, CallTables
from ..codegen.llvm.host import HOST
from ..codegen.llvm.values import CompilationError
from ..kernels.runtime.addresses import AFTER_HEAD, IN_OBJECTS
from .blocks import POINTERS, SIZES, STATUS, TYPES, Foreign, Writer, order_of
from .extents import is_contiguous
from .loops import write
from .passes import in_few_buffers, recomputed
from .program import Instruction, Program, Reference
from .steps import Clear


class Native:
    """A run of blocks. It is called with the arrays that the blocks read and write.

    `run`: the instructions of the blocks. `inside`: the values in the arena, each stored only while a block uses it.
    `outside`: the arrays with which the run is called. `spans`: the positions of the values. `llvm`: the text of the
    different blocks.
    """

    def __init__(self, writer: Writer, run: list[Instruction], inside: list[int], outside: list[int]) -> None:
        self.instructions, self.values, self.blocks = run, len(inside), len(writer.blocks)
        sizes = {number: -(-int(math.prod(writer.form(number)[0])) * writer.item // 64) * 64 for number in inside}
        self.apart = sum(sizes.values())
        self.spans, size = in_arena(sizes, [{buffer for buffer, _ in block.pointers} for block in writer.blocks])
        places = {number: (0, span.offset) for number, span in self.spans.items()}
        self.status = size // 8 if writer.checks else None
        places[STATUS] = 0, size  # behind the values
        self.arena = size + 64
        places.update({number: (position, 0) for position, number in enumerate(outside, 1)})
        places[SIZES] = 1 + len(outside), 0
        self.sizes = (numpy.array(writer.sizes),) if writer.sizes else ()
        arrays = 1 + len(outside) + len(self.sizes)
        code = [len(writer.blocks), arrays]
        compiled = writer.compiled()
        self.llvm = list(dict.fromkeys(each.text for each in compiled))
        for block, machine_code in zip(writer.blocks, compiled, strict=True):
            code.append(machine_code.address)
            for buffer, offset in block.pointers:
                array, begin = places[buffer]
                code += [array, begin + offset * (8 if buffer in writer.integers else writer.item)]
            code += [0, 0] * (POINTERS - len(block.pointers))
        self.tables = CallTables(code, arrays, 0, "d")
        self.run = block_runner()
        self.__name__ = f"native, of {len(writer.blocks)} blocks"

    def __str__(self) -> str:
        names = ", ".join(
            f"%{each.results[0]} = {each.name}" if each.results else each.name for each in self.instructions
        )
        return (
            f"native run of {self.blocks} blocks; {self.values} values in {self.arena} bytes, "
            f"{self.apart} if none shared memory: {names}"
        )

    def __call__(self, *arrays: Any) -> None:
        """Run the blocks."""
        arena = numpy.empty(self.arena, numpy.uint8)
        if self.status is not None:
            status = arena.view(numpy.int64)
            status[self.status] = 0
        table = self.tables.make((arena, *arrays, *self.sizes), ())
        self.run(self.tables.address(table))
        if self.status is not None and status[self.status]:
            raise IndexError(f"Target {status[self.status + 1]} is out of bounds.")


class Span(NamedTuple):
    """The position of a value in the arena, in bytes, and the first and the last block that use it."""

    offset: int
    size: int
    first: int
    last: int

    def shares(self, other: Span) -> bool:
        """Return whether a block, or the code between two blocks, uses both spans."""
        return not (self.last < other.first or other.last < self.first)


def in_arena(sizes: dict[int, int], uses: list[set[int]]) -> tuple[dict[int, Span], int]:
    """Return the positions of values in the arena, and the size of the arena.

    Two values share memory if their `uses` do not overlap.

    `sizes`: the sizes in bytes. `uses`: the values that each block uses, in order.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, numbers in enumerate(uses):
        for number in numbers & sizes.keys():
            first.setdefault(number, position)
            last[number] = position
    spans: dict[int, Span] = {}
    for number in sorted(sizes, key=lambda each: first.get(each, 0)):
        span = Span(0, sizes[number], first.get(number, 0), last.get(number, len(uses)))
        for other in sorted(each for each in spans.values() if each.shares(span)):
            if span.offset + span.size <= other.offset:
                break
            span = span._replace(offset=max(span.offset, other.offset + other.size))
        spans[number] = span
    return spans, max((span.offset + span.size for span in spans.values()), default=0)


@functools.cache
def block_runner() -> Any:
    """Return the machine code that runs blocks.

    Each word of its code is the address of a block, or the position of an array.
    """
    words = 1 + 2 * POINTERS
    place = f"  %place = load i64, ptr %entry.array\n  %object = add i64 %place, {AFTER_HEAD if IN_OBJECTS else 0}\n"
    if IN_OBJECTS:
        place += "  %at = inttoptr i64 %object to ptr\n  %base = load i64, ptr %at\n"
    else:
        place += "  %base = add i64 %object, 0\n"
    pointers = "".join(
        f"  %n{k}p = getelementptr i64, ptr %entry, i64 {1 + 2 * k}\n  %n{k} = load i64, ptr %n{k}p\n"
        f"  %o{k}p = getelementptr i64, ptr %entry, i64 {2 + 2 * k}\n  %o{k} = load i64, ptr %o{k}p\n"
        f"  %b{k}p = getelementptr i64, ptr %bases, i64 %n{k}\n  %b{k} = load i64, ptr %b{k}p\n"
        f"  %a{k} = add i64 %b{k}, %o{k}\n  %p{k} = inttoptr i64 %a{k} to ptr\n"
        for k in range(POINTERS)
    )
    arguments = ", ".join(f"ptr %p{k}" for k in range(POINTERS))
    text = f"""define void @run_blocks(ptr %table) {{
start:
  %code.place = load i64, ptr %table
  %code = inttoptr i64 %code.place to ptr
  %blocks = load i64, ptr %code
  %arrays.at = getelementptr i64, ptr %code, i64 1
  %arrays = load i64, ptr %arrays.at
  %bases = alloca i64, i64 %arrays, align 16
  br label %find
find:
  %array = phi i64 [0, %start], [%array.next, %find]
  %behind = add i64 %array, {ARRAYS_AT}
  %entry.array = getelementptr i64, ptr %table, i64 %behind
{place}  %base.at = getelementptr i64, ptr %bases, i64 %array
  store i64 %base, ptr %base.at
  %array.next = add i64 %array, 1
  %more = icmp ult i64 %array.next, %arrays
  br i1 %more, label %find, label %run
run:
  %block = phi i64 [0, %find], [%block.next, %run]
  %apart = mul i64 %block, {words}
  %word = add i64 %apart, 2
  %entry = getelementptr i64, ptr %code, i64 %word
  %function.place = load i64, ptr %entry
  %function = inttoptr i64 %function.place to ptr
{pointers}  call void %function({arguments})
  %block.next = add i64 %block, 1
  %again = icmp ult i64 %block.next, %blocks
  br i1 %again, label %run, label %end
end:
  ret void
}}
"""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(HOST.compile("run_blocks", text, plain=True).address)


def fused(
    program: Program, instructions: list[Instruction], kept: list[bool], lasting: set[int], captured: bool = True
) -> list[Instruction]:
    """Return the remaining instructions, with runs of small instructions as native functions.

    `lasting`: the values that are used after the last instruction. `captured`: whether all values were alive when their
    addresses were recorded. The addresses then show which values share memory.
    """
    wanted = [each for each, keep in zip(instructions, kept, strict=True) if keep]
    if captured and not program.varying:
        program = copy.copy(program)
        program.memory = [*program.memory]
        wanted = recomputed(program, in_few_buffers(program, wanted, lasting), lasting)
    if not LOOPS.available:
        return wanted
    result: list[Instruction] = []
    position = 0
    while position < len(wanted):
        run, stop = longest_run(program, wanted, position)
        if run is None:
            result.append(wanted[position])
            position += 1
            continue
        later = {number for each in wanted[stop:] for number in each.reads()} | lasting
        try:
            result += native(program, run, wanted, position, stop, later)
        except CompilationError:
            result += wanted[position:stop]
        position = stop
    outputs = [each.function for each in result if isinstance(each.function, Outputs)]
    reused = frozenset([leaf for each in outputs for _, leaf in each.parts if leaf is not None])
    return [
        each._replace(function=Clear(each.function.params, reused)) if isinstance(each.function, Clear) else each
        for each in result
    ]


def longest_run(program: Program, wanted: list[Instruction], position: int) -> tuple[Writer | None, int]:
    """Return a writer with the blocks of the longest run of instructions from `position` on, and the end of the run."""
    first = wanted[position]
    number = next((each for each in first.results if each is not None), None)
    form = program.shapes[number] if number is not None else None
    if form is None and first.operands and isinstance(first.operands[0], Reference):
        form = program.shapes[first.operands[0].number]
    if form is None or form[1] not in TYPES:
        return None, position
    writer = Writer(program, form[1])
    stop, written = position, 0
    while stop < len(wanted):
        instruction = wanted[stop]
        if instruction.name == "set_grad":  # it only stores what is made, and may do so later
            stop += 1
            continue
        try:
            write(writer, instruction)
        except Foreign:
            break
        written += not is_view(instruction)
        stop += 1
    while stop > position and wanted[stop - 1].name == "set_grad":
        stop -= 1
    return (writer, stop) if written > 1 else (None, position)


def is_view(instruction: Instruction) -> bool:
    """Return whether the result is a view of the first operand."""
    return instruction.kernel is not None and instruction.kernel.view and bool(instruction.results)


def native(
    program: Program, writer: Writer, wanted: list[Instruction], position: int, stop: int, later: set[int]
) -> list[Instruction]:
    """Return a run as one instruction, after instructions that create its outputs, and before views that are used outside."""
    run = wanted[position:stop]
    stored = [each for each in run if each.name == "set_grad"]
    later = later | {number for each in stored for number in each.reads()}
    computed = [each for each in run if each.name != "set_grad"]
    views = [each for each in computed if is_view(each)]
    made = [number for each in computed if not is_view(each) for number in each.results if number is not None]
    needed: list[Instruction] = []
    used = set(later)
    for each in reversed(views):
        found = [number for number in each.results if number is not None and number in used]
        parts = [part for number in found if (part := Part.of(writer, number)) is not None]
        if len(parts) == len(found):
            needed[:0] = [
                each._replace(function=part, operands=[Reference(part.whole)], results=[number], several=False)
                for part, number in zip(parts, found, strict=True)
            ]
            used.update(part.whole for part in parts)
        elif found:
            needed.insert(0, each)
            used.update(each.reads())
    outputs = [number for number in made if number in used]
    inside = [number for number in made if number not in used]
    given = list(dict.fromkeys(writer.buffers))
    call = Native(writer, computed, inside, [*given, *outputs])
    program.natives.append(call)
    line, result = run[0].line, []
    if outputs:
        cleared, leaves = cleared_before(wanted, position)
        empty = Outputs([Empty(program, number) for number in outputs], [leaves.get(number) for number in outputs])
        given_back = [cleared] if cleared is not None and not leaves.keys().isdisjoint(outputs) else []
        result.append(Instruction("empty", empty, given_back, [*outputs], True, False, True, None, line))
    arrays = [Reference(number) for number in (*given, *outputs)]
    result.append(Instruction("native", call, arrays, [], False, True, True, None, line))
    return [*result, *needed, *stored]


def cleared_before(wanted: list[Instruction], position: int) -> tuple[Reference | None, dict[int, int]]:
    """Return the results of the latest `zero_grad` before a position, and the identities of leaves by their later gradients."""
    calls = [each.results[0] for each in wanted[:position] if each.name == "zero_grad" and each.results]
    leaves = {
        each.operands[1].number: id(each.operands[0].value) for each in wanted[position:] if each.name == "set_grad"
    }
    return (Reference(calls[-1]), leaves) if calls else (None, {})  # type: ignore[arg-type]


class Part:
    """Creates a view of the row-major array with the number `whole`: some of its elements, by their strides."""

    makes_arrays = True

    def __init__(self, whole: int, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> None:
        self.whole, self.shape, self.dtype, self.offset, self.strides = whole, shape, dtype, offset, strides

    @staticmethod
    def of(writer: Writer, number: int) -> Part | None:
        """Return a function that creates a view of the writer's value, or None if sizes vary or the value is not row-major."""
        place, program = writer.places[number], writer.program
        shape, dtype = program.shapes[place.buffer]  # type: ignore[misc]
        strides, _ = program.memory[place.buffer]  # type: ignore[misc]
        whole = numpy.empty(0, dtype)  # of which no more is asked than the size of an element
        if program.varying or not is_contiguous(shape, strides, whole.itemsize):
            return None
        strides = tuple([each * whole.itemsize for each in place.strides])
        return Part(place.buffer, place.shape, whole.dtype, place.offset * whole.itemsize, strides)

    def __call__(self, whole: Any) -> Any:
        """The view."""
        return ndarray(self.shape, self.dtype, whole, self.offset, self.strides)


class Outputs:
    """Creates the arrays that a native run writes, and reuses the arrays of gradients that were taken from leaves.

    `leaves`: for each array, the identity of the leaf whose gradient it will be, or None.
    """

    makes_arrays = True

    def __init__(self, empties: list[Empty], leaves: list[int | None]) -> None:
        self.parts = list(zip(empties, leaves, strict=True))

    def __call__(self, taken: dict[int | None, Any] | None = None) -> list[Any]:
        """Return the arrays, in order."""
        if not taken:
            return [empty() for empty, _ in self.parts]
        return [
            array if (array := taken.get(leaf)) is not None and array.strides == empty.strides else empty()
            for empty, leaf in self.parts
        ]


class Empty:
    """Creates an array with a shape, a dtype and an order of dimensions."""

    def __init__(self, program: Program, number: int) -> None:
        shape, dtype = program.shapes[number]  # type: ignore[misc]
        strides, _ = program.memory[number]  # type: ignore[misc]
        order = order_of(shape, strides)
        self.make = functools.partial(numpy.empty, tuple([shape[dim] for dim in order]), numpy.dtype(dtype))
        self.back = None if order == list(range(len(shape))) else tuple(map(order.index, range(len(shape))))
        self.strides = self().strides

    def __call__(self) -> Any:
        """Return a new array."""
        array = self.make()
        return array if self.back is None else array.transpose(self.back)

    def filled(self, given: Any) -> Any:
        """Return a new array with the elements of another array."""
        array = self()
        numpy.copyto(array, given)
        return array
