"""Sizes in programs: two captures of one function, at different sizes, become a program for any size.

The user's code sees symbols for sizes. Computations with sizes and comparisons of sizes in this code are therefore
known. Computations with sizes inside operators are not visible. There, a number that differs between the captures must
be a size of an array, or a product of sizes. Sizes that were equal in both captures must be equal in each run.
Otherwise the program is not used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

import adjoint as torch

from ..tensor import Tensor
from .dims import Table, named
from .known import Made, Method, same_items
from .program import Constant, Instruction, Program, Reference
from .steps import Step
from .symbols import Number, Symbol, plain, symbols_in
from .tracer import Copied, SizeOf, Tracer


class Differs(Exception):
    """The error with the reason why two captures are not one program at two sizes."""


class Extent:
    """A number that follows from sizes: a factor times a product of sizes, by size class.

    `options`: such products, which have been equal so far. `dtype`: the dtype, if the number is an array without
    dimensions.
    """

    def __init__(self, options: list[tuple[int, tuple[int, ...]]], dtype: Any = None) -> None:
        self.options, self.dtype = options, dtype

    def __str__(self) -> str:
        factor, classes = self.options[0]
        return "*".join([*([str(factor)] if factor != 1 else []), *(f"n{each}" for each in classes)])

    def __call__(self, sizes: dict[int, int]) -> Any:
        """Return the number at these sizes of the classes.

        Raises:
            Differs: if the products are no longer equal.
        """
        first, *others = [factor * math.prod(sizes[each] for each in classes) for factor, classes in self.options]
        if any(each != first for each in others):
            raise Differs("sizes that were multiples of one another are not any more")
        return first if self.dtype is None else numpy.asarray(first, self.dtype)


class Filled:
    """A function that creates an array of equal elements, of any shape."""

    def __init__(self, array: ndarray) -> None:
        self.value, self.dtype = array.reshape(-1)[0].item(), array.dtype

    def __call__(self, shape: tuple[int, ...]) -> ndarray:
        """Return a new array."""
        return numpy.full(shape, self.value, self.dtype)


class Form(NamedTuple):
    """The form of a value at any size: the class (negative) or size of each dimension, and whether the value is C-contiguous."""

    dims: tuple[int, ...]
    dtype: str
    contiguous: bool


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Return whether the elements are adjacent in memory in row-major order."""
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and step != item:
            return 0 in shape
        item *= size
    return True


