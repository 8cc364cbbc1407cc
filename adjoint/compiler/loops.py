"""The loops of instructions.

Pointwise operators come from expressions. Small products and sums are written by hand, and other kernels are recorded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..codegen.expression import INPUT, NUMBER, Expression, Graph
from ..codegen.llvm.values import CompilationError, UnsupportedInstruction
from .blocks import SMALL, Foreign, Place, Writer, may_be, widened
from .computations import computation
from .copies import write_clone, write_constant, write_copy, write_fill, write_joined
from .dims import Dim
from .launches import PRODUCT, is_large, launch_expression, launch_product, record, recordable_of, write_bmm
from .program import Instruction, Reference

ROWS = 4
"""The number of rows of a product that are computed together. They share each vector that is read from the second matrix."""


def write(writer: Writer, instruction: Instruction) -> None:
    """Append the blocks of an instruction."""
    lists: tuple[list[Any], ...] = writer.blocks, writer.buffers, writer.sizes, writer.launches, writer.temporary
    before = [*map(len, lists)], dict(writer.places)
    writer.instruction = instruction
    try:
        write_lines(writer, instruction)
        writer.finish()
    except (Foreign, CompilationError, UnsupportedInstruction):
        for items, count in zip(lists, before[0], strict=True):
            del items[count:]
        writer.places = before[1]
        writer.begin()
        raise Foreign from None


def write_lines(writer: Writer, instruction: Instruction) -> None:
    """Write the loops of an instruction."""
    op, written = instruction.kernel, WRITERS.get(instruction.name)
    if op is not None and op.random:
        raise Foreign
    if instruction.is_view:
        first = instruction.operands[0]
        if not isinstance(first, Reference):
            raise Foreign
        memory = writer.program.memory
        if (op is None or not op.view) and memory[first.number][1] != memory[instruction.results[0]][1]:  # type: ignore[index]
            raise Foreign  # it is a copy
        for number in instruction.results:
            writer.view(number, first.number)  # type: ignore[arg-type]
        return
    kernel = recordable_of(instruction)
    if kernel is not None and written is not None:
        try:
            written(writer, instruction)
            return
        except Foreign:
            writer.begin()
    if kernel is not None:
        record(writer, instruction, kernel)
        return
    if instruction.several and getattr(instruction.function, "loop", None) is None:
        raise Foreign
    if written is not None:
        written(writer, instruction)
    else:
        write_expression(writer, instruction)


def write_expression(writer: Writer, instruction: Instruction) -> None:
    """Write the loops of an elementwise instruction, which has one result, or overwrites its first operand."""
    first = instruction.operands[0] if instruction.operands else None
    if instruction.name in INTEGERS and isinstance(first, Reference) and writer.form(first.number)[1] == "int64":
        record(writer, instruction, instruction.function)
        return
    values = [*map(writer.operand, instruction.operands)]
    if launch_expression(writer, instruction, values):
        return
    expression, inputs, scalars = computation(instruction, values)
    if expression.outputs[0].kind != NUMBER:
        raise Foreign
    out = values[0] if instruction.changes else writer.result(instruction)
    if math.prod(out.shape) > SMALL or not math.prod(out.shape):
        raise Foreign
    name = writer.function(expression, [node for node, _ in inputs], scalars)
    writer.pointwise(name, [place for _, place in inputs], out)


# --- products and sums --------------------------------------------------------------------------------------------------


def product(writer: Writer, first: Place, second: Place, out: Place, base: Place | None = None) -> None:
    """Write `out = base + first @ second` for matrices. `base` has the shape of `out`."""
    (rows, inner), (_, columns) = first.shape, second.shape
    if rows * inner * columns > PRODUCT or not rows * columns:
        raise Foreign
    width = writer.width
    many = type(rows) is Dim or rows >= 2 * ROWS
    few = many and inner < 2 * width <= 2 * columns and not any(type(each) is Dim for each in second.shape)
    if few and second.strides[1] != 1 and out.strides[1] == 1:
        second = transposed(writer, second)  # vectors of columns: a sum of few products is computed one by one
    vectors = columns // width if second.strides[1] == 1 and out.strides[1] == 1 else 0
    if base is not None and base.strides[1] not in (0, 1):
        vectors = 0
    together = rows // ROWS * ROWS if may_be(vectors) else 0
    for begin, end, count in ((0, together, ROWS), (together, rows, 1)):
        if not may_be(end - begin):
            continue
        row = writer.fresh("i")
        writer.lines.append(f"    for {row} in range({begin // count}, {end // count}):")
        named = [f"({row} * {count} + {number})" if count > 1 else row for number in range(count)]
        if may_be(vectors):
            vector_lines(writer, first, second, out, base, named, vectors)
        for i in named if may_be(columns - vectors * width) else ():
            j, k, total = (writer.fresh(each) for each in "jkt")
            start_value = "E(0)" if base is None else writer.read(base, [i, j])
            writer.lines.append(f"        for {j} in range({vectors * width}, {columns}):")
            start = dot_lines(writer, first, second, i, j, total, start_value)
            writer.lines += [
                f"            for {k} in range({start}, {inner}):",
                f"                {total} = fma({writer.read(first, [i, k])}, {writer.read(second, [k, j])}, {total})",
                f"            ({writer.element(out, [i, j])})[0] = {total}",
            ]


def transposed(writer: Writer, place: Place) -> Place:
    """Write a copy of a matrix, with adjacent columns, in the block's own memory."""
    (rows, columns), (name, i, j) = place.shape, [writer.fresh(each) for each in "mij"]
    writer.lines += [
        f"    {name} = local(E, {rows * columns})",
        f"    for {j} in range({columns}):",
        f"        for {i} in range({rows}):",
        f"            {name}[{i} * {columns} + {j}] = {writer.read(place, [i, j])}",
    ]
    return Place(writer.own(name), 0, place.shape, (columns, 1))


