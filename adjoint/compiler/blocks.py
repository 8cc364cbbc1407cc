"""Blocks: the loops of one small instruction, written in the kernel language for arrays at fixed positions in memory.

A block receives pointers, and its text contains everything else. Instructions of one kind on arrays of the same shapes
and strides therefore share one block, which is compiled once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy
from numpy.lib.stride_tricks import as_strided

from ..codegen.acceleration import LOOPS
from ..codegen.expression import CONSTANT, SCALAR, Expression, scalar_source
from ..codegen.llvm import language
from ..codegen.llvm.compilation import Module
from ..codegen.llvm.expressions import FUNCTIONS, ExpressionWriter
from ..codegen.llvm.functions import Builtin
from ..codegen.llvm.host import HOST
from ..codegen.llvm.language import WrittenLoops, f32, f64
from ..codegen.plans import Launch
from .dims import Dim, FloatDim, plain
from .program import Constant, Instruction, Program, Reference

POINTERS = 6
"""The maximum number of arrays in a block. This many pointers are passed in registers."""

SMALL = 1 << 15
"""The maximum number of elements of an instruction that becomes a block. Larger instructions call kernels."""

STATUS = -1
"""The buffer in which a block reports an index out of bounds."""

SIZES = -2
"""The buffer from which blocks read the sizes and strides that differ from run to run."""

BASES = -3
"""The buffer with the addresses of all buffers, which forks read."""

NAMES = {**vars(language), **FUNCTIONS}
"""The names that blocks may use: the kernel language and elementary functions."""

TYPES = {"float32": (f32, 4), "float64": (f64, 8)}


class Foreign(Exception):
    """The error for an instruction that cannot become a block."""


class Place(NamedTuple):
    """The position of the elements of a value: the buffer, the first element, and the strides in elements."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def may_be(count: int) -> bool:
    """Return whether to write a loop of `count` iterations, because it may run in this call or in another call."""
    return isinstance(count, Dim) or count > 0


class Block(NamedTuple):
    """The loops of an instruction: machine code that takes pointers, and the pointers' targets (buffers and elements in them).

    `key`: the key under which the machine code is cached. `name`: the kernel and the instruction, for observers. `tests`: whether
    it only tests a condition.
    """

    key: Any
    pointers: list[tuple[int, int]]
    name: str
    instruction: Instruction
    tests: bool = False


class Compiled(NamedTuple):
    """The machine code of a block, and its LLVM text."""

    address: int
    text: str


KNOWN_BLOCKS: dict[Any, Compiled] = {}
"""The machine code of each block, by its source and the expressions in it. Most programs contain equal blocks."""