class Folded:
    """The instructions of a program at given sizes. Values that follow from sizes alone become constants.

    `shapes`: the shapes of all values. `sizes`: the size of each class. `kept`: numbers that must be computed in any
    case. `planned`: whether an instruction creates each array that represents a number, so that the other instructions
    are the same at any size. `boundary`: the boundary between forward and backward in the instructions. `constants`: the
    constants that follow from sizes. `table`: the numbers that vary in a plan for any size, which are then marked.
    """

    def __init__(
        self,
        program: Program,
        shapes: Any,
        memory: Any,
        sizes: dict[int, int],
        kept: set[int],
        planned: bool = False,
        table: Table | None = None,
    ) -> None:
        self.shapes, self.memory, self.sizes, self.planned = [*shapes], [*memory], sizes, planned
        self.constants: list[Any] = []
        self.table = table
        self.known: dict[int, Any] = {}
        before = self.folded(program.instructions[: program.boundary], kept)
        self.instructions = [*before, *self.folded(program.instructions[program.boundary :], kept)]
        self.boundary = len(before)

    def folded(self, instructions: list[Instruction], kept: set[int]) -> list[Instruction]:
        """Return the instructions whose results are not known."""
        self.made: list[Instruction] = []
        others = []
        for instruction in instructions:
            if self.stays(instruction):
                others.append(instruction)
                continue
            operands = [self.operand(each) for each in instruction.operands]
            if self.folds(instruction, operands) and not kept.intersection(instruction.results):
                continue
            function = instruction.function
            if isinstance(function, Filled):
                function, operands = self.varying(Copied(function(*[each.value for each in operands]))), []
            others.append(instruction._replace(function=function, operands=[*map(self.value, operands)]))
        return [*self.made, *others]

    def stays(self, instruction: Instruction) -> bool:
        """Return whether an instruction of a kernel reads no number that follows from sizes."""
        return instruction.kernel is not None and all(
            type(each) is Constant or (type(each) is Reference and each.number not in self.known)
            for each in instruction.operands
        )

    def folds(self, instruction: Instruction, operands: list[Any]) -> bool:
        """Return whether the result of an instruction is a constant. A constant result becomes known."""
        if not is_numeric(instruction, self.shapes):
            return False
        (result,) = instruction.results
        function = instruction.function
        if isinstance(function, SizeOf):
            self.known[result] = int(self.shapes[operands[0].number][0][function.dim])  # type: ignore[index]
        elif all(isinstance(each, Constant) for each in operands):
            self.known[result] = function(*[each.value for each in operands])  # type: ignore[index]
        else:
            return False
        return True

    def operand(self, operand: Any) -> Any:
        """Return an operand with constants in place of known values."""
        if isinstance(operand, Reference):
            return Sized(self.known[operand.number]) if operand.number in self.known else operand
        if isinstance(operand, Extent):
            return Sized(operand(self.sizes))
        if isinstance(operand, Constant):
            return operand
        parts = [self.operand(each) for each in operand]
        if all(isinstance(each, Constant) for each in parts):
            kind = Sized if any(isinstance(each, Sized) for each in parts) else Constant
            return kind(type(operand)([each.value for each in parts]))
        return type(operand)(parts)

    def varying(self, value: Any) -> Any:
        """Return a constant that follows from sizes, with marks on its numbers if the plan is for any size."""
        self.constants.append(value)
        return value if self.table is None else self.table.constant(f"constants[{len(self.constants) - 1}]", value)

    def value(self, operand: Any) -> Any:
        """Return an operand. In a plan, an instruction creates each array that represents a number of sizes."""
        if not isinstance(operand, (Reference, Constant)):
            return type(operand)(map(self.value, operand))
        if not (self.planned and isinstance(operand, Sized)):
            return operand
        if not isinstance(operand.value, ndarray):
            return Constant(self.varying(operand.value))
        number = len(self.shapes)
        self.shapes.append(((), operand.value.dtype.name))
        self.memory.append(((), 0))
        made = Instruction(
            "extent", self.varying(Same(operand.value)), [], [number], False, False, False, None, ("", 0)
        )
        self.made.append(made)
        return Reference(number)

    def program_of(self, program: Program, offsets: dict[int, int] | None = None) -> Program:
        """Return a program with these instructions. `offsets`: see `Program`."""
        new = program.like(self.instructions, self.boundary, self.shapes, self.memory)
        new.table, new.offsets = self.table, offsets or {}
        return new


class Sized(Constant):
    """A constant that follows from sizes."""


class Same:
    """A function that returns one array."""

    makes_arrays = True
    table_index: int | None = None

    def __init__(self, array: ndarray) -> None:
        self.array = array

    def __call__(self) -> ndarray:
        """The array."""
        return self.array


def is_numeric(instruction: Instruction, shapes: Any) -> bool:
    """Return whether an instruction computes a number, or an array that represents a number."""
    if instruction.kernel is not None or instruction.keeps or len(instruction.results) != 1 or instruction.several:
        return False
    (result,) = instruction.results
    return result is not None and (shapes[result] is None or isinstance(instruction.function, Number))


