"""Compile row programs as loops over large arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
from numpy import ndarray

from ..kernels.runtime.costs import SECOND_CACHE
from .acceleration import LOOPS
from .expression import BOOL, COLUMN, ROW_LENGTH, Expression, Node, scalar_source
from .plans import Memory
from .row_tiles import BLOCKS
from .schedule import lowered, scalars_of

if TYPE_CHECKING:
    from .llvm.calls import NativeCall

SMALLEST = 64
"""The minimum size of a block of rows that are summed separately. It is the same for all numbers of threads."""

Dtype = numpy.dtype[Any]


class CompiledRows:
    """The compiled forms of one expression of a row program in one dtype."""

    def __init__(self, name: str, expression: Expression, inputs: Sequence[str], char: str) -> None:
        self.name = name
        self.expression = lowered(expression, char, decomposed=False)
        self.inputs = list(inputs)
        self.nodes = {node.value: node for node in self.expression.nodes() if node.operation == "input"}
        self.scalars = scalars_of(self.expression)
        self._functions: dict[Any, tuple[Any, int]] = {}
        self._turned: dict[Any, int] = {}
        """The maximum length of rows that are transposed so that they are adjacent, by the dtypes of the numbers."""

    def call(
        self,
        arrays: Sequence[ndarray | None],
        results: Sequence[Memory | None],
        geometry: tuple[int, int, int],
        compute: Dtype,
        parts: Sequence[int] = (),
    ) -> NativeCall | None:
        """Return the call for arrays and results like these, or None. `parts` of rows: see `row_loops`."""
        if LOOPS.has_given_up(self.name) or compute.kind != "f":
            return None
        LOOPS.load("calls", "row_loops")
        from .llvm.calls import NativeCall
        from .llvm.element_types import type_of
        from .llvm.row_plan import ACROSS, ALONG, LAYOUT, PARTED, TILE_VECTORS, TURNED, turned_length

        given = {name: arrays[self.inputs.index(name)] for name in self.nodes}
        operands = [item for item in given.values() if item is not None and item.dtype.isnative]
        if len(operands) < len(given):
            return None
        outputs = [
            (node, result.dtype)
            for node, result in zip(self.expression.outputs, results, strict=True)
            if result is not None
        ]
        outer, length, inner = geometry
        mode = ACROSS
        if parts:
            mode = PARTED
        elif inner == 1:
            numbers = compute, *[item.dtype for item in operands if item.dtype.kind not in "biu"]
            most = self._turned.get(numbers)
            if most is None:
                most = self._turned[numbers] = turned_length(self.expression, [type_of(dtype) for dtype in numbers])
            mode = TURNED if 1 < length <= most else ALONG
        if mode == TURNED:  # a group of adjacent rows is one row of the loops
            outer, length, inner = 1, length, outer
        key = (mode, tuple([item.dtype for item in operands]), tuple([dtype for _, dtype in outputs]))
        found = self._functions.get(key) or self._compile(key, operands, outputs, compute, mode)
        if found is None:
            return None
        function, width = found
        sums = [
            number
            for number, (node, item) in enumerate(zip(self.expression.outputs, results, strict=True))
            if item is not None and node.extent == COLUMN
        ]
        tile = width
        if mode == ACROSS:  # columns whose rows stay in the cache, or enough columns to read memory in order
            fits = max(SECOND_CACHE // (length * compute.itemsize), 256)
            tile *= max(1, min(fits // width, -(-inner * outer // (BLOCKS * width)), TILE_VECTORS))
        along = mode in (ALONG, PARTED)
        units = outer if along else outer * -(-inner // tile)
        block = max(-(-units // BLOCKS), SMALLEST) if sums else 1
        whole = length * parts[0] * parts[1] if parts else length
        # 8 bytes could be moved in the time of a pass.
        row_bytes = whole * (compute.itemsize * (len(operands) + len(outputs)) + 8)
        number, stretches, distance, period = parts or (1, 1, 0, 1)
        layout = LAYOUT.pack(
            units=units, length=length, inner=inner, block=block, chunk=length, tile=tile, rest=0, step=inner,
            outer_step=length * inner, place=[0] * 5, parts=number, stretches=stretches, distance=distance, period=period,
        )  # fmt: skip
        return NativeCall(
            function, -(-units // block), row_bytes * block * (1 if along else tile), layout, list(given), results,
            [*map(scalar_source, self.scalars)], constants={ROW_LENGTH: whole},
            copied=[name for name, item in given.items() if item is not None and not (item.ndim and item.flags.c_contiguous)],
            sums=sums, blocks=-(-units // block),
        )  # fmt: skip

    def _compile(
        self, key: Any, operands: Sequence[ndarray], results: Sequence[tuple[Node, Dtype]], compute: Dtype, mode: str
    ) -> Any:
        from .llvm.element_types import type_of
        from .llvm.host import HOST
        from .llvm.row_loops import row_kernel
        from .llvm.row_plan import ALONG, RowArray, RowPlan
        from .llvm.values import CompilationError

        with HOST.lock:
            if key in self._functions or LOOPS.has_given_up(self.name):
                return self._functions.get(key)
            try:
                inputs = [
                    RowArray(self.nodes[name], type_of(item.dtype), self.nodes[name].extent)
                    for name, item in zip(self.nodes, operands, strict=True)
                ]
                outputs = [RowArray(node, type_of(dtype), node.extent) for node, dtype in results]
                if any(item.node.kind == BOOL for item in outputs):
                    raise CompilationError("outputs of rows are numbers")
                plan = RowPlan(self.expression, type_of(compute), inputs, outputs, self.scalars, mode)
                name = f"{self.name}_{compute.name}" + ("" if mode == ALONG else f"_{mode}")
                found = self._functions[key] = (row_kernel(name, plan, str(self.expression)), plan.width)
            except CompilationError as error:
                LOOPS.note(self.name, error)
                return None
        return found
