"""Planned kernels in native runs, on the threads of compiled kernels. The results have the same bits as outside of programs.

A kernel that is `recordable` (see `codegen.recording`) is called with outlines of its operands. The loops that it launches become
blocks, its results and intermediate arrays become values of the run. Products, sums and elementwise loops of large arrays are
planned from their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy

from ..codegen.acceleration import LOOPS
from ..codegen.expression import INPUT, NUMBER, Expression, Graph
from ..codegen.llvm.streaming import is_streamed
from ..codegen.recording import Recorder, unchanged
from ..kernels.runtime.costs import NARROW, ON_ONE_THREAD
from .blocks import SMALL, STATUS, Foreign, Place, Writer
from .computations import compiled_form
from .copies import extent
from .dims import plain
from .extents import is_contiguous
from .program import Constant, Instruction, Program, Reference, numbers_in

PRODUCT = 1 << 16
"""The maximum number of multiplications of a product that becomes a block."""


def recordable_of(instruction: Instruction) -> Any:
    """Return the recordable kernel that an instruction calls with its operands, or None."""
    op, function = instruction.kernel, instruction.function
    if op is None:
        kernel = getattr(function, "kernel", None)
        return kernel if getattr(kernel, "recordable", False) else None
    kernel = op.kernel.inplace if instruction.changes else op.kernel.general
    if not getattr(kernel, "recordable", False):
        return None
    names = op.names[: len(instruction.operands)]

    def call(*given: Any) -> Any:
        named = dict(zip(names, given, strict=True))
        options = {name: named.pop(name) for name in op.keyword_only if name in named}
        return kernel(*named.values(), **options)

    return call


def record(writer: Writer, instruction: Instruction, kernel: Callable[..., Any]) -> None:
    """Append the loops that a kernel launches for the operands of an instruction."""
    program, recorder = writer.program, Recorder()
    read = [*dict.fromkeys(numbers_in(instruction.operands))]
    if not LOOPS.enabled or any(program.shapes[each] is None for each in read):
        raise Foreign
    if instruction.keeps and any(share_memory(program, *pair) for pair in combinations(read, 2)):
        raise Foreign
    outlines: dict[int, Any] = {}
    buffers: list[tuple[int, int]] = []
    try:
        for operand in read:
            if 0 in writer.form(operand)[0]:
                outlines[operand] = unchanged(numpy.empty(*writer.form(operand)))
                continue
            place, item = writer.place_of_any(operand), writer.item_of(operand)
            strides = [int(step) * item for step in place.strides]
            outlines[operand] = recorder.outline(plain(place.shape), writer.form(operand)[1], strides)
            buffers.append((place.buffer, place.offset * item))
        results = recorder.record(kernel, *[outlined(plain(each), outlines) for each in instruction.operands])
    except Exception:  # noqa: BLE001  (whatever a kernel raises without elements)
        raise Foreign from None
    made: dict[int, int] = {}
    results = results if instruction.several else [results] * bool(instruction.results)
    for number, result in zip(instruction.results, results, strict=True):
        if number is not None and not result.size:
            writer.made(number, writer.form(number)[1])
        elif number is not None:
            memory = memory_of(writer, recorder, number, result)
            if memory < len(buffers) or memory in made:
                raise Foreign  # the result is an operand or another result
            made[memory] = number
    for position in range(len(buffers), len(recorder.memories)):
        if position == recorder.flag:
            buffers.append(writer.check() if recorder.may_raise else (STATUS, 0))
        else:
            size = recorder.memories[position].nbytes
            buffers.append((made[position] if position in made else writer.between(size).buffer, 0))
    for launch, arrays, tests in recorder.launches:
        pointers = [(buffers[position][0], buffers[position][1] + offset) for position, offset in arrays]
        items = [writer.item_of(buffer) for buffer, _ in pointers]
        if any(offset % item for (_, offset), item in zip(pointers, items, strict=True)):
            raise Foreign
        at = [(buffer, offset // item) for (buffer, offset), item in zip(pointers, items, strict=True)]
        writer.launched(launch, at, tests)


def share_memory(program: Program, first: int, second: int) -> bool:
    """Return whether two values may have shared memory at the capture."""
    (begin, end), (other_begin, other_end) = extent(program, first), extent(program, second)
    return begin < other_end and other_begin < end


def outlined(operand: Any, outlines: dict[int, Any]) -> Any:
    """Return an operand with these arrays, such as outlines, in place of references."""
    if isinstance(operand, Reference):
        return outlines[operand.number]
    if isinstance(operand, Constant):
        return operand.value
    return type(operand)([outlined(each, outlines) for each in operand])


def memory_of(writer: Writer, recorder: Recorder, number: int, result: Any) -> int:
    """Return the number of the memory in a recording that is the result with this number, in its layout."""
    dtype = writer.form(number)[1]
    place, item = plain(writer.made(number, dtype)), writer.item_of(number)
    if getattr(result, "shape", None) != place.shape or result.dtype.name != dtype:
        raise Foreign
    steps = [
        (step, own * item)
        for size, step, own in zip(place.shape, result.strides, place.strides, strict=True)
        if size > 1
    ]
    memory, offset = recorder.place(result) or (-1, 0)
    if memory < 0 or offset or recorder.memories[memory].nbytes != result.nbytes or any(a != b for a, b in steps):
        raise Foreign
    return memory


def launch_expression(writer: Writer, instruction: Instruction, values: list[Any]) -> bool:
    """Append the compiled loops of an elementwise instruction on large arrays. Return False if the arrays are small."""
    if None in instruction.results or len(instruction.results) == instruction.changes:
        raise Foreign
    outs = (
        values[:1] if instruction.changes else [writer.made(each) for each in instruction.results if each is not None]
    )
    out = outs[0]
    if math.prod(out.shape) <= SMALL:
        return False
    compiled, arrays, scalars = compiled_form(instruction, values)
    if not all(isinstance(each, Place) for each in arrays) or not all(
        isinstance(each, (int, float, str)) for each in scalars
    ):
        raise Foreign
    if is_streamed(len(outs) * math.prod(out.shape) * writer.item):
        raise Foreign
    like, like_outs = [[writer.like(each) for each in places] for places in (arrays, outs)]
    writer.launch(lambda: compiled.in_run(like, plain([*scalars]), tuple(like_outs)), *arrays, *outs)
    return True


def is_large(first: Place, second: Place) -> bool:
    """Return whether a planned kernel multiplies two matrices, or two stacks of matrices."""
    return math.prod(first.shape) * second.shape[-1] > PRODUCT


def launch_product(writer: Writer, first: Place, second: Place, out: Place, added: Place | None = None) -> None:
    """Append the planned kernel of a product of matrices or of stacks of matrices, plus a vector in each row."""
    if added is not None and (added.shape != second.shape[-1:] or added.strides != (1,)):
        raise Foreign
    if not is_contiguous(out.shape, out.strides, 1):
        raise Foreign
    rows, columns = first.shape[-2], second.shape[-1]
    as_numpy = math.prod(first.shape) * columns <= ON_ONE_THREAD and min(rows, columns) > 1
    if as_numpy and (len(first.shape) > 2 or first.shape[-1] == 1 or first.buffer == second.buffer):
        raise Foreign
    if as_numpy and added is not None:
        launch_product(writer, first, second, out)
        graph = Graph()
        nodes = [graph.node(INPUT, (), NUMBER, name) for name in "xy"]
        name = writer.function(Expression((graph.node("add", tuple(nodes), NUMBER),)), nodes, {})
        writer.pointwise(name, [out, added], out)
        return
    layouts = [plain((each.shape, tuple([step * writer.item for step in each.strides]))) for each in (first, second)]
    options = numpy.dtype(writer.dtype).char, added is not None, as_numpy
    writer.launch(
        lambda: LOOPS.run("linalg.products.in_run", *layouts, *options), out, first, second, *([added] if added else [])
    )


def write_bmm(writer: Writer, instruction: Instruction) -> None:
    """Write the products of two stacks of matrices."""
    first, second = map(writer.operand, instruction.operands)
    (_, rows, depth), columns = first.shape, second.shape[2]
    if rows * columns == 1 or rows * depth * columns <= NARROW or not is_large(first, second):
        raise Foreign
    launch_product(writer, first, second, writer.result(instruction))