def vector_lines(
    writer: Writer, first: Place, second: Place, out: Place, base: Place | None, rows: list[str], vectors: int
) -> None:
    """Write some rows of a product, one vector of columns at a time."""
    width = writer.width
    j, k, factor = (writer.fresh(each) for each in "jkf")
    column, many = f"{j} * {width}", f"vector(E, {width})"
    totals = [writer.fresh("t") for _ in rows]
    writer.lines.append(f"        for {j} in range({vectors}):")
    for i, total in zip(rows, totals, strict=True):
        begin = f"{many}(E(0))"
        if base is not None:
            at = writer.element(base, [i, column])
            begin = f"load({at}, {width})" if base.strides[1] else f"{many}({writer.read(base, [i, 0])})"
        writer.lines.append(f"            {total} = {begin}")
    writer.lines += [
        f"            for {k} in range({first.shape[1]}):",
        f"                {factor} = load({writer.element(second, [k, column])}, {width})",
    ]
    for i, total in zip(rows, totals, strict=True):
        writer.lines.append(f"                {total} = fma({many}({writer.read(first, [i, k])}), {factor}, {total})")
    for i, total in zip(rows, totals, strict=True):
        writer.lines.append(f"            store({writer.element(out, [i, column])}, {total})")


def dot_lines(writer: Writer, first: Place, second: Place, i: str, j: str, total: str, begin: str) -> int:
    """Begin the sum of products of a row and a column. Return the number of products in vectors."""
    width, inner = writer.width, first.shape[1]
    if inner < 2 * width or first.strides[1] != 1 or second.strides[0] != 1:
        writer.lines.append(f"            {total} = {begin}")
        return 0
    k, many = writer.fresh("k"), writer.fresh("t")
    place = f"{k} * {width}"
    row, column = writer.element(first, [i, place]), writer.element(second, [place, j])
    writer.lines += [
        f"            {many} = vector(E, {width})(E(0))",
        f"            for {k} in range({inner // width}):",
        f"                {many} = fma(load({row}, {width}), load({column}, {width}), {many})",
        f"            {total} = {begin} + reduce_add({many})",
    ]
    return inner // width * width


