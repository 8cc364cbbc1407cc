"""A captured program: instructions over numbered values, and the source that runs them."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from .._runtime.extra import NOTING
from ..kernels.runtime.addresses import address
from ..tape import origin
from ..tensor import Tensor, wrap
from .objects import tensor_maker

name_of = functools.cache(operator.attrgetter("name"))
"""The name of a dtype, which NumPy assembles anew each time."""


class Reference(NamedTuple):
    """A reference to the value with this number."""

    number: int

    def __str__(self) -> str:
        return f"%{self.number}"


class Constant(NamedTuple):
    """A value that is the same in every run."""

    value: Any

    def __str__(self) -> str:
        if isinstance(self.value, Tensor):
            return f"{type(self.value).__name__}{list(self.value.shape)}"
        return "…" if isinstance(self.value, ndarray) and self.value.ndim else f"{self.value!r}"


class Instruction(NamedTuple):
    """An instruction `results = function(*operands)`. The function may be source, into which the operands are inserted.

    `changes`: whether it changes its first operand. `keeps`: whether it must run even if its results are not used.
    `line`: the user's line, as a pair of file name and number.
    """

    name: str
    function: Any
    operands: list[Any]
    results: list[int | None]
    several: bool
    changes: bool
    keeps: bool
    kernel: Any
    line: tuple[str, int]

    def reads(self) -> Iterator[int]:
        """The numbers of the values that it reads."""
        return numbers_in(self.operands)

    @property
    def is_view(self) -> bool:
        """Whether the results are views of the first operand."""
        if self.kernel is None:
            return self.name in ("spread", "kept")
        return bool(self.results) and (self.kernel.view or self.name == "unsafe_view")

    def __str__(self) -> str:
        results = ", ".join("_" if number is None else f"%{number}" for number in self.results)
        return f"{results}{' = ' if results else ''}{self.name}({', '.join(map(text, self.operands))})"


class Input(NamedTuple):
    """A value that is read when the program starts.

    `kind`: "argument", with a path into the arguments; "tensor", with a tensor; "grad", with the leaf whose `.grad` it is.
    """

    kind: str
    source: Any
    tensor: Any


class Program:
    """A program: instructions in the order of their execution.

    `inputs`: the inputs by number. `numbers`: the inputs that are not tensors, by the places of arguments. `shapes`: the shapes
    and dtypes of all values seen so far. `memory`: the strides of these values, and their addresses at the capture. `boundary`:
    the number of instructions in forward. The other instructions compute the gradients of `roots` with respect to `targets`, from
    the values `seeds`. `natives`: the native runs that replace several instructions; `loops`: the instructions that are loops of
    several other instructions. `table`: the numbers that vary from size to size, or None. `offsets`: for views whose place in
    memory varies, the bytes from the beginning of the memory. `result`: the returned values, as references and constants.
    """

    def __init__(self) -> None:
        self.inputs: dict[int, Input] = {}
        self.numbers: dict[int, str] = {}
        self.instructions: list[Instruction] = []
        self.shapes: list[tuple[tuple[int, ...], str] | None] = []
        self.memory: list[tuple[tuple[int, ...], int] | None] = []
        self.by_tensor: dict[int, int] = {}
        self.changes: dict[int, int] = {}
        self.without_grad: list[Tensor] = []
        self.grads_known: dict[int, Tensor] = {}
        self.boundary = 0
        self.seeds: list[int] = []
        self.roots: list[int] = []
        self.gradients: list[Any] = []
        self.natives: list[Any] = []
        self.loops: list[Instruction] = []
        self.table: Any = None
        self.offsets: dict[int, int] = {}
        self.result: Any = None

    def like(self, instructions: list[Instruction], boundary: int, shapes: Any, memory: Any) -> Program:
        """Return a program with other instructions, for values with other shapes."""
        new = copy.copy(self)
        new.instructions, new.boundary, new.shapes, new.memory = instructions, boundary, shapes, memory
        new.natives, new.loops = [], []
        return new

    def apart(self, one: int, other: int) -> int:
        """Return the distance in bytes from the first element of a value to the first element of a view of it."""
        if one in self.offsets or other in self.offsets:
            return self.offsets.get(one, 0) - self.offsets.get(other, 0)
        return self.memory[one][1] - self.memory[other][1]  # type: ignore[index]

    def new_value(self, array: Any) -> int:
        """Return the number of a new value."""
        self.shapes.append(None if array is None else (array.shape, name_of(array.dtype)))
        self.memory.append(None if array is None else (array.strides, address(array)))
        return len(self.shapes) - 1

    def append(
        self,
        name: str,
        function: Any,
        operands: list[Any],
        results: list[int | None] | list[int],
        *,
        several: bool = False,
        changes: bool = False,
        keeps: bool = False,
        kernel: Any = None,
    ) -> None:
        """Append an instruction, with the current line of the user's running frame."""
        frame = origin.user_frame(1)
        line = frame.f_code.co_filename, frame.f_lineno
        keeps = keeps or changes or (kernel is not None and kernel.random)
        self.instructions.append(
            Instruction(name, function, operands, list(results), several, changes, keeps, kernel, line)
        )

    def add_input(self, kind: str, source: Any, tensor: Tensor) -> int:
        """Return the number of the array of a tensor that exists before the program runs."""
        number = self.new_value(tensor._array)
        self.inputs[number] = Input(kind, source, tensor)
        if kind != "grad":
            self.by_tensor[id(tensor)] = number
        return number

    def place_of(self, tensor: Tensor) -> str | None:
        """Return the place of a tensor in the arguments, or None for a tensor from outside."""
        given = self.inputs.get(self.by_tensor.get(id(tensor), -1))
        return given.source if given is not None and given.kind == "argument" else None

    def count_change(self, base: Tensor) -> None:
        """Record that the program changes memory, which may belong to an input."""
        for number, each in self.inputs.items():
            if each.tensor is base or (isinstance(base._counter, list) and each.tensor._counter is base._counter):
                self.changes[number] = self.changes.get(number, 0) + 1
                break

    # --- gradients of leaves ------------------------------------------------------------------------------------------

    def expect_no_grad(self, leaf: Tensor) -> None:
        """Record that `leaf` has no gradient before it gets its first gradient here."""
        if id(leaf) not in self.grads_known:
            self.grads_known[id(leaf)] = leaf
            self.without_grad.append(leaf)

    def grad_of(self, leaf: Tensor) -> int:
        """Return the number of the gradient that `leaf` has before the program runs."""
        self.grads_known[id(leaf)] = leaf
        return self.add_input("grad", leaf, leaf._grad)  # type: ignore[arg-type]

    def set_grad(self, leaf: Tensor, value: Reference) -> None:
        """Store a gradient."""
        _, dtype = self.shapes[value.number]  # type: ignore[misc]
        self.append("set_grad", f"{{0}}._grad = {made('{1}', dtype)}", [Constant(leaf), value], [], keeps=True)

    def clear_grads(self, leaves: list[Tensor]) -> None:
        """Remove gradients."""
        if leaves:
            text = " = ".join([*["{}._grad"] * len(leaves), "None"])
            self.append("zero_grad", text, [*map(Constant, leaves)], [], keeps=True)

    # --- uses of values -------------------------------------------------------------------------------------------------

    def used(self, wanted: set[int]) -> list[bool]:
        """Return for each instruction whether one of the `wanted` values, or an instruction that must run, depends on it."""
        return used(self.instructions, wanted)

    def saved(self) -> list[int]:
        """Return the values that the backward reads and the forward computes."""
        later = self.instructions[self.boundary :]
        made = {number for instruction in later for number in instruction.results} | set(self.seeds)
        read = {number for instruction in later for number in instruction.reads()}
        read |= {each.number for each in self.gradients if each is not None}
        return sorted(read - made)

    def __str__(self) -> str:
        lines = [f"%{number} = {described(each, self.shapes[number])}" for number, each in self.inputs.items()]
        lines += [f"%{number} = number argument {place}" for number, place in self.numbers.items()]
        for position, instruction in enumerate(self.instructions):
            if position == self.boundary and self.seeds:
                lines.append(f"backward of {', '.join(f'%{number}' for number in self.roots)}:")
            file, line = instruction.line
            lines.append(f"{instruction}  # {file}:{line}")
        return "\n".join(lines)


