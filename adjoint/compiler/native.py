"""Runs of small instructions as one native call.

A small operation takes less time than the call of its kernel. Machine code runs the blocks of such instructions one
after the other, on arrays of one floating-point dtype. Their intermediate values are stored in an arena.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from .._runtime.first_use import computed_once
from ..codegen.llvm.calls import MOST_ARRAYS
from ..codegen.llvm.external import built_in
from ..codegen.llvm.workers import WORKERS
from ..codegen.observed_kernels import KERNELS
from ..codegen.plans import Launch
from ..kernels.memory.storage import owner, window
from ..kernels.runtime.addresses import address
from ..kernels.runtime.parallel import get_num_threads
from ..tensor import wrap
from .arena import in_arena_with_forks
from .blocks import BASES, POINTERS, SIZES, STATUS, TYPES, Compiled, Foreign, Writer, order_of
from .dims import Numbers, at, plain
from .extents import is_contiguous
from .forks import Step, one_by_one, parts_of, planned
from .fusion import in_one_loop
from .launches import outlined
from .loops import write
from .objects import Deferred, words
from .passes import RunMemory, in_few_buffers, recomputed, with_short_views
from .program import Instruction, Program, Reference
from .runner import HEAD, block_runner, fork, words_of


class Native:
    """A run of blocks.

    `run`: the instructions of the blocks. `inside`: the values in the arena, each stored only while a block uses it.
    `outside`: the arrays that the run receives. `steps`: the blocks in the order in which they run, with forks. `spans`: the
    positions of the values. `threads`: the number of threads for which kernels were recorded, and `others` the same run for other
    numbers.
    """

    def __init__(self, writer: Writer, run: list[Instruction], inside: list[int], outside: list[int]) -> None:
        self.instructions, self.values, self.writer = run, len(inside), writer
        self.inside, self.outside = inside, outside
        self.again = functools.partial(write_again, writer, run, inside, outside)
        self.parts = parts_of(writer)
        self.arrange()

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.writer.blocks)

    def arrange(self) -> None:
        """Plan the forks and the arena."""
        self.threads = get_num_threads()
        self.steps = planned(self.writer, self.parts, self.elements, self.threads)
        writer, numbers = self.writer, (*self.inside, *self.writer.temporary)
        sizes = {number: -(-self.elements(number) * writer.item_of(number) // 64) * 64 for number in numbers}
        self.apart = sum(sizes.values())
        uses = [{buffer for buffer, _ in block.pointers} for block in writer.blocks]
        self.spans, self.arena = in_arena_with_forks(sizes, uses, [step for step in self.steps if len(step) > 1])
        places = {number: (0, span.offset) for number, span in self.spans.items()}
        places |= {STATUS: (0, self.arena), SIZES: (1, 0)}  # the status follows the values
        places |= {number: (position, 0) for position, number in enumerate(self.outside, 2)}
        places[BASES] = 2 + len(self.outside), 0
        self.places = places
        self.others: dict[int, Native] = {}
        self.functions: dict[tuple[int, int, bool], Any] = {}

    def elements(self, number: int) -> int:
        """Return the number of elements of a value."""
        return math.prod(plain(self.writer.form(number)[0]))

    def for_numbers(self, numbers: Numbers) -> Native:
        """Return the run for other sizes, for which its kernels are planned again."""
        new, old = copy.copy(self), self.writer
        new.writer = writer = Writer(numbers.program, old.dtype)
        writer.places = {number: at(place, numbers) for number, place in old.places.items()}
        instructions = {id(each): each._replace(operands=at(each.operands, numbers)) for each in self.instructions}
        for key in dict.fromkeys([id(block.instruction) for block in old.blocks if type(block.key) is Compiled]):
            write(writer, instructions[key])
        others = [block for block in writer.blocks if type(block.key) is Compiled]
        if writer.temporary != old.temporary or not same_kernels(old.launches, writer.launches):
            raise Foreign
        given = iter(others)
        writer.blocks = []
        for block in old.blocks:
            if type(block.key) is Compiled:
                new_block = next(given)
                pointers = [block.pointers[0], *new_block.pointers[1:]]  # the first are words
            else:
                new_block, pointers = block, at(block.pointers, numbers)
            instruction = instructions[id(block.instruction)]
            writer.blocks.append(new_block._replace(pointers=pointers, instruction=instruction))
        launches = [launch for _, launch in writer.launches]
        writer.launches = [(position, launch) for (position, _), launch in zip(old.launches, launches, strict=True)]
        writer.sizes, writer.checks, writer.stored = at(old.sizes, numbers), old.checks, old.stored
        new.instructions = [*instructions.values()]
        writer.module, writer.names = old.module, old.names
        new.again = functools.partial(self.for_numbers, numbers)
        new.arrange()
        return new

    @computed_once
    def machine_code(self) -> list[Compiled]:
        """Return the machine code of each block."""
        return self.writer.compiled()

    @property
    def llvm(self) -> list[str]:
        """Return the text of the different blocks."""
        return list(dict.fromkeys(each.text for each in self.machine_code))

    @computed_once
    def function(self) -> Any:
        """Return the function that runs the blocks, which is called with the arrays that the blocks read and write."""
        direct = not self.writer.launches and not self.writer.checks and len(self.steps) == self.blocks
        return self.built_in(self.writer.sizes, one_by_one(self.blocks)) if direct else self.run

    def run(self, *arrays: Any) -> None:
        """Run the blocks on these arrays. Run them one at a time while kernels are observed, or after one has stopped the run."""
        threads = get_num_threads()
        key = threads, WORKERS.ready(threads), bool(KERNELS.observers)
        run = self.functions.get(key)
        if run is None:
            run = self.functions[key] = self.made(*key)
        stopped = run(*arrays)
        if stopped is not None:
            *_, position = memoryview(stopped).cast("q")
            self.made(threads, key[1], True)(*arrays, stopped=stopped, step=position)

    def made(self, threads: int, shared: int, observed: bool) -> Any:
        """Return the function that runs the blocks with this number of threads, and the memory that they share.

        Kernels divide their work, and order sums, by the number of threads. For another number they are recorded again.
        """
        if threads != self.threads and self.writer.launches:
            if threads not in self.others:
                try:
                    self.others[threads] = self.again()
                except Foreign:  # the table of sizes does not serve these kernels
                    self.others[threads] = self
            if self.others[threads] is not self:
                return self.others[threads].made(threads, shared, observed)
        sizes = [*self.writer.sizes]
        for position, launch in self.writer.launches:
            sizes[position : position + launch.size] = launch.words(threads, shared)
        steps = one_by_one(self.blocks)
        if not observed:
            return self.built_in(sizes, self.steps if threads > 1 else steps, threads=threads, shared=shared)
        places = self.places | {number: (2 + len(self.outside), span.offset) for number, span in self.spans.items()}
        places[STATUS] = 0, 0
        blocks = [self.built_in(sizes, [step], places) for step in steps]
        return functools.partial(self.run_observed, blocks, self.steps if threads > 1 else steps)

    def run_observed(
        self, blocks: list[Any], steps: list[Step], *arrays: Any, stopped: Any = b"", step: int = 0
    ) -> None:
        """Run the blocks one at a time, each inside the observers of kernels. Their arena is one more array.

        `stopped`: the arena of a run that ended at the `step` with this number, which is one block. If it is a test before a
        fork, it runs again in its place.
        """
        failed = steps[step][0][0] if stopped else -1
        first = min(block for later in steps[step:] for branch in later for block in branch) if stopped else 0
        arena = numpy.empty(self.arena + 64, numpy.uint8)
        arena = arena[-arena.ctypes.data % 64 :]
        arena[: len(stopped) - 8] = numpy.frombuffer(stopped, numpy.uint8)[:-8] if stopped else 0
        done = None
        for position, (block, run) in enumerate(zip(self.writer.blocks, blocks, strict=True)):
            if position < first or block.instruction is done:
                continue
            with KERNELS.around(block.name):
                if position == first == failed or run(*arrays, arena) is not None:
                    self.run_in_python(block.instruction, [*arrays, arena])
                    done = block.instruction

    def run_in_python(self, instruction: Instruction, arrays: list[Any]) -> None:
        """Call the function of an instruction, which may raise an error, in place of its blocks."""

        def value_of(number: int) -> Any:
            """Return the array of a value."""
            place, (_, dtype) = self.writer.places[number], self.writer.form(number)
            item = self.writer.item_of(number)
            span = self.spans.get(place.buffer)
            whole, begin = (arrays[-1], span.offset) if span else (arrays[self.places[place.buffer][0] - 2], 0)
            return window(
                owner(whole), numpy.dtype(dtype), place.shape, [step * item for step in place.strides],
                address(whole) - address(owner(whole)) + begin + place.offset * item,
            )  # fmt: skip

        values = {number: value_of(number) for number in instruction.reads()}
        try:
            results = instruction.function(*[outlined(each, values) for each in instruction.operands])
        except BaseException:
            before = next(number for number, each in enumerate(self.instructions) if each is instruction)
            for position, leaf, value in self.writer.stored:
                if position <= before:
                    leaf.value._grad = wrap(value_of(value.number))
            raise
        results = results if instruction.several else [results] * bool(instruction.results)
        for number, result in zip(instruction.results, results, strict=True):
            if number is not None:
                numpy.copyto(value_of(number), result)

    def built_in(
        self,
        sizes: list[int],
        steps: list[Step],
        places: dict[int, tuple[int, int]] | None = None,
        threads: int = 1,
        shared: int = 0,
    ) -> Any:
        """Return the native function of some steps, for these words in place of the writer's sizes.

        `places`: the positions of the buffers, if they are not those of the whole run. `threads`: see `made`.
        """
        writer, places, sizes = self.writer, places or self.places, [*sizes]
        pointers = MOST_ARRAYS + 1 if writer.launches else POINTERS
        runner = block_runner(pointers)
        forks = [step for step in steps if len(step) > 1]
        apart = [block for step in forks for branch in step for block in branch]
        width = 1 + 2 * pointers
        entry, own = len(steps) * width, (len(steps) + len(apart)) * width

        def words_at(address: int, given: list[tuple[int, int]]) -> list[int]:
            """Return the words of a block: machine code and pointers."""
            found = [address]
            for buffer, offset in given:
                array, begin = places[buffer]
                found += [array, begin + offset * writer.item_of(buffer)]
            return found + [0] * (width - len(found))

        words: list[int] = []
        for step in steps:
            if len(step) == 1:
                ((block,),) = step
                words += words_at(self.machine_code[block].address, writer.blocks[block].pointers)
                continue
            words += words_at(fork.compiled().code.address, [(SIZES, len(sizes)), (BASES, 0)])
            branches = []
            for branch in step:
                branches.append((entry - own - len(sizes), len(branch)))
                entry += len(branch) * width
            sizes += words_of(runner.also[0], shared, threads, branches)
        for block in apart:
            words += words_at(self.machine_code[block].address, writer.blocks[block].pointers)
        chosen = [writer.blocks[block] for step in steps for branch in step for block in branch]
        touched = sum([self.elements(buffer) for block in chosen for buffer, _ in block.pointers if buffer >= 0])
        code = [
            len(steps),
            places[STATUS][1],
            8 * (HEAD + len(words)),
            int(bool(writer.launches) or bool(forks) or touched >= ELEMENTS),
            *words,
            *sizes,
        ]
        return built_in(f"native, of {len(steps)} blocks", runner.address, numpy.array(code))

    def __str__(self) -> str:
        names = ", ".join(
            f"%{each.results[0]} = {each.name}" if each.results else each.name for each in self.instructions
        )
        forks = "".join(
            f"; {len(step)} branches at once: {' | '.join(map(self.branch, step))}"
            for step in self.steps
            if len(step) > 1
        )
        return (
            f"native run of {self.blocks} blocks; {self.values} values in {self.arena} bytes, "
            f"{self.apart} if none shared memory: {names}{forks}"
        )

    def branch(self, blocks: list[int]) -> str:
        """Return the instructions of a branch as text."""
        found = {id(each): each for each in [self.writer.blocks[block].instruction for block in blocks]}
        return ", ".join(f"%{each.results[0]}" if each.results else each.name for each in found.values())


def write_again(writer: Writer, run: list[Instruction], inside: list[int], outside: list[int]) -> Native:
    """Return the same run for the number of threads that kernels may use now."""
    again = Writer(writer.program, writer.dtype)
    again.stored = writer.stored
    for instruction in run:
        write(again, instruction)
    return Native(again, run, inside, outside)


def same_kernels(first: list[tuple[int, Launch]], second: list[tuple[int, Launch]]) -> bool:
    """Return whether runs call the same machine code for their launches, in the same order."""
    return [(each.address, each.size) for _, each in first] == [(each.address, each.size) for _, each in second]


LONGEST = 1 << 26
"""The work of planned kernels, in bytes, after which a run ends, because Python raises interrupts between runs."""

ELEMENTS = 1 << 14
"""Runs of at least this many elements, about ten microseconds, release the interpreter lock."""


def fused(program: Program, instructions: list[Instruction], kept: list[bool], lasting: set[int]) -> list[Instruction]:
    """Return the remaining instructions, with runs of small instructions as native functions.

    `lasting`: the values that are used after the last instruction. All values were alive when their addresses were
    recorded, so the addresses show which values share memory.
    """
    wanted = [each for each, keep in zip(instructions, kept, strict=True) if keep]
    program = copy.copy(program)
    program.memory = [*program.memory]
    wanted = in_one_loop(program, wanted, lasting)
    wanted = recomputed(program, in_few_buffers(program, wanted, lasting), lasting)
    wanted = with_short_views(program, wanted)
    if not words():
        return wanted
    memory = RunMemory(program, wanted, lasting)
    result: list[Instruction] = []
    position = 0
    while position < len(wanted):
        memory.begin(position)
        run, stop = longest_run(program, wanted, position, memory)
        if run is None:
            result.append(wanted[position])
            position += 1
            continue
        later = {number for each in wanted[stop:] for number in each.reads()} | lasting
        result += native(program, run, wanted, position, stop, later)
        position = stop
    return result


def longest_run(
    program: Program, wanted: list[Instruction], position: int, memory: RunMemory
) -> tuple[Writer | None, int]:
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
    while stop < len(wanted) and sum(launch.work for _, launch in writer.launches) < LONGEST:
        instruction = wanted[stop]
        if not memory.takes(stop):
            break
        if instruction.name == "set_grad":  # it only stores a value, and may do so later
            writer.stored.append((stop - position - len(writer.stored), *instruction.operands))
            stop += 1
            continue
        try:
            write(writer, instruction)
        except Foreign:
            break
        written += not instruction.is_view
        stop += 1
    while stop > position and wanted[stop - 1].name == "set_grad":
        stop -= 1
    return (writer, stop) if written > 1 or writer.launches else (None, position)


def native(
    program: Program, writer: Writer, wanted: list[Instruction], position: int, stop: int, later: set[int]
) -> list[Instruction]:
    """Return a run as one instruction, after instructions that create its outputs, and before views that are used outside."""
    run = wanted[position:stop]
    stored = [each for each in run if each.name == "set_grad"]
    later = later | {number for each in stored for number in each.reads()}
    computed = [each for each in run if each.name != "set_grad"]
    views = [each for each in computed if each.is_view]
    made = [number for each in computed if not each.is_view for number in each.results if number is not None]
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
    line = run[0].line
    result = [
        Instruction("empty", Empty(program, number).make, [], [number], False, False, True, None, line)
        for number in outputs
    ]
    arrays = [Reference(number) for number in (*given, *outputs)]
    result.append(
        Instruction(
            "native", Deferred(functools.partial(getattr, call, "function")), arrays, [], False, True, True, None, line
        )
    )
    return [*result, *needed, *stored]


class Part:
    """Creates a view of the row-major array with the number `whole`: some of its elements, by their strides."""

    makes_arrays = True

    def __init__(self, whole: int, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> None:
        self.whole, self.shape, self.dtype, self.offset, self.strides = whole, shape, dtype, offset, strides

    @staticmethod
    def of(writer: Writer, number: int) -> Part | None:
        """Return a function that creates a view of the writer's value, or None if the value is not row-major."""
        place, program = writer.places[number], writer.program
        shape, dtype = program.shapes[place.buffer]  # type: ignore[misc]
        strides, _ = program.memory[place.buffer]  # type: ignore[misc]
        whole = numpy.empty(0, dtype)  # only its element size is used
        if not is_contiguous(shape, strides, whole.itemsize):
            return None
        strides = tuple([each * whole.itemsize for each in place.strides])
        return Part(place.buffer, place.shape, whole.dtype, place.offset * whole.itemsize, strides)

    def for_numbers(self, numbers: Numbers) -> Part:
        """Return the function for other sizes."""
        return Part(self.whole, *at((self.shape, self.dtype, self.offset, self.strides), numbers))

    def __call__(self, whole: Any) -> Any:
        """The view."""
        return ndarray(self.shape, self.dtype, whole, self.offset, self.strides)


class Empty:
    """Creates an array with a shape, a dtype and an order of dimensions. `make`: the function that is called."""

    makes_arrays = True

    def __init__(self, program: Program, number: int) -> None:
        shape, dtype = program.shapes[number]  # type: ignore[misc]
        strides, _ = program.memory[number]  # type: ignore[misc]
        order = order_of(shape, strides)
        self.allocate = functools.partial(numpy.empty, tuple([shape[dim] for dim in order]), numpy.dtype(dtype))
        self.back = tuple(map(order.index, range(len(shape))))
        self.make: Any = self
        if order == list(range(len(shape))):
            self.make = self.allocate
            self.make.makes_arrays = True

    def for_numbers(self, numbers: Numbers) -> Empty:
        """Return the function for other sizes."""
        new = copy.copy(self)
        new.allocate = at(self.allocate, numbers)
        return new

    def __call__(self) -> Any:
        """Return a new array."""
        return self.allocate().transpose(self.back)

    def filled(self, given: Any) -> Any:
        """Return a new array with the elements of another array."""
        array = self()
        numpy.copyto(array, given)
        return array