def write_mm(writer: Writer, instruction: Instruction) -> None:
    """Write a product of matrices."""
    first, second = map(writer.operand, instruction.operands)
    out = writer.result(instruction)
    if is_large(first, second):
        launch_product(writer, first, second, out)
    else:
        product(writer, first, second, out)


def write_mv(writer: Writer, instruction: Instruction) -> None:
    """Write a product of a matrix and a vector."""
    first, second = map(writer.operand, instruction.operands)
    out = writer.result(instruction)
    columns = [each._replace(shape=(*each.shape, 1), strides=(*each.strides, 0)) for each in (second, out)]
    product(writer, first, *columns)


def write_addmm(writer: Writer, instruction: Instruction) -> None:
    """Write a product of matrices that is added to an array."""
    base, first, second, beta, alpha = map(writer.operand, instruction.operands)
    if beta != 1 or alpha != 1:
        raise Foreign
    out = writer.result(instruction)
    if is_large(first, second):
        launch_product(writer, first, second, out, base)
    else:
        product(writer, first, second, out, widened(base, out.shape))


def summed(
    writer: Writer, given: list[Place], dims: tuple[int, ...], out: Place, count: int = 1, function: str = ""
) -> None:
    """Write the sum of `function(*given)` over dimensions, divided by `count`, to `out`.

    `out` has the other dimensions, and may have the summed dimensions too. Sums are accumulated in float64, in vectors along or
    across the last dimension if its elements are adjacent in memory.
    """
    shape = given[0].shape
    if math.prod(shape) > SMALL or not math.prod(shape):
        raise Foreign
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    names: list[str] = [writer.fresh("i") for _ in shape]
    total, totals = writer.fresh("t"), writer.fresh("t")
    last, width = len(shape) - 1, writer.width
    adjacent = last >= 0 and all(place.strides[-1] == 1 for place in given)
    vectors = shape[last] // width if adjacent and (last in dims or out.strides[-1] == 1) else 0
    many, rest = f"vector(f64, {width})", f"range({vectors * width}, {shape[last]})" if last >= 0 else ""
    gone = dims[: len(shape) - len(out.shape)] if len(out.shape) < len(shape) else ()
    scale = f"f64(1) / f64({count})" if isinstance(count, Dim) else f"f64({1 / count!r})" if count != 1 else ""

    def loop(dim: int, indent: str, part: str = "") -> str:
        """Begin a loop over a dimension, or over a part of it. Return the indentation of its body."""
        writer.lines.append(f"{indent}for {names[dim]} in {part or f'range({shape[dim]})'}:")
        return indent + "    "

    def add(total: str, kind: str, indent: str, part: str, indices: list[str], width: int) -> None:
        """Add all elements, or the elements in a part of the last dimension, to a total."""
        writer.lines += [f"{indent}{total} = {kind}(f64(0))"] if total == totals else []
        for dim in dims:
            indent = loop(dim, indent, part if dim == last else "")
        read = [
            f"load({writer.element(each, indices)}, {width})" if width > 1 else writer.read(each, indices)
            for each in given
        ]
        writer.lines.append(f"{indent}{total} = {total} + {kind}({function}({', '.join(read)}))")

    def place_of(indices: list[str]) -> str:
        """Return the source of a pointer to the result."""
        found = [index if dim in kept else 0 for dim, index in enumerate(indices) if dim not in gone]
        return writer.element(out, found)

    indent = "    "
    for dim in kept if last in dims or not may_be(vectors) else kept[:-1]:
        indent = loop(dim, indent)
    wide = [*names[:last], f"{names[last]} * {width}"] if may_be(vectors) else names
    if last in dims or not may_be(vectors):
        writer.lines.append(f"{indent}{total} = f64(0)")
        if may_be(vectors):
            add(totals, many, indent, f"range({vectors})", wide, width)
            writer.lines.append(f"{indent}{total} = reduce_add({totals})")
        if not dims or may_be(shape[last] - vectors * width):
            add(total, "f64", indent, rest if last in dims else "", names, 1)
    else:
        inner = loop(last, indent, f"range({vectors})")
        add(totals, many, inner, "", wide, width)
        scaled = f"{totals} * {many}({scale})" if scale else totals
        writer.lines.append(f"{inner}store({place_of(wide)}, vector(E, {width})({scaled}))")
        if not may_be(shape[last] - vectors * width):
            return
        indent = loop(last, indent, rest)
        writer.lines.append(f"{indent}{total} = f64(0)")
        add(total, "f64", indent, "", names, 1)
    writer.lines.append(f"{indent}({place_of(names)})[0] = E({total}{f' * ({scale})' if scale else ''})")