def used(instructions: list[Instruction], wanted: set[int]) -> list[bool]:
    """Return for each instruction whether one of the `wanted` values, or an instruction that must run, depends on it."""
    needed = set(wanted)
    kept = [False] * len(instructions)
    for position in range(len(instructions) - 1, -1, -1):
        instruction = instructions[position]
        if instruction.keeps or not needed.isdisjoint(instruction.results):
            kept[position] = True
            needed.update(instruction.reads())
    return kept


def made(array: str, dtype: str) -> str:
    """Return the source that creates a tensor on an array that operators have computed."""
    return f"wrap({array})" if numpy.dtype(dtype).isbuiltin != 1 else f"(wrap if NOTING else tensor)({array})"


def array_of(value: Any) -> Any:
    """Return a result of a kernel, which may be None, as an array."""
    return None if value is None else numpy.asarray(value)


def numbers_in(operands: Any) -> Iterator[int]:
    """Return the numbers of the values among operands, including values in sequences, dictionaries and slices."""
    for operand in operands:
        if isinstance(operand, Reference):
            yield operand.number
        elif isinstance(operand, dict):
            yield from numbers_in(operand.values())
        elif isinstance(operand, slice):
            yield from numbers_in((operand.start, operand.stop, operand.step))
        elif isinstance(operand, (list, tuple)) and not isinstance(operand, Constant):
            yield from numbers_in(operand)


