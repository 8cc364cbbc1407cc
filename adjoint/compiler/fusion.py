"""Fusion: elementwise instructions on large arrays become one loop over the elements, which computes the same bits.

Instructions that use one another's results form a group. The group runs where its last instruction was. Intermediate
values that no other instruction reads are never stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import numpy

from ..codegen.expression import BOOL, CONSTANT, INPUT, NUMBER, SCALAR, Expression, Graph, Node, scalar_source
from ..codegen.pointwise import Program as Pointwise
from .blocks import SMALL, TYPES, Foreign, Place, number_of
from .buffers import Buffers
from .computations import Computation, computation
from .extents import is_contiguous
from .loops import WRITERS
from .program import Instruction, Program, Reference, numbers_in

MOST_ARRAYS = 10
"""The maximum number of arrays that one loop reads and writes."""

MOST_NODES = 80
"""The maximum number of operations in one loop."""


class Loop(Pointwise):
    """The loop of an expression that was not traced from a function."""

    def __init__(self, expression: Expression, arrays: list[str]) -> None:
        self.name, self.refusal, self.kinds, self.contiguous = "fused", "fused", "f", False
        self.parameters: Any = SimpleNamespace(names=arrays, arrays=arrays, scalars=[])
        self.tree = expression
        self._straight = {}

    def __call__(self, arrays: Sequence[Any], out: Any = None) -> Any:
        """Compute on arrays that have the dtype of the first array, or are boolean."""
        dtype = arrays[0].dtype
        return self.computed(arrays, (), dtype, dtype, out)


KNOWN: WeakValueDictionary[str, Loop] = WeakValueDictionary()
"""The loops of all programs, by the text of their expressions."""


class Fused:
    """Computes several instructions in one loop. `over`: the position of the operand that the result overwrites, or None."""

    makes_arrays = True

    def __init__(self, loop: Loop, instructions: list[Instruction], over: int | None = None) -> None:
        self.loop, self.instructions, self.over = loop, instructions, over

    def __call__(self, *arrays: Any) -> Any:
        """Return the results. If `over` is given, write the result to the first array and return None."""
        if self.over is None:
            return self.loop(arrays)
        target, *others = arrays
        self.loop([*others[: self.over], target, *others[self.over :]], target)
        return None


def in_one_loop(program: Program, instructions: list[Instruction], lasting: set[int]) -> list[Instruction]:
    """Return instructions with a loop for each group of elementwise instructions. `lasting`: the values used afterwards."""
    groups = Groups(program, instructions, lasting)
    result = []
    for position, each in enumerate(instructions):
        group = groups.of.get(position, [position])
        if len(group) == 1:
            result.append(each)
        elif position == group[-1]:
            result.append(groups.joined(group))
    return result


class Groups:
    """The groups of a program. `of`: for each position of an instruction, the positions of the instructions in its group."""

    def __init__(self, program: Program, instructions: list[Instruction], lasting: set[int]) -> None:
        self.program, self.instructions, self.lasting = program, instructions, lasting
        self.buffers = Buffers(program)
        self.computations: dict[int, Computation] = {}
        self.readers: dict[int, set[int]] = {}
        self.makers: dict[int, int] = {}
        self.of: dict[int, list[int]] = {}
        for position, each in enumerate(instructions):
            for number in each.reads():
                self.readers.setdefault(number, set()).add(position)
        for position, each in enumerate(instructions):
            with suppress(Foreign):
                self.add(position, each)

    def add(self, position: int, given: Instruction) -> None:
        """Add an elementwise instruction on a large array to the groups that create its operands."""
        op = given.kernel
        if given.changes or given.keeps or given.several or len(given.results) != 1:
            raise Foreign
        if given.name in WRITERS or (op is not None and (op.view or op.random or op.kernel.rows is not None)):
            raise Foreign
        (result,) = given.results
        shape, dtype, contiguous = self.form(result)
        if not contiguous or math.prod(shape) <= SMALL:
            raise Foreign
        found = computation(given, [*map(self.operand, given.operands)])
        forms = {place.buffer: self.form(place.buffer) for _, place in found[1]}
        fits = all((node.kind == BOOL) == (forms[place.buffer][1] == "bool") for node, place in found[1])
        fits = fits and (dtype == "bool") == (found[0].outputs[0].kind == BOOL)
        if not fits or not any(form[0] == shape and form[2] for form in forms.values()):
            raise Foreign
        self.computations[position] = found
        self.expression([position])
        if len(self.dtypes([position])) > 1:
            raise Foreign
        self.of[position] = [position]
        for number in forms:
            if number in self.makers:
                self.join(self.of[self.makers[number]], position)
        self.makers[result] = position  # type: ignore[index]

    def form(self, number: Any) -> tuple[tuple[int, ...], str, bool]:
        """Return the shape and dtype of an array of numbers or truth values, and whether it is contiguous."""
        form = None if number is None else self.program.shapes[number]
        if form is None or self.program.memory[number] is None or form[1] not in (*TYPES, "bool"):
            raise Foreign
        return *form, is_contiguous(form[0], self.program.memory[number][0], numpy.dtype(form[1]).itemsize)

    def operand(self, operand: Any) -> Any:
        """Return the array of an operand, or a number."""
        if isinstance(operand, Reference):
            return Place(operand.number, 0, self.form(operand.number)[0], ())
        return number_of(operand, (*TYPES, "bool"))

    def dtypes(self, group: list[int]) -> set[str]:
        """Return the dtypes of the numbers that a group reads and creates."""
        read = {place.buffer for each in group for _, place in self.computations[each][1]}
        made = {self.instructions[each].results[0] for each in group}
        return {self.form(number)[1] for number in read | made} - {"bool"}

    def join(self, group: list[int], position: int) -> None:
        """Join the group that creates an operand with the group of an instruction, if their positions permit it."""
        own = self.of[position]
        both = sorted({*group, *own})
        (one,), (other,) = self.instructions[group[0]].results, self.instructions[position].results
        if group is own or self.form(one)[0] != self.form(other)[0] or len(self.dtypes(both)) != 1:
            return
        inputs, outputs = self.arrays(both)
        large = len(inputs) + len(outputs) > MOST_ARRAYS or len(self.expression(both).nodes()) > MOST_NODES
        if large or not self.is_like(inputs[0], one) or not self.can_wait(group, both):
            return
        for each in both:
            self.of[each] = both

    def is_like(self, number: int, result: Any) -> bool:
        """Return whether a value is a contiguous array of numbers with the shape of a result."""
        shape, dtype, contiguous = self.form(number)
        return contiguous and dtype != "bool" and shape == self.form(result)[0]

    def can_wait(self, group: list[int], both: list[int]) -> bool:
        """Return whether no instruction before the last position in `both` depends on a group or changes its operands."""
        of, read, made = self.buffers.of, set[Any](), set[Any]()
        for position in range(group[0], both[-1]):
            each = self.instructions[position]
            if position in group:
                read.update(map(of.get, each.reads()))
                made.add(of.get(each.results[0]))  # type: ignore[arg-type]
            elif position not in both:
                used = {of.get(number) for number in each.reads()}
                changed = {of.get(number) for number in (numbers_in(each.operands[:1]) if each.changes else ())}
                hosts = each.kernel is None and each.keeps and not each.changes and each.name != "set_grad"
                if hosts or not made.isdisjoint(used) or not changed.isdisjoint(read | made):
                    return False
        return True

    def arrays(self, group: list[int]) -> tuple[list[int], list[int]]:
        """Return the values that a group reads, first those like the results, and the results that others read."""
        made = [self.instructions[each].results[0] for each in group]
        found = dict.fromkeys(place.buffer for each in group for _, place in self.computations[each][1])
        inputs = sorted([each for each in found if each not in made], key=lambda each: not self.is_like(each, made[0]))
        outputs = [
            number
            for number in made
            if number in self.lasting or not self.readers.get(number, set()).issubset(group)  # type: ignore[arg-type]
        ]
        return inputs, outputs  # type: ignore[return-value]

    def expression(self, group: list[int]) -> Expression:
        """Return the computation of a group's outputs from its inputs."""
        inputs, outputs = self.arrays(group)
        graph = Graph()
        kinds = [BOOL if self.form(number)[1] == "bool" else NUMBER for number in inputs]
        values = {number: graph.node(INPUT, (), kinds[k], f"x{k}") for k, number in enumerate(inputs)}
        for position in group:
            expression, operands, scalars = self.computations[position]
            given = {node: values[place.buffer] for node, place in operands}
            for node in expression.nodes():
                if node not in given:
                    given[node] = copied(graph, node, given, scalars)
            values[self.instructions[position].results[0]] = given[expression.outputs[0]]  # type: ignore[index]
        return Expression(tuple([values[number] for number in outputs]))

    def joined(self, group: list[int]) -> Instruction:
        """Return the loop of a group as one instruction."""
        inputs, outputs = self.arrays(group)
        expression = self.expression(group)
        truths = [each.value for each in expression.nodes() if each.operation == INPUT and each.kind == BOOL]
        key = f"{len(inputs)} {truths} {expression}"
        loop = KNOWN.get(key)
        if loop is None:
            loop = KNOWN[key] = Loop(expression, [f"x{k}" for k in range(len(inputs))])
        members = [self.instructions[each] for each in group]
        name = f"fused[{', '.join([each.name for each in members])}]"
        made = Instruction(
            name,
            Fused(loop, members),
            [*map(Reference, inputs)],
            [*outputs],
            several=len(outputs) > 1,
            changes=False,
            keeps=False,
            kernel=None,
            line=members[-1].line,
        )
        self.program.loops.append(made)
        return made


def copied(graph: Graph, node: Node, given: dict[Node, Node], scalars: dict[str, Any]) -> Node:
    """Copy a node to another graph, in which scalars are constants."""
    if node.kind == SCALAR:
        value = eval(scalar_source(node), {}, scalars)
        if type(value) not in (int, float):
            raise Foreign
        return graph.node(CONSTANT, (), SCALAR, value)
    return graph.node(node.operation, tuple([given[each] for each in node.operands]), node.kind, node.value)
