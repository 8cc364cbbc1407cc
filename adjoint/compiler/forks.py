"""Forks: blocks of a native run that do not depend on one another run on several threads.

Successive instructions become a fork if they fall into branches, and no branch writes an array that another branch uses. Kernels
inside a branch run on one thread, and their results are the same. A fork must save the time that threads need to meet.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from .blocks import SIZES, STATUS, Compiled, Writer
from .buffers import Buffers
from .program import numbers_in

FORK = 9000.0
"""The time in nanoseconds that a fork must save."""

PRODUCT, WORK, ELEMENTS = 2, 4, 3
"""The work of a product, the work of another planned kernel, and the elements of a block that one thread processes in a
nanosecond. These are estimates: a false fork costs one or two microseconds."""

MEETING, SLACK = 1500.0, 1.15
"""The nanoseconds in which threads begin and end a planned kernel, and a factor for the time of a fork, because its branches are
less even than their estimates. Kernels that use all threads therefore seldom fork."""

WINDOW = 64
"""The maximum number of instructions in a fork."""

Step = list[list[int]]
"""Blocks that run together: the branches of a fork, or one branch with one block."""


class Part(NamedTuple):
    """The blocks of one instruction.

    `before`: the earlier parts that it depends on. `splits`: whether it may belong to a branch, because only its `tests` can end
    the run, which are blocks that run before the fork. `tested`: the last part that writes what they read, or -1.
    """

    blocks: list[int]
    before: set[int]
    splits: bool
    tests: list[int]
    tested: int


def parts_of(writer: Writer) -> list[Part]:
    """Return the parts of a run, in order."""
    classes = Buffers(writer.program, writer.buffers).of
    homes = {number: classes.get(place.buffer, ~place.buffer) for number, place in writer.places.items()}
    found: list[Part] = []
    writers: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    for _, group in itertools.groupby(range(len(writer.blocks)), lambda block: id(writer.blocks[block].instruction)):
        blocks, own = [*group], len(found)
        instruction = writer.blocks[blocks[0]].instruction
        changed = instruction.operands[:1] if instruction.changes else instruction.operands * instruction.keeps
        read = {homes[number] for number in instruction.reads() if number in homes}
        written = {homes[number] for number in (*numbers_in(changed), *instruction.results) if number in homes}
        before = {writers[home] for home in read | written if home in writers}
        tests = [block for block in blocks if writer.blocks[block].tests]
        blocks = [block for block in blocks if block not in tests]
        buffers = {buffer for block in tests for buffer, _ in writer.blocks[block].pointers} - {STATUS, SIZES}
        tested = max([writers.get(classes.get(buffer, ~buffer), -1) for buffer in buffers], default=-1)
        before.update(*[readers.pop(home, ()) for home in written])
        for home in read:
            readers.setdefault(home, set()).add(own)
        writers.update(dict.fromkeys(written, own))
        stops = any(buffer == STATUS for block in blocks for buffer, _ in writer.blocks[block].pointers)
        splits = not stops and all(buffer >= 0 for buffer in buffers)
        found.append(Part(blocks, before - {own}, splits, tests, tested))
    return found


class Window:
    """Successive parts, and which of them depend on one another. `alone`: the nanoseconds that each takes on one thread."""

    def __init__(self, parts: list[Part], alone: list[float], first: int) -> None:
        self.parts, self.alone, self.first = parts, alone, first
        self.roots: dict[int, int] = {}
        self.times: dict[int, float] = {}
        self.total = self.longest = 0.0

    def root(self, part: int) -> int:
        """Return the last part that depends on the same parts as a part."""
        while self.roots[part] != part:
            part = self.roots[part]
        return part

    def add(self, part: int) -> None:
        """Append the next part."""
        time = self.alone[part]
        self.total += time
        self.roots[part] = part
        for each in self.parts[part].before:
            if each >= self.first and (root := self.root(each)) != part:
                self.roots[root] = part
                time += self.times.pop(root)
        self.times[part] = time
        self.longest = max(self.longest, time)

    def branches(self, count: int) -> tuple[Step, float]:
        """Return at most this many branches, and the time of the longest."""
        members: list[Step] = [[] for _ in range(count)]
        times, branch_of = [0.0] * count, dict[int, int]()
        for root, time in sorted(self.times.items(), key=lambda each: -each[1]):
            branch_of[root] = times.index(min(times))
            times[branch_of[root]] += time
        for part in self.roots:
            members[branch_of[self.root(part)]].append(self.parts[part].blocks)
        return [[block for blocks in branch for block in blocks] for branch in members if branch], max(times)


def steps_of(parts: list[Part], alone: list[float], together: list[float], threads: int) -> list[Step]:
    """Return the order in which the blocks run.

    `alone`, `together`: the nanoseconds that each part takes on one thread, and on all threads outside of a fork.
    """
    count = len(parts)
    times, starts = [0.0, *[math.inf] * count], [0] * (count + 1)
    for first in range(count):
        if times[first] + together[first] <= times[first + 1]:
            times[first + 1], starts[first + 1] = times[first] + together[first], first
        window = Window(parts, alone, first)
        for part in range(first, min(first + WINDOW, count)):
            if not parts[part].splits or parts[part].tested >= first:
                break
            window.add(part)
            time = times[first] + SLACK * max(window.longest, window.total / threads) + FORK
            if time < times[part + 1]:
                times[part + 1], starts[part + 1] = time, first
    steps: list[Step] = []
    while count:
        first = starts[count]
        window = Window(parts, alone, first)
        for part in range(first, count):
            window.add(part)
        branches, time = window.branches(threads)
        if len(branches) == 1 or sum(together[first:count]) < SLACK * time + FORK:
            branches = []
        blocks = [block for part in parts[first:count] for block in part.tests]
        if not branches:
            blocks = sorted([*blocks, *(block for part in parts[first:count] for block in part.blocks)])
        steps[:0] = [*([[block]] for block in blocks), *[branches] * bool(branches)]
        count = first
    return steps


def one_by_one(count: int) -> list[Step]:
    """Return this many blocks as steps without forks."""
    return [[[block]] for block in range(count)]


def planned(writer: Writer, parts: list[Part], elements: Any, threads: int) -> list[Step]:
    """Return the steps of a run. `elements`: the function that returns the number of elements of a buffer."""
    if threads == 1:
        return one_by_one(len(writer.blocks))
    launches = dict(writer.launches)
    alone, together = [], []
    for part in parts:
        times = [0.0, 0.0]
        for block in map(writer.blocks.__getitem__, part.blocks):
            launch = launches[block.pointers[0][1]] if type(block.key) is Compiled else None
            touched = 0 if launch else sum([elements(buffer) for buffer, _ in block.pointers if buffer >= 0])
            rate = ELEMENTS if launch is None else PRODUCT if launch.name == "product" else WORK
            time = (touched if launch is None else launch.work) / rate
            times[0] += time
            times[1] += time / threads + MEETING if launch and launch.splits else time
        alone.append(times[0])
        together.append(min(times))
    if sum(alone) < 2 * FORK:
        return one_by_one(len(writer.blocks))
    return steps_of(parts, alone, together, threads)