def text(operand: Any) -> str:
    """Return an operand as it appears in a printed program."""
    if isinstance(operand, (list, tuple)) and not isinstance(operand, (Reference, Constant)):
        return f"[{', '.join(map(text, operand))}]"
    return str(operand)


def described(given: Input, shape: Any) -> str:
    """Return an input as it appears in a printed program."""
    form = f"{shape[1]}{list(shape[0])}"
    if given.kind == "argument":
        return f"{form} argument {given.source}"
    return f"{form} {'gradient of a leaf' if given.kind == 'grad' else type(given.source).__name__}"


# --- source ---------------------------------------------------------------------------------------------------------------


class Source:
    """The source of a function that runs instructions, and the names that it uses.

    `place_of` returns the place of a tensor in the arguments.
    """

    def __init__(self, place_of: Callable[[Tensor], str | None] = lambda tensor: None) -> None:
        self.place_of = place_of
        self.namespace: dict[str, Any] = {
            "__package__": __package__,  # warnings name the line that calls the program
            "asarray": numpy.asarray,
            "array_of": array_of,
            "wrap": wrap,
            "tensor": tensor_maker(),
            "NOTING": NOTING,
        }
        self.names: dict[int, str] = {}
        self.lines: list[str] = []
        self.origins: dict[int, tuple[str, int]] = {}

    def copy(self) -> Source:
        """Return the source of another function, which may use the same names."""
        new = Source(self.place_of)
        new.namespace, new.names = dict(self.namespace), dict(self.names)
        return new

    def constant(self, value: Any) -> str:
        """Return the name of an object in the source."""
        name = self.names.get(id(value))
        if name is None or self.namespace[name] is not value:  # a native function has replaced the object with this id
            name = self.names[id(value)] = f"c{len(self.namespace)}"
            self.namespace[name] = value
        return name

    def tensor(self, tensor: Tensor) -> str:
        """Return the source of a tensor. An argument is a different tensor in each call."""
        return self.place_of(tensor) or self.constant(tensor)

    def operand(self, operand: Any) -> str:
        """Return the source of an operand."""
        if isinstance(operand, Reference):
            return f"v{operand.number}"
        if isinstance(operand, Constant):
            value = operand.value
            if isinstance(value, Tensor):
                return self.tensor(value)
            return repr(value) if value is None or type(value) in (bool, int) else self.constant(value)
        open_, close = "[]" if isinstance(operand, list) else "()"
        inner = ", ".join(map(self.operand, operand))
        return f"{open_}{inner}{',' if open_ == '(' and len(operand) == 1 else ''}{close}"

    def run(self, instructions: list[Instruction], lasting: set[int], shapes: Any) -> None:
        """Append the lines of instructions. Values that are not `lasting` are dropped after their last use."""
        touched = [
            {*each.reads(), *(number for number in each.results if number is not None)} - lasting
            for each in instructions
        ]
        last = {number: position for position, numbers in enumerate(touched) for number in numbers}
        for position, instruction in enumerate(instructions):
            results = ", ".join("_" if number is None else f"v{number}" for number in instruction.results)
            if instruction.several:
                results = f"[{results}]"
            operands = [*map(self.operand, instruction.operands)]
            self.origins[len(self.lines)] = instruction.line
            if isinstance(instruction.function, str):
                value = instruction.function.format(*operands)
            else:
                value = f"{self.constant(instruction.function)}({', '.join(operands)})"
            if not getattr(instruction.function, "makes_arrays", False) and any(
                number is not None and shapes[number] is not None and not shapes[number][0]
                for number in instruction.results
            ):
                # NumPy's functions return scalars instead of arrays without dimensions.
                value = f"map(array_of, {value})" if instruction.several else f"asarray({value})"
            self.lines.append(f"{results}{' = ' if results else ''}{value}")
            dropped = [f"v{number}" for number in sorted(touched[position]) if last[number] == position]
            if dropped and instruction.name != "drop":
                self.lines[-1] += f"; del {', '.join(dropped)}"
