"""Row programs as compiled loops over large arrays."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from struct import pack, unpack
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

ELEMENTS = 1 << 13
"""From how many elements on compiled loops repay their call."""

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
        self._functions: dict[Any, tuple[Callable[..., Any], int]] = {}

    def run(
        self,
        arrays: Sequence[ndarray | None],
        scalars: Sequence[Any],
        outs: Sequence[ndarray | None],
        geometry: tuple[int, int, int],
        compute: Dtype,
    ) -> bool:
        """Write the outputs, which lie row by row; False if NumPy is to compute."""
        if self.of_arrays or self.name in LOOPS.failures or compute.kind != "f":
            return False
        outer, length, inner = geometry
        values = self.scalar_values(*scalars, length)
        if not all(isinstance(value, int | float) for value in values):
            return False
        given = dict(zip(self.inputs, arrays, strict=True))
        operands = []
        for name in self.nodes:
            item = given[name]
            if item is None or not item.dtype.isnative:
                return False
            operands.append(numpy.ascontiguousarray(item))
        along = inner == 1
        results = [(node, out) for node, out in zip(self.expression.outputs, outs, strict=True) if out is not None]
        key = (along, tuple([item.dtype for item in operands]), tuple([out.dtype for _, out in results]))
        plan_and_function = self._functions.get(key) or self._compile(key, operands, results, compute, along)
        if plan_and_function is None:
            return False
        function, width = plan_and_function
        units = outer if along else outer * -(-inner // width)
        columns = [out for node, out in results if node.extent == COLUMN]
        block = -(-units // BLOCKS) if columns else 1
        blocks = -(-units // block)
        sums = numpy.zeros((blocks, len(columns), length), compute)
        numbers = [units, length, inner, block]
        numbers += [item.__array_interface__["data"][0] for item in (*operands, *(out for _, out in results))]
        numbers += unpack(f"{len(values)}q", pack(f"{len(values)}d", *values))
        numbers.append(sums.__array_interface__["data"][0])
        table = array("q", numbers)
        row_bytes = length * (compute.itemsize * (len(operands) + len(results)) + WEIGHT)
        launch(function, blocks, row_bytes * block * (1 if along else width), table.buffer_info()[0])
        for number, out in enumerate(columns):
            out[...] = sums[:, number].sum(0, numpy.float64 if blocks > 1 else None).reshape(out.shape)
        return True

    def _compile(
        self,
        key: Any,
        operands: Sequence[ndarray],
        results: Sequence[tuple[Node, ndarray]],
        compute: Dtype,
        along: bool,
    ) -> Any:
        from .llvm.element_types import type_of
        from .llvm.host import HOST
        from .llvm.row_loops import ACROSS, ALONG, RowArray, RowPlan, row_kernel
        from .llvm.values import CompilationError

        with HOST.lock:
            if key in self._functions or self.name in LOOPS.failures:
                return self._functions.get(key)
            try:
                inputs = [
                    RowArray(self.nodes[name], type_of(item.dtype), self.nodes[name].extent)
                    for name, item in zip(self.nodes, operands, strict=True)
                ]
                outputs = [RowArray(node, type_of(out.dtype), node.extent) for node, out in results]
                if any(item.node.kind in (BOOL, INTEGER) for item in outputs):
                    raise CompilationError("outputs of rows are numbers")
                plan = RowPlan(
                    self.expression, type_of(compute), inputs, outputs, self.scalars, ALONG if along else ACROSS
                )
                name = f"{self.name}_{compute.name}" + ("" if along else "_across")
                found = self._functions[key] = (row_kernel(name, plan, str(self.expression)), plan.width)
            except CompilationError as error:
                LOOPS.failures[self.name] = str(error)
                return None
        return found
