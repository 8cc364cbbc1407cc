"""The loops of instructions that copy elements or fill arrays."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy

from ..codegen.compiled_pointwise import CompiledPointwise
from ..codegen.expression import INPUT, NUMBER, Expression, Graph
from .blocks import SMALL, Foreign, Place, Writer
from .program import Constant, Instruction, Program

IDENTITY = Expression((Graph().node(INPUT, (), NUMBER, "x"),))


@functools.cache
def copied() -> CompiledPointwise:
    """Return the compiled loops that copy elements."""
    graph = Graph()
    same = graph.node("positive", (graph.node(INPUT, (), NUMBER, "x"),), NUMBER)
    return CompiledPointwise("copied", Expression((same,)), ["x"], [])


def copy(writer: Writer, given: Any, out: Place) -> None:
    """Write the loop that copies the elements of one array to another array."""
    if math.prod(out.shape) > SMALL:
        writer.launch(lambda: copied().in_run([writer.like(given)], [], (writer.like(out),)), given, out)
    else:
        writer.pointwise(writer.function(IDENTITY, [IDENTITY.outputs[0]], {}), [given], out)


def write_joined(stacked: bool, writer: Writer, instruction: Instruction) -> None:
    """Write arrays one after another into one array."""
    tensors, dim, *_ = instruction.operands
    out = writer.result(instruction)
    along = dim.value if isinstance(dim, Constant) else None
    if type(along) is not int or not isinstance(tensors, list):
        raise Foreign
    along %= len(out.shape)
    done = 0
    for each in map(writer.operand, tensors):
        if not isinstance(each, Place):
            raise Foreign
        if stacked:
            each = each._replace(
                shape=(*each.shape[:along], 1, *each.shape[along:]),
                strides=(*each.strides[:along], 0, *each.strides[along:]),
            )
        if len(each.shape) != len(out.shape) or not math.prod(each.shape):
            raise Foreign
        part = out._replace(offset=out.offset + done * out.strides[along], shape=each.shape)
        copy(writer, each, part)
        writer.finish()
        done += each.shape[along]


def write_clone(writer: Writer, instruction: Instruction) -> None:
    """Write a copy, which may have another order of dimensions."""
    given = writer.operand(instruction.operands[0])
    copy(writer, given, writer.result(instruction))


def extent(program: Program, number: int) -> tuple[int, int]:
    """Return the first address of the memory of a value at the capture, and the address behind its last element."""
    (shape, dtype), (strides, address) = program.shapes[number], program.memory[number]  # type: ignore[misc]
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    end = sum(max(0, each) for each in steps) + numpy.dtype(dtype).itemsize
    return address + sum(min(0, each) for each in steps), address + end


def write_copy(writer: Writer, instruction: Instruction) -> None:
    """Copy the elements of one array to another array, which must not share memory with it."""
    out, given = map(writer.operand, instruction.operands[:2])
    if not isinstance(given, Place) or given.buffer == out.buffer or not math.prod(out.shape):
        raise Foreign
    (begin, end), (other_begin, other_end) = [extent(writer.program, each.number) for each in instruction.operands[:2]]
    if begin < other_end and other_begin < end:
        raise Foreign
    copy(writer, given, out)


def uniform(writer: Writer, out: Place, value: Any) -> None:
    """Write the same number, which must not be negative, to each element."""
    if type(value) not in (int, float) or not math.isfinite(value) or math.copysign(1, value) < 0:
        raise Foreign
    if not 0 < math.prod(out.shape) <= SMALL:
        raise Foreign
    indices = [writer.fresh("i") for _ in out.shape]
    for depth, (index, size) in enumerate(zip(indices, out.shape, strict=True), 1):
        writer.lines.append(f"{'    ' * depth}for {index} in range({size}):")
    writer.lines.append(f"{'    ' * (len(indices) + 1)}({writer.element(out, indices)})[0] = E({float(value)!r})")


def write_constant(writer: Writer, instruction: Instruction) -> None:
    """Write an array of equal elements that is the same in each call, such as the first gradient of a backward."""
    array = instruction.function.array
    if not array.size or array.dtype.kind != "f" or (array != array.flat[0]).any() or numpy.signbit(array).any():
        raise Foreign
    uniform(writer, writer.result(instruction), array.flat[0].item())


def write_fill(writer: Writer, instruction: Instruction) -> None:
    """Write the same number, by default 0, to each element of an array, or of a new array."""
    first, value = [*instruction.operands, Constant(0)][:2]
    out = writer.operand(first) if instruction.changes else writer.result(instruction)
    uniform(writer, out, writer.operand(value))