def write_sum(mean: bool, writer: Writer, instruction: Instruction) -> None:
    """Write a sum or a mean over some or all dimensions."""
    if instruction.kernel is None:
        raise Foreign
    given, *options = map(writer.operand_or_dims, instruction.operands)
    names = dict(zip(instruction.kernel.names[1:], options, strict=True))
    if names.get("dtype") is not None:
        raise Foreign
    out = writer.result(instruction)
    dims = names.get("dim")
    rank = len(given.shape)
    chosen = range(rank) if dims is None or dims == () else (dims,) if type(dims) is int else dims
    wanted = tuple(sorted({dim % rank for dim in chosen})) if rank else ()
    count = math.prod(given.shape[dim] for dim in wanted)
    if not count:
        raise Foreign
    summed(writer, [given], wanted, out, count if mean else 1)


def write_sum_to(writer: Writer, instruction: Instruction) -> None:
    """Write a sum over the dimensions that were broadcast."""
    given, shape = map(writer.operand_or_dims, instruction.operands)
    leading = len(given.shape) - len(shape)
    wide = [leading + dim for dim, size in enumerate(shape) if size == 1 and given.shape[leading + dim] != 1]
    summed(writer, [given], (*range(leading), *wide), writer.result(instruction))


def write_mse(writer: Writer, instruction: Instruction) -> None:
    """Write the sum of squared differences."""
    first, second, reduction = map(writer.operand, instruction.operands)
    if reduction not in ("mean", "sum") or first.shape != second.shape:
        raise Foreign
    graph = Graph()
    nodes = [graph.node(INPUT, (), NUMBER, name) for name in "xy"]
    apart = graph.node("subtract", tuple(nodes), NUMBER)
    name = writer.function(Expression((graph.node("multiply", (apart, apart), NUMBER),)), nodes, {})
    dims, count = tuple(range(len(first.shape))), math.prod(first.shape)
    scale = count if reduction == "mean" and count else 1
    summed(writer, [first, second], dims, writer.result(instruction), scale, name)


INTEGERS = ("add_", "add", "sub", "mul")
"""The operators that run on integers too, such as counts of batches."""

WRITERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "mm": write_mm,
    "mv": write_mv,
    "addmm": write_addmm,
    "bmm": write_bmm,
    **dict.fromkeys("sum sum_all sum_dim sum_dims".split(), functools.partial(write_sum, False)),
    **dict.fromkeys("mean mean_all mean_dim mean_dims".split(), functools.partial(write_sum, True)),
    "sum_to_shape": write_sum_to,
    **dict.fromkeys("clone lay_out laid_out_like".split(), write_clone),
    "mse_loss": write_mse,
    "cat": functools.partial(write_joined, False),
    "stack": functools.partial(write_joined, True),
    "stack_in_order": functools.partial(write_joined, True),
    "constant": write_constant,
    **dict.fromkeys("fill fill_ zero zero_".split(), write_fill),
    "copy_": write_copy,
}