class Writer:
    """Writes the blocks of a run of instructions, for values of one dtype.

    `launches`: the planned kernels among the blocks, by the positions of their words in `sizes`. `temporary`: the numbers of
    arrays that only planned kernels use. `checks`: whether blocks test conditions on elements. `stored`: the
    gradients that the run stores, each as the number of instructions before, the leaf, and the value. `instruction`: the
    instruction that is being written.
    """

    instruction: Instruction

    def __init__(self, program: Program, dtype: str) -> None:
        self.program, self.dtype = program, dtype
        self.type, self.item = TYPES[dtype]
        self.width = HOST.vector_bytes // self.item
        self.lines: list[str] = []
        self.places: dict[int, Place] = {}
        self.buffers: list[int] = []
        self.sizes: list[int] = []
        self.forms: dict[int, tuple[tuple[int, ...], str]] = {}
        self.checks = False
        self.stored: list[Any] = []
        self.blocks: list[Block] = []
        self.launches: list[tuple[int, Launch]] = []
        self.temporary: list[int] = []
        self.module = Module()
        self.names: dict[Any, str] = {}
        if program.table is not None:
            program.table.writer = self
        self.begin()

    def begin(self) -> None:
        """Begin a block."""
        self.lines = []
        self.pointers: dict[tuple[int, int], str] = {}
        self.owned: dict[int, str] = {}
        self.functions: dict[str, tuple[str, Any]] = {}
        self.named: dict[int, tuple[str, Dim]] = {}
        self.count = 0

    def finish(self) -> None:
        """Lower the block that has been written, and begin the next block."""
        if not self.lines:
            return
        if self.named:
            table = self.pointer(SIZES, len(self.sizes))
            self.lines[:0] = [f"    {name} = {table}[{k}]" for k, (name, _) in enumerate(self.named.values())]
            self.sizes += [size for _, size in self.named.values()]
        if len(self.pointers) > POINTERS:
            raise Foreign
        kinds = ["i64" if number == SIZES else "E" for number, _ in self.pointers]
        kinds += ["E"] * (POINTERS - len(kinds))
        head = ", ".join(f"p{k}: Pointer[{kind}]" for k, kind in enumerate(kinds))
        source = "\n".join([f"def block({head}) -> None:", *self.lines, ""])
        key = source, self.dtype, tuple([described for described, _ in self.functions.values()])
        if key not in KNOWN_BLOCKS and key not in self.names:
            functions = {name: function for name, (_, function) in self.functions.items()}
            kernel = WrittenLoops(
                "block", source, {**NAMES, **functions, "E": self.type}, flags="contract", noalias=False
            )
            name = f"block_{len(self.names)}"
            self.module.add(kernel, name, {})
            self.names[key] = name
        self.blocks.append(Block(key, list(self.pointers), f"block of {self.instruction.name}", self.instruction))
        self.begin()

    def launch(self, planned: Callable[[], Any], *places: Place) -> None:
        """Append the planned kernel that `planned` returns, called with the elements of these places, as a block."""
        launch = planned() if LOOPS.enabled else NotImplemented
        if launch is NotImplemented:
            raise Foreign
        self.launched(launch, [(each.buffer, each.offset) for each in places])

    def launched(self, launch: Launch, pointers: list[tuple[int, int]], tests: bool = False) -> None:
        """Append a planned kernel, called with elements of buffers, as a block. `tests`: whether it only tests a condition."""
        key = Compiled(launch.address, f"; {launch.name}, a planned kernel")
        KNOWN_BLOCKS[key] = key
        name = f"{launch.name} of {self.instruction.name}"
        self.blocks.append(Block(key, [(SIZES, len(self.sizes)), *pointers], name, self.instruction, tests))
        self.launches.append((len(self.sizes), launch))
        self.sizes += [0] * launch.size

    def check(self) -> tuple[int, int]:
        """Return the pointer through which blocks ask for Python, which stores earlier gradients of known leaves on errors."""
        for _, leaf, value in self.stored:
            if self.program.place_of(leaf.value) is not None:
                raise Foreign
            self.place_of_any(value.number)
        self.checks = True
        return STATUS, 0

    def between(self, size: int) -> Place:
        """Return the place of a new array of this many bytes between two planned kernels."""
        number, size = BASES - 1 - len(self.temporary), -(-size // self.item)
        self.temporary.append(number)
        self.forms[number] = (size,), self.dtype
        return Place(number, 0, (size,), (1,))

    def like(self, place: Place) -> numpy.ndarray:
        """Return an array with the shape, strides and dtype of a place. Its elements do not exist."""
        strides = [int(step) * self.item for step in place.strides]
        return as_strided(numpy.empty(1, self.dtype), plain(place.shape), strides)

    def compiled(self) -> list[Compiled]:
        """Return the machine code of each block. New blocks are compiled together."""
        new = {self.names[block.key]: block.key for block in self.blocks if block.key not in KNOWN_BLOCKS}
        if new:
            first, *others = new
            code = HOST.compile(first, self.module.text([*new]), explicit=True, plain=True, also=tuple(others))
            for (name, key), address in zip(new.items(), (code.address, *code.also), strict=True):
                KNOWN_BLOCKS[key] = Compiled(address, self.module.functions[name])
        return [KNOWN_BLOCKS[block.key] for block in self.blocks]

    def pointer(self, buffer: int, offset: int = 0) -> str:
        """Return the name of a pointer to an element of a buffer."""
        return self.owned.get(buffer) or self.pointers.setdefault((buffer, offset), f"p{len(self.pointers)}")

    def own(self, name: str) -> int:
        """Return the number of a buffer that is a variable of the block."""
        self.owned[number := BASES - 1 - len(self.owned)] = name
        return number

    def size_name(self, size: Dim) -> str:
        """Return the name of a size in the text."""
        return self.named.setdefault(size.table_index, (f"s{len(self.named)}", size))[0]

    # --- values -----------------------------------------------------------------------------------------------------------

    def item_of(self, number: int) -> int:
        """Return the bytes of an element of a buffer."""
        if number in (STATUS, SIZES, BASES):
            return 8
        try:
            return numpy.dtype(self.form(number)[1]).itemsize
        except TypeError:  # a dtype that NumPy does not know by name
            raise Foreign from None

    def form(self, number: int) -> tuple[tuple[int, ...], str]:
        """Return the shape and the dtype of a value."""
        found = self.forms.get(number) or self.program.shapes[number]
        if found is None:
            raise Foreign
        return found

    def steps(self, number: int, item: int) -> tuple[int, ...]:
        """Return the strides of a value in elements."""
        strides, _ = self.program.memory[number]  # type: ignore[misc]
        if any(step % item for step in strides):
            raise Foreign
        return tuple([step // item for step in strides])

    def place(self, number: int) -> Place:
        """Return the place of a value of the writer's dtype."""
        if self.form(number)[1] != self.dtype:
            raise Foreign
        return self.place_of_any(number)

    def place_of_any(self, number: int) -> Place:
        """Return the place of a value. If the block's function does not create the value, a caller passes it."""
        found = self.places.get(number)
        if found is None:
            shape, item = self.form(number)[0], self.item_of(number)
            found = self.places[number] = Place(number, 0, shape, self.steps(number, item))
            self.buffers.append(number)
        return found

    def made(self, number: int, dtype: str = "") -> Place:
        """Return the place of a new value, in the order of dimensions that the value had at the capture."""
        shape, found_dtype = self.form(number)
        memory, item = self.program.memory[number], self.item_of(number)
        if found_dtype != (dtype or self.dtype) or memory is None:
            raise Foreign
        steps, expected = [0] * len(shape), 1
        for dim in order_of(shape, memory[0])[::-1]:
            steps[dim] = expected
            if shape[dim] > 1 and memory[0][dim] != expected * item:
                raise Foreign  # there are gaps between its elements
            expected *= shape[dim]
        found = self.places[number] = Place(number, 0, shape, tuple(steps))
        return found

    def result(self, instruction: Instruction) -> Place:
        """Return the place of the only result of an instruction."""
        (number,) = instruction.results
        if number is None:
            raise Foreign
        return self.made(number)

    def view(self, result: int, operand: int) -> None:
        """Make a value share the memory of another value."""
        (_, end), (_, begin) = self.program.memory[result], self.program.memory[operand]  # type: ignore[misc]
        whole, shape, item = self.place_of_any(operand), self.form(result)[0], self.item_of(operand)
        apart = self.program.apart(result, operand)
        if (
            int(apart) != end - begin
            or apart % item
            or self.form(result)[1] != self.form(operand)[1]
            or math.prod(shape) == 0
        ):
            raise Foreign
        self.places[result] = Place(whole.buffer, whole.offset + apart // item, shape, self.steps(result, item))

    # --- text -------------------------------------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """Return a name that is not used yet."""
        self.count += 1
        return f"{prefix}{self.count}"

    def element(self, place: Place, indices: Iterable[str | int]) -> str:
        """Return the source of a pointer to an element, by its indices."""
        terms = []
        for index, step in zip(indices, place.strides, strict=True):
            if step and index != 0:
                terms.append(f"{index} * {step}" if step != 1 else str(index))
        pointer = self.pointer(place.buffer, place.offset)
        return f"{pointer} + ({' + '.join(terms)})" if terms else pointer

    def read(self, place: Place, indices: Iterable[str | int]) -> str:
        """Return the source of an element."""
        pointer = self.element(place, indices)
        return f"({pointer})[0]"

    def function(self, expression: Expression, inputs: list[Any], scalars: dict[str, Any]) -> str:
        """Return the name of a function that computes an expression from the elements of its `inputs`, numbers or vectors."""

        def computed(lowering: Any, *values: Any) -> Any:
            writer = ExpressionWriter(lowering, values[0].type)
            given: dict[Any, Any] = dict(zip(inputs, values, strict=True))
            for node in expression.nodes():
                if node.kind == SCALAR and node.operation != CONSTANT:
                    given[node] = eval(scalar_source(node), {}, scalars)  # arithmetic on the numbers of a call
            return writer.write(expression, given)[0]

        if any(isinstance(each, (Dim, FloatDim)) for each in scalars.values()):
            raise Foreign
        name = self.fresh("f")
        self.functions[name] = f"{expression} {[str(node.value) for node in inputs]} {scalars}", Builtin(computed)
        return name

    def pointwise(self, name: str, operands: list[Place], out: Place) -> None:
        """Write `out = name(operands)`, element by element, with operands that broadcast together."""
        shape = out.shape
        spread = [widened(place, shape) for place in operands]
        sizes, (out_steps, *steps) = joined(shape, [out.strides, *[place.strides for place in spread]])
        places = [
            place._replace(shape=sizes, strides=step)
            for place, step in zip([out, *spread], [out_steps, *steps], strict=True)
        ]
        self.nest(sizes, places, name)

    def nest(self, sizes: tuple[int, ...], places: list[Place], name: str) -> None:
        """Write loops over all elements. The last dimension uses vectors if its elements are adjacent in memory."""
        out, *operands = places
        indent = "    "
        indices: list[str | int] = []
        for size in sizes[:-1]:
            index = self.fresh("i")
            self.lines.append(f"{indent}for {index} in range({size}):")
            indent += "    "
            indices.append(index)
        if not sizes:
            given = ", ".join(self.read(place, ()) for place in operands)
            self.lines.append(f"    ({self.element(out, ())})[0] = {name}({given})")
            return
        last, width = sizes[-1], self.width
        vectors = (
            last // width if all(place.strides[-1] in (0, 1) for place in operands) and out.strides[-1] == 1 else 0
        )
        if may_be(vectors):
            index = self.fresh("i")
            self.lines.append(f"{indent}for {index} in range({vectors}):")
            at = [*indices, f"{index} * {width}"]
            arguments = [
                f"load({self.element(place, at)}, {width})"
                if place.strides[-1]
                else f"vector(E, {width})({self.read(place, [*indices, 0])})"
                for place in operands
            ]
            self.lines.append(f"{indent}    store({self.element(out, at)}, {name}({', '.join(arguments)}))")
        if may_be(last - vectors * width):
            index = self.fresh("i")
            self.lines.append(f"{indent}for {index} in range({vectors * width}, {last}):")
            arguments = [self.read(place, [*indices, index]) for place in operands]
            self.lines.append(
                f"{indent}    ({self.element(out, [*indices, index])})[0] = {name}({', '.join(arguments)})"
            )

    def operand(self, operand: Any) -> Any:
        """Return the place of an operand, or its number."""
        if isinstance(operand, Reference):
            return self.place(operand.number)
        return number_of(operand, (self.dtype,))

    def operand_or_dims(self, operand: Any) -> Any:
        """Return the place of an operand, or a number, or a tuple of numbers."""
        if isinstance(operand, Constant) and type(operand.value) in (tuple, list):
            return tuple(operand.value)
        return self.operand(operand)


def number_of(operand: Any, dtypes: tuple[str, ...]) -> Any:
    """Return a constant operand: a number, a string, None, or the element of an array without dimensions."""
    value = operand.value if isinstance(operand, Constant) else Foreign
    if isinstance(value, numpy.ndarray) and value.ndim == 0 and value.dtype.name in dtypes:
        return value.item()
    if value is None or type(value) in (int, float, bool, str):
        return value
    raise Foreign


def order_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the dimensions from the slowest to the fastest. Dimensions of size 1 keep their positions."""
    if all(
        first >= second
        for first, second in itertools.pairwise([step for size, step in zip(shape, strides, strict=True) if size > 1])
    ):
        return list(range(len(shape)))
    return sorted(range(len(shape)), key=lambda dim: (-strides[dim], shape[dim] == 1))


def widened(place: Place, shape: tuple[int, ...]) -> Place:
    """Return a place, broadcast to a shape."""
    missing = len(shape) - len(place.shape)
    if missing < 0:
        raise Foreign
    strides = [0] * missing + [0 if size == 1 else step for size, step in zip(place.shape, place.strides, strict=True)]
    return place._replace(shape=shape, strides=tuple(strides))


def joined(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Join dimensions that are adjacent in memory for all operands."""
    kept = [dim for dim, size in enumerate(shape) if size != 1]
    sizes = [shape[dim] for dim in kept]
    steps = [[each[dim] for dim in kept] for each in strides]
    dim = len(sizes) - 2
    while dim >= 0:
        if all(each[dim] == each[dim + 1] * sizes[dim + 1] for each in steps):
            sizes[dim : dim + 2] = [sizes[dim] * sizes[dim + 1]]
            for each in steps:
                del each[dim]
        dim -= 1
    return tuple(sizes), [tuple(each) for each in steps]
