"""Row programs as compiled loops over large arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray

from .acceleration import LOOPS
from .expression import (
    BOOL,
    COLUMN,
    CONSTANT,
    INTEGER,
    ROW_LENGTH,
    ROW_SCANS,
    SCALAR,
    Expression,
    Node,
    scalar_source,
)
from .llvm.launch import launch
from .schedule import lowered

BLOCKS = 16
"""Into how many blocks the rows are cut whose sums are taken apart: always the same, so that sums do not depend on threads."""

WEIGHT = 8
"""How many bytes are moved in the time that one walk computes with one element."""


Dtype = numpy.dtype[Any]


class CompiledRows:
    """What has been compiled of one expression of a row program in one dtype."""

    def __init__(
        self, name: str, expression: Expression, inputs: Sequence[str], parameters: Sequence[str], char: str
    ) -> None:
        self.name = name
        self.expression = lowered(expression, char, decomposed=False)
        self.inputs = list(inputs)
        self.nodes = {node.value: node for node in self.expression.nodes() if node.operation == "input"}
        operations = {node.operation for node in self.expression.nodes()}
        self.of_arrays = not operations.isdisjoint(ROW_SCANS - {"row_cumsum", "row_cumprod"})
        """Whether it has a scan that is written for NumPy's arrays alone."""
        found: dict[Node, None] = {}
        for node in self.expression.nodes():
            if node.kind != SCALAR:
                scalars = [item for item in node.operands if item.kind == SCALAR and item.operation != CONSTANT]
                found.update(dict.fromkeys(scalars))
        self.scalars = list(found)
        names = ", ".join([*parameters, ROW_LENGTH])
        values = "".join(f"{scalar_source(node)}, " for node in self.scalars)
        self.scalar_values: Callable[..., tuple[Any, ...]] = eval(f"lambda {names}: ({values})")
        self._functions: dict[Any, tuple[Any, int]] = {}

    def call(
        self,
        arrays: Sequence[ndarray | None],
        results: Sequence[tuple[tuple[int, ...], Dtype] | None],
        geometry: tuple[int, int, int],
        compute: Dtype,
    ) -> RowCall | None:
        """How arrays like these are worked through, with results of these shapes and dtypes; None if NumPy is to compute."""
        if self.of_arrays or LOOPS.has_given_up(self.name) or compute.kind != "f":
            return None
        from .llvm.element_types import type_of
        from .llvm.row_loops import ACROSS, ALONG, TURNED, turned_length

        places = [self.inputs.index(name) for name in self.nodes]
        given = [arrays[place] for place in places]
        operands = [item for item in given if item is not None and item.dtype.isnative]
        if len(operands) < len(given):
            return None
        outputs = [
            (node, result[1])
            for node, result in zip(self.expression.outputs, results, strict=True)
            if result is not None
        ]
        outer, length, inner = geometry
        mode = ACROSS
        if inner == 1:
            numbers = [compute, *(item.dtype for item in operands if item.dtype.kind not in "biu")]
            most = turned_length(self.expression, [type_of(dtype) for dtype in numbers])
            mode = TURNED if 1 < length <= most else ALONG
        if mode == TURNED:  # a group of rows side by side is what lies below one row
            geometry = (1, length, outer)
        key = (mode, tuple([item.dtype for item in operands]), tuple([dtype for _, dtype in outputs]))
        found = self._functions.get(key) or self._compile(key, operands, outputs, compute, mode)
        if found is None:
            return None
        copied = [number for number, item in enumerate(operands) if not item.flags.c_contiguous or not item.ndim]
        columns = [number for number, (node, _) in enumerate(outputs) if node.extent == COLUMN]
        loops = self.scalar_values, len(self.scalars), *found
        return RowCall(loops, places, copied, results, columns, geometry, compute, mode == ALONG)

    def _compile(
        self,
        key: Any,
        operands: Sequence[ndarray],
        results: Sequence[tuple[Node, Dtype]],
        compute: Dtype,
        mode: str,
    ) -> Any:
        from .llvm.element_types import type_of
        from .llvm.host import HOST
        from .llvm.row_loops import ALONG, RowArray, RowPlan, row_kernel
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
                if any(item.node.kind in (BOOL, INTEGER) for item in outputs):
                    raise CompilationError("outputs of rows are numbers")
                plan = RowPlan(self.expression, type_of(compute), inputs, outputs, self.scalars, mode)
                name = f"{self.name}_{compute.name}" + ("" if mode == ALONG else f"_{mode}")
                found = self._functions[key] = (row_kernel(name, plan, str(self.expression)), plan.width)
            except CompilationError as error:
                LOOPS.note(self.name, error)
                return None
        return found


class RowCall:
    """How arrays of certain shapes, strides and dtypes are worked through by one compiled function."""

    __slots__ = (
        "_block_bytes", "_blocks", "_columns", "_compute", "_copied", "_function", "_length", "_places", "_results",
        "_scalar_values", "_table_address", "_tables",
    )  # fmt: skip

    def __init__(
        self,
        loops: tuple[Callable[..., tuple[Any, ...]], int, Any, int],
        places: list[int],
        copied: list[int],
        results: Sequence[tuple[tuple[int, ...], Dtype] | None],
        columns: list[int],
        geometry: tuple[int, int, int],
        compute: Dtype,
        along: bool,
    ) -> None:
        from .llvm.calls import CallTables

        scalar_values, scalars, function, width = loops
        outer, length, inner = geometry
        units = outer if along else outer * -(-inner // width)
        block = -(-units // BLOCKS) if columns else 1
        arrays = len(places) + sum(result is not None for result in results)
        row_bytes = length * (compute.itemsize * arrays + WEIGHT)
        self._scalar_values = scalar_values
        self._function = function
        self._places = places
        self._copied = copied
        self._results = results
        self._columns = columns
        self._length = length
        self._compute = compute
        self._blocks = -(-units // block)
        self._block_bytes = row_bytes * block * (1 if along else width)
        self._tables = CallTables([units, length, inner, block], arrays + bool(columns), scalars, "d")

    def run(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Any:
        """The results, None for those that are not asked for; NotImplemented if the scalars are no numbers."""
        operands = [arrays[place] for place in self._places]
        for number in self._copied:
            operands[number] = _row_major(operands[number])
        results = [None if result is None else numpy.empty(*result) for result in self._results]
        outs = [out for out in results if out is not None]
        operands += outs
        if self._columns:
            sums = numpy.zeros((self._blocks, len(self._columns), self._length), self._compute)
            operands.append(sums)
        try:
            table = self._tables.make(operands, self._scalar_values(*scalars, self._length))
        except (OverflowError, struct.error):
            return NotImplemented
        launch(self._function, self._blocks, self._block_bytes, self._tables.address(table))
        for order, number in enumerate(self._columns):
            if LOOPS.run("reduce.reduction.add_blocks", sums, order, outs[number]) is NotImplemented:
                outs[number][...] = sums[:, order].sum(0, numpy.float64).reshape(outs[number].shape)
        return results


def _row_major(array: ndarray) -> ndarray:
    """A copy with its elements row by row."""
    copy = numpy.empty(array.shape, array.dtype)
    if LOOPS.run("memory.copying.copy_into", copy, array) is NotImplemented:
        numpy.copyto(copy, array)
    return copy
