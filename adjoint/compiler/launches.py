"""Planned kernels in native runs: products, sums and elementwise loops of large arrays, on the threads of compiled kernels.

The results have the same bits as outside of programs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..codegen.acceleration import LOOPS
from ..codegen.costs import ON_ONE_THREAD
from ..codegen.llvm.streaming import is_streamed
from ..kernels.linalg.matmul import SMALL as SMALL_PRODUCT
from .blocks import SMALL, Foreign, Place, Writer
from .computations import compiled_form
from .extents import is_contiguous
from .program import Instruction

PRODUCT = 1 << 16
"""The maximum number of multiplications of a product that becomes a block."""


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
    writer.launch(lambda: compiled.in_run(like, scalars, tuple(like_outs)), *arrays, *outs)
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
    if as_numpy and (
        added is not None or len(first.shape) > 2 or first.shape[-1] == 1 or first.buffer == second.buffer
    ):
        raise Foreign
    layouts = [(each.shape, tuple([step * writer.item for step in each.strides])) for each in (first, second)]
    options = numpy.dtype(writer.dtype).char, added is not None, as_numpy
    writer.launch(
        lambda: LOOPS.run("linalg.products.in_run", *layouts, *options), out, first, second, *([added] if added else [])
    )


def write_bmm(writer: Writer, instruction: Instruction) -> None:
    """Write the products of two stacks of matrices."""
    first, second = map(writer.operand, instruction.operands)
    (_, rows, depth), columns = first.shape, second.shape[2]
    if rows * columns == 1 or rows * depth * columns <= SMALL_PRODUCT or not is_large(first, second):
        raise Foreign
    launch_product(writer, first, second, writer.result(instruction))


def launch_sum(writer: Writer, given: Place, dims: tuple[int, ...], out: Place) -> None:
    """Append the planned kernels that sum a large array over dimensions."""
    steps = LOOPS.run("reduce.reduction.sum_in_run", writer.like(given), dims)
    if steps is NotImplemented or not steps or not is_contiguous(out.shape, out.strides, 1):
        raise Foreign
    for position, (launch, size) in enumerate(steps, 1):
        result = out if position == len(steps) else writer.between(size)
        writer.launch(launch, given, result)
        given = result