class General:
    """A program for any size, made from two captures: `earlier`, and the capture of `tracer`.

    `forms`: the forms of all arrays. `conditions`: conditions on numbers that follow from sizes, as functions of the
    known numbers.
    """

    def __init__(self, earlier: Program, tracer: Tracer) -> None:
        self.earlier, self.tracer, self.program = earlier, tracer, tracer.program
        self.same: dict[int, int] = {}
        self.classes: dict[tuple[int, int], int] = {}
        self.forms: dict[int, Form] = {}
        self.conditions: list[tuple[Callable[..., Any], list[Any], Any]] = []
        self.known: list[dict[int, Any]] = [{}, {}]
        self.consumed: set[int] = set()
        self.steps: dict[int, tuple[bool, ...]] = {}
        self.views: dict[int, tuple[int, bool]] = {}
        self.position = 0
        self.match_inputs()
        self.instructions = list(self.matched())
        self.match_ends()
        self.conditions += self.conditions_of_symbols()
        self.sizes = {number: size for (_, size), number in self.classes.items()}

    def for_any_size(
        self, program: Program, shapes: Any, memory: Any, sizes: dict[int, int], kept: set[int]
    ) -> Program:
        """Return the program at some sizes, with marks on all numbers that vary."""
        table, shapes, memory, offsets = Table(), [*shapes], [*memory], dict[int, int]()
        elements = 0
        for number, form in self.forms.items():
            dims = tuple([size if size >= 0 else table.dim(f"sizes[{~size}]", sizes[~size]) for size in form.dims])
            strides, place = memory[number]
            steps, expected = [*strides], getattr(torch, form.dtype).itemsize
            for dim in range(len(dims) - 1, -1, -1):
                source = f"memory[{number}][0][{dim}]"
                if form.contiguous and dims[dim] != 1:
                    steps[dim] = expected
                elif self.steps[number][dim]:
                    steps[dim] = table.dim(source, strides[dim])
                else:
                    table.require(f"{source} == {strides[dim]}")
                expected = expected * dims[dim]
            elements = expected + elements
            shapes[number], memory[number] = (dims, form.dtype), (tuple(steps), place)
        total = f"({named(elements)} >> 24).bit_length()"  # passes and the lengths of runs depend on it
        table.require(f"{total} == {(int(elements) >> 24).bit_length()}")
        for number, (whole, moves) in self.views.items():
            source, apart = f"memory[{number}][1] - memory[{whole}][1]", memory[number][1] - memory[whole][1]
            if moves or whole in offsets:
                offsets[number] = offsets.get(whole, 0) + table.dim(source, apart)
            else:
                table.require(f"{source} == {apart}")
        return Folded(program, shapes, memory, sizes, kept, planned=True, table=table).program_of(program, offsets)

    # --- two programs -------------------------------------------------------------------------------------------------

    def match_inputs(self) -> None:
        """Check that the inputs of both programs correspond."""
        earlier, program = self.earlier, self.program
        pairs = list(zip(earlier.inputs.items(), program.inputs.items(), strict=False))
        if len(earlier.inputs) != len(program.inputs) or [*earlier.numbers.values()] != [*program.numbers.values()]:
            raise Differs("another number of tensors is read")
        for (first, one), (second, other) in pairs:
            same = one.source == other.source if one.kind == "argument" else self.is_same(one.source, other.source)
            if one.kind != other.kind or not same:
                raise Differs("other tensors are read")
            self.match(first, second)
        self.same.update(zip(program.numbers, earlier.numbers, strict=True))

    def is_same(self, first: Tensor, second: Tensor) -> bool:
        """Return whether two tensors are arguments at one place, or the same tensor from outside."""
        places = self.earlier.place_of(first), self.program.place_of(second)
        return first is second if places == (None, None) else places[0] == places[1]

    def match(self, first: int | None, second: int | None) -> None:
        """Record that the value `second` of the program corresponds to the value `first` of the earlier program."""
        if first is None or second is None:
            if first is not second:
                raise Differs("a result is missing")
            return
        self.same[second] = first
        one, other = self.earlier.shapes[first], self.program.shapes[second]
        if one is None or other is None:
            if one is not other:
                raise Differs("a number is an array")
            return
        if one[1] != other[1] or len(one[0]) != len(other[0]):
            raise Differs("a result has another dtype, or another number of dimensions")
        memories = self.earlier.memory[first], self.program.memory[second]
        before, now = [memory[0] for memory in memories if memory is not None]
        item = getattr(torch, other[1]).itemsize
        lie = is_contiguous(one[0], before, item), is_contiguous(other[0], now, item)
        if lie[0] != lie[1] or any((a < 2 or b < 2) and a != b for a, b in zip(one[0], other[0], strict=True)):
            raise Differs(f"%{second} is {list(other[0])}, and was {list(one[0])}, which is another case")
        dims = [
            b if a == b else ~self.classes.setdefault((a, b), len(self.classes))
            for a, b in zip(one[0], other[0], strict=True)
        ]
        self.forms[second] = Form(tuple(dims), other[1], lie[1])
        self.steps[second] = tuple([a != b for a, b in zip(before, now, strict=True)])

    def matched(self) -> Iterator[Instruction]:
        """Return the instructions of the program, with extents in place of constants that differ from the earlier program."""
        others = iter(self.earlier.instructions)
        boundary = None
        count = 0
        for position, instruction in enumerate(self.program.instructions):
            if position == self.program.boundary:
                boundary = count
                self.match_seeds()
            self.position = position
            if self.learned(instruction):
                yield instruction
                continue
            other = next(others, None)
            if other is None:
                raise Differs("it does more")
            count += 1
            yield self.pair(other, instruction)
        if next(others, None) is not None:
            raise Differs("it does less")
        if self.program.boundary == len(self.program.instructions):
            boundary = count
            self.match_seeds()
        if boundary != self.earlier.boundary:
            raise Differs("the backward begins elsewhere")

    def match_seeds(self) -> None:
        """Check that the backwards of both programs begin with the gradients of the same results."""
        pairs = zip(self.earlier.seeds, self.program.seeds, strict=False)
        if len(self.earlier.seeds) != len(self.program.seeds):
            raise Differs("other results have gradients")
        for first, second in pairs:
            self.match(first, second)

    def learned(self, instruction: Instruction) -> bool:
        """Return whether an instruction computes a number of sizes. If it does, the number is known in both programs."""
        if not is_numeric(instruction, self.program.shapes):
            return False
        (result,) = instruction.results
        function = instruction.function
        if isinstance(function, SizeOf):
            (array,) = [each.number for each in instruction.operands]
            values = [
                self.earlier.shapes[self.same[array]][0][function.dim],  # type: ignore[index]
                self.program.shapes[array][0][function.dim],
            ]
        elif all(
            isinstance(each, Constant) or (isinstance(each, Reference) and each.number in self.known[0])
            for each in instruction.operands
        ):
            values = [
                function(
                    *[
                        known[each.number] if isinstance(each, Reference) else each.value
                        for each in instruction.operands
                    ]
                )
                for known in self.known
            ]
        else:
            return False
        for known, value in zip(self.known, values, strict=True):
            known[result] = value  # type: ignore[index]
        return True

    def pair(self, first: Instruction, second: Instruction) -> Instruction:
        """Return an instruction for any size, made from the instructions at two sizes."""
        facts = [
            (each.name, each.kernel, each.several, each.changes, each.keeps, len(each.results))
            for each in (first, second)
        ]
        if facts[0] != facts[1] or len(first.operands) != len(second.operands):
            raise Differs(f"{second.name}() was {first.name}() before")
        function, operands = (
            second.function,
            [self.operand(one, other) for one, other in zip(first.operands, second.operands, strict=True)],
        )
        if isinstance(function, Copied) and isinstance(first.function, Copied):
            one, other = first.function.array, function.array
            if one.shape != other.shape:
                both = numpy.concatenate([one.reshape(-1), other.reshape(-1)])
                if not (one.dtype == other.dtype and one.ndim == other.ndim and (both == both[:1]).all()):
                    raise Differs("an array of numbers has other elements")
                function, operands = Filled(other), [self.number(one.shape, other.shape)]
            elif one.dtype != other.dtype or not numpy.array_equal(one, other, equal_nan=other.dtype.kind in "fc"):
                raise Differs("an array of numbers has other elements")
        elif not are_alike(first.function, function):
            raise Differs(f"{second.name}() is another function")
        for earlier, result in zip(first.results, second.results, strict=True):
            self.match(earlier, result)
        if second.is_view and isinstance(second.operands[0], Reference):
            number = second.operands[0].number
            for each in second.results:
                if each is not None:
                    apart = self.program.apart(each, number), self.earlier.apart(self.same[each], self.same[number])
                    if apart == (0, 0) or (second.kernel is not None and second.kernel.view):
                        self.views[each] = number, apart[0] != apart[1]
        return second._replace(function=function, operands=operands)

    def operand(self, first: Any, second: Any) -> Any:
        """Return an operand for any size."""
        if isinstance(second, Reference):
            if second.number in self.known[1]:
                if not (isinstance(first, Constant) and are_equal(first.value, self.known[0][second.number])):
                    raise Differs("a number does not follow from sizes")
            elif not isinstance(first, Reference) or self.same.get(second.number) != first.number:
                raise Differs("an operand is another value")
            return second
        if isinstance(second, Constant):
            if not isinstance(first, Constant):
                raise Differs("an operand is not a constant")
            return self.number(first.value, second.value)
        if isinstance(first, (Constant, Reference)) or len(first) != len(second):
            raise Differs("an operand is of another length")
        return type(second)([self.operand(one, other) for one, other in zip(first, second, strict=True)])

    def number(self, first: Any, second: Any) -> Any:
        """Return the number in a constant that differs between the programs."""
        if are_equal(first, second) or (isinstance(second, Tensor) and self.is_same(first, second)):
            return Constant(second)
        if type(first) is not type(second):
            raise Differs("a constant is of another type")
        if type(second) in (tuple, list) and len(first) == len(second):
            return type(second)([self.number(one, other) for one, other in zip(first, second, strict=True)])
        if is_whole(first) and is_whole(second) and first.dtype == second.dtype:
            found = self.extent(int(first), int(second))
            if isinstance(found, Extent):
                return Extent(found.options, second.dtype)
        if type(second) is int:
            return self.extent(first, second)
        raise Differs(f"a constant is {second!r}, and was {first!r}")

    def extent(self, first: int, second: int) -> Any:
        """Return a differing number as a number that the user computed from sizes, or as a product of sizes."""
        for begin, end, symbols in self.tracer.windows:
            if begin <= self.position < end:
                for each in symbols:
                    if (self.known[0].get(each.value), self.known[1].get(each.value)) == (first, second):
                        self.consumed.add(id(each))
                        return Reference(each.value)
        found: list[tuple[int, tuple[int, ...]]] = []
        atoms = [(pair, (number,)) for pair, number in self.classes.items()]
        for some in (
            atoms,
            [
                ((a[0] * b[0], a[1] * b[1]), (*one, *other))
                for (a, one), (b, other) in itertools.combinations_with_replacement(atoms, 2)
            ],
        ):
            for (one, other), numbers in some:
                if first and first % one == 0 and second % other == 0 and first // one == second // other:
                    found.append((first // one, numbers))
            if found:
                return Extent(sorted(found))
        raise Differs(f"a number is {second}, and was {first}")

    def match_ends(self) -> None:
        """Check that both programs return and change the same values."""
        gradients = [[each.number for each in program.gradients] for program in (self.earlier, self.program)]
        if gradients[0] != [self.same.get(each) for each in gradients[1]]:
            raise Differs("other tensors have gradients")
        if self.earlier.changes != {self.same[number]: count for number, count in self.program.changes.items()}:
            raise Differs("other tensors are changed")
        if not self.same_result(self.earlier.result, self.program.result):
            raise Differs("the result is another one")

    def same_result(self, first: Any, second: Any) -> bool:
        """Return whether two descriptions of results are the same."""
        if isinstance(second, Reference):
            if second.number in self.known[1]:
                return isinstance(first, Constant) and are_equal(first.value, self.known[0][second.number])
            return isinstance(first, Reference) and self.same.get(second.number) == first.number
        if isinstance(second, Constant):
            return isinstance(first, Constant) and are_equal(first.value, second.value)
        return (
            not isinstance(first, (Reference, Constant))
            and len(first) == len(second)
            and all(itertools.starmap(self.same_result, zip(first, second, strict=True)))
        )

    # --- conditions of the user's code ----------------------------------------------------------------------------------

    def conditions_of_symbols(self) -> Iterator[tuple[Callable[..., Any], list[Any], Any]]:
        """Return the conditions on the numbers that the user's code has computed from sizes."""
        tracer = self.tracer
        for root in tracer.fixed:
            if root in tracer.extents:
                yield self.unchanged(tracer.extents[root])
        for _, _, symbols in tracer.windows:
            for each in symbols:
                if id(each) not in self.consumed and not each.is_fixed:
                    yield self.unchanged(each)
        for function, operands, result in tracer.outcomes:
            if tracer.is_of_sizes(symbols_in(operands)):
                if not self.holds(function, operands, result, self.known[0]):
                    raise Differs("a comparison of sizes has another outcome")
                yield function, operands, result

    def unchanged(self, symbol: Symbol) -> tuple[Callable[..., Any], list[Any], Any]:
        """Return the condition that a number has the same value in both programs."""
        if self.known[0][symbol.value] != symbol.plain:
            raise Differs(f"{symbol.describe()} is used in a way that is not followed")
        return plain, [symbol], symbol.plain

    def holds(self, function: Any, operands: list[Any], result: Any, known: dict[int, Any]) -> bool:
        """Return whether a condition holds."""
        values = [known[each.value] if isinstance(each, Symbol) else each for each in operands]
        found = function(*values)
        return type(found) is type(result) and bool(found == result)


def is_whole(value: Any) -> bool:
    """Return whether a constant is an array without dimensions that represents a whole number."""
    return isinstance(value, ndarray) and not value.ndim and value.dtype.kind in "fi" and bool(value == value // 1)


def are_alike(first: Any, second: Any) -> bool:
    """Return whether two functions of instructions are equivalent."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(second, str):
        return bool(first == second)
    if isinstance(second, Step):
        return first.owner is second.owner
    if isinstance(second, (Made, Method)) or hasattr(second, "__dict__"):
        one, other = vars(first), vars(second)
        return list(one) == list(other) and all(
            are_equal(one[name], other[name]) or (callable(one[name]) and are_alike(one[name], other[name]))
            for name in one
        )
    return False


def are_equal(first: Any, second: Any) -> bool:
    """Return whether two constants are equal."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(second, ndarray):
        return first.dtype == second.dtype and numpy.array_equal(first, second, equal_nan=second.dtype.kind in "fc")
    if type(second) in (tuple, list):
        return len(first) == len(second) and all(itertools.starmap(are_equal, zip(first, second, strict=True)))
    if type(second) is dict:
        return list(first) == list(second) and all(are_equal(first[name], second[name]) for name in second)
    if type(second) is slice:
        return are_equal((first.start, first.stop, first.step), (second.start, second.stop, second.step))
    return same_items([first], (second,)) and str(first) == str(second)
