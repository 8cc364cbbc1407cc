"""Row programs: expressions of elements that also look at the row that an element is in.

    @row_program()
    def layer_norm(x: Array, weight: PerColumn | None, eps: float):
        mean = row.mean(x)
        centred = x - mean
        rstd = xp.rsqrt(row.mean(centred * centred) + eps)
        normalized = centred * rstd
        return (normalized if weight is None else normalized * weight), mean, rstd

    result, mean, rstd = layer_norm.run((x, weight), -1, (1e-5,))

A row lies along one dimension of the arrays. The function has a parameter for each array: one value for each element (`Array`),
row (`PerRow`) or place in a row (`PerColumn`), or a place in the row for each row (`RowIndex`, integers). The other parameters
are scalars. What it returns becomes the outputs, each of its extent: `None` is an output that is not asked for. `row.sum(x)`,
`row.cumsum(x)`, `column.sum(x)` and what else `row` and `column` have is described in `expression`.

A program is data: `variants` are its expressions, one for each way that its control flow takes, and `choose` tells which one is
for given arguments. An interpreter sees the arrays as (outer, length, inner), with the row along the middle.

NumPy computes parts of the arrays in which that dimension is whole, sized so that they stay in cache, on several threads. Half
types are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import compute_dtype, quietly, widen
from ..kernels.runtime.parallel import TILE_BYTES, get_num_threads, parallel_rows, scratch
from ..kernels.runtime.shapes import normalize_dim
from . import compiled_rows, source
from .acceleration import LOOPS
from .compiled_rows import CompiledRows
from .expression import (
    BOOL,
    COLUMN,
    ELEMENT,
    INTEGER,
    ROW,
    ROW_LENGTH,
    ROW_SCANS,
    Expression,
    Node,
    Tree,
    is_absent,
    leaves,
)
from .pointwise import BASE_NAMES
from .row_functions import STRAIGHT_FUNCTIONS, TILE_FUNCTIONS
from .schedule import Pool
from .tracing import Parameters, trace

SHORT = 32
"""Rows up to this long are put side by side, for vector loops across rows."""

SMALL = 1 << 13
"""Elements up to which no tiles are cut."""

SCANNED_ROWS = 512
"""Rows whose running extremes are computed in one call: NumPy does not let go of the interpreter lock for fewer."""

STRIP = 256
"""Columns in one tile, where a block of rows side by side is too much for the cache."""

SCANNED_STRIP = 4096
"""The same for scans, which make one call for each place in a row."""

Dtype = numpy.dtype[Any]
_BOOL, _INT64 = numpy.dtype(bool), numpy.dtype(numpy.int64)

_building = threading.RLock()


@dataclass(frozen=True, slots=True)
class Tile:
    """The function for tiles of one expression and dtype: `function(*arrays, *scalars, row_length, *outs, *registers)`."""

    function: Callable[..., Any]
    registers: list[Pool]


class RowProgram:
    """A traced row program, and the code made of it so far."""

    def __init__(self, function: Callable[..., Any], refuse: Refusing | None) -> None:
        self.function = function
        self.name = function.__name__
        self.refuse = refuse
        self.parameters = Parameters(function)
        self._tiles: dict[tuple[int, str], Tile] = {}
        self._straight: dict[tuple[int, str], Callable[..., Any] | None] = {}
        self._loops: dict[tuple[int, str], CompiledRows] = {}

    @cached_property
    def tree(self) -> Tree:
        """What the function computes, traced when first asked for."""
        return trace(self.function, self.parameters)

    @cached_property
    def variants(self) -> list[Expression]:
        """The expressions of the tree, from its first branch to its last."""
        return list(leaves(self.tree))

    @cached_property
    def choose(self) -> Callable[..., int]:
        """A function of all arguments, arrays first, that returns the number of the variant to compute, or refuses."""
        namespace = dict(BASE_NAMES)
        names = [*self.parameters.arrays, *self.parameters.scalars]
        text = source.choice_source("choose", self.tree, ", ".join(names), namespace)
        source.compile_source(text, f"{self.name} choice", namespace)
        chosen: Callable[..., int] = namespace["choose"]
        return chosen

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters.names)}):\n{self.tree}"

    @property
    def _arguments(self) -> list[str]:
        return [*self.parameters.arrays, *self.parameters.scalars, ROW_LENGTH]

    def tile(self, variant: int, char: str) -> Tile:
        """The function for tiles of one dtype."""
        found = self._tiles.get((variant, char))
        if found is None:
            with _building:
                namespace = BASE_NAMES | TILE_FUNCTIONS
                text, registers = source.row_tile_source(
                    "rows", self.variants[variant], ", ".join(self._arguments), char, namespace
                )
                source.compile_source(text, f"{self.name} rows {variant} {char}", namespace)
                found = self._tiles[variant, char] = Tile(namespace["rows"], [pool for _, pool in registers])
        return found

    def straight(self, variant: int, char: str) -> Callable[..., Any] | None:
        """The function for small arrays of one dtype, if there is one for each operation."""
        key = variant, char
        if key not in self._straight:
            with _building:
                expression = self.variants[variant]
                namespace = BASE_NAMES | STRAIGHT_FUNCTIONS
                made = None
                if all(node.operation in STRAIGHT_FUNCTIONS for node in expression.nodes() if source.is_of_rows(node)):
                    text = source.row_straight_source("rows", expression, ", ".join(self._arguments), char, namespace)
                    source.compile_source(text, f"{self.name} small rows {variant} {char}", namespace)
                    made = namespace["rows"]
                self._straight[key] = made
        return self._straight[key]

    def _compiled(self, variant: int, char: str) -> CompiledRows:
        """The compiled loops of one dtype."""
        found = self._loops.get((variant, char))
        if found is None:
            arrays, scalars = self.parameters.arrays, self.parameters.scalars
            made = CompiledRows(self.name, self.variants[variant], arrays, scalars, char)
            found = self._loops.setdefault((variant, char), made)
        return found

    def run(
        self,
        arrays: Sequence[ndarray | None],
        dim: int,
        scalars: Sequence[Any] = (),
        *,
        shape: tuple[int, ...] | None = None,
    ) -> Any:
        """Compute on arrays whose rows lie along `dim`: the output, or a tuple of them.

        Arrays of elements all have `shape`, which is that of the first one unless it is given; those of rows have as many
        elements as there are rows, in their order, those of columns as many as a row. Outputs of elements have the dtype of the
        first array, others that in which is computed; those of rows have `shape`, but length 1 along `dim`, those of columns have
        one dimension. If there are no elements, other outputs are zeros.

        Raises:
            IndexError: if `dim` is out of range.
            NotImplementedError: if the program refuses the dtype.
        """
        return quietly(self._run, arrays, dim, scalars, shape)

    def _run(
        self, arrays: Sequence[ndarray | None], dim: int, scalars: Sequence[Any], shape: tuple[int, ...] | None
    ) -> Any:
        extents = self.parameters.extents.values()
        if shape is None:
            shape = next(
                a.shape for a, extent in zip(arrays, extents, strict=True) if extent == ELEMENT and a is not None
            )
        first: Any = arrays[0]
        dim = normalize_dim(dim, len(shape))
        if self.refuse is not None:
            self.refuse(first, dim)
        dtype, compute = first.dtype, compute_dtype(first.dtype)
        variant = self.choose(*arrays, *scalars)
        length = shape[dim] if shape else 1
        geometry = math.prod(shape[:dim]), length, math.prod(shape[dim + 1 :])
        size = math.prod(geometry)
        outputs = self.variants[variant].outputs
        if (
            0 < size <= SMALL
            and not LOOPS.every_size
            and compute is dtype
            and (function := self.straight(variant, compute.char)) is not None
        ):
            views = [_view(a, extent, geometry) for a, extent in zip(arrays, extents, strict=True)]
            results = function(*views, *scalars, length)
            return _returned([
                None if is_absent(node) else _shaped(result, node.extent, shape, dim)
                for node, result in zip(outputs, results, strict=True)
            ])  # fmt: skip
        if size and LOOPS.takes(size, compiled_rows.ELEMENTS):
            results = [_allocated(node, shape, dim, dtype, compute) for node in outputs]
            if self._compiled(variant, compute.char).run(arrays, scalars, results, geometry, compute):
                return _returned(results)
        run = _Run(self.tile(variant, compute.char), compute, geometry, scalars)
        run.inputs = [(_view(a, extent, geometry), extent) for a, extent in zip(arrays, extents, strict=True)]
        results = [_allocated(node, shape, dim, dtype, compute) for node in outputs]
        if size:
            scans = {node.operation for node in self.variants[variant].nodes()} & ROW_SCANS
            views = [_view(a, node.extent, geometry) for node, a in zip(outputs, results, strict=True)]
            run.compute(outputs, views, scans)
        return _returned(results)


Refusing = Callable[[ndarray, int], None]
"""What raises an error for the dtypes that a program is not for, given the first array and the dimension of its rows."""


def row_program(refuse: Refusing | None = None) -> Callable[[Callable[..., Any]], RowProgram]:
    """Make a function of elements and rows into a program."""
    return lambda function: RowProgram(function, refuse)


# --- arguments and results ------------------------------------------------------------------------------------


def _returned(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _view(array: ndarray | None, extent: str, geometry: tuple[int, int, int]) -> ndarray | None:
    """An array with its rows along dimension 1, of two dimensions, or of three if something lies below the row."""
    if array is None:
        return None
    outer, length, inner = geometry
    if extent == ROW:
        outer, length, inner = outer, 1, inner
    elif extent == COLUMN:
        outer, length, inner = 1, length, 1
    return array.reshape((outer, length) if geometry[2] == 1 else (outer, length, inner))


def _shaped(array: ndarray, extent: str, shape: tuple[int, ...], dim: int) -> ndarray:
    if extent == COLUMN:
        return array.reshape(-1)
    return array.reshape(shape if extent == ELEMENT else (*shape[:dim], 1, *shape[dim + 1 :]) if shape else ())


def _dtype(node: Node, dtype: Dtype) -> Dtype:
    return {BOOL: _BOOL, INTEGER: _INT64}.get(node.kind, dtype)


def _allocated(node: Node, shape: tuple[int, ...], dim: int, dtype: Dtype, compute: Dtype) -> ndarray | None:
    if is_absent(node):
        return None
    if node.extent == ELEMENT:
        return numpy.empty(shape, _dtype(node, dtype))
    if node.extent == COLUMN:
        return numpy.zeros(shape[dim] if shape else 1, _dtype(node, compute))
    return numpy.zeros((*shape[:dim], 1, *shape[dim + 1 :]) if shape else (), _dtype(node, compute))


# --- tiles ----------------------------------------------------------------------------------------------------


class _Run:
    """One call of a program in tiles."""

    inputs: list[tuple[ndarray | None, str]]

    def __init__(self, tile: Tile, compute: Dtype, geometry: tuple[int, int, int], scalars: Sequence[Any]) -> None:
        self.tile = tile
        self.dtype = compute
        self.geometry = geometry
        self.scalars = scalars
        self.across = geometry[2] == 1 and 1 < geometry[1] <= SHORT

    def compute(self, nodes: Sequence[Node], outs: list[ndarray | None], scans: set[str]) -> None:
        """Compute all tiles, and add up what they have summed over rows."""
        self.nodes, self.outs = nodes, outs
        self.sums: dict[Any, list[ndarray | None]] = {}
        outer, length, inner = self.geometry
        elements = sum(extent == ELEMENT for _, extent in self.inputs if _ is not None)
        column_bytes = length * self.dtype.itemsize * max(elements, 1)
        if inner == 1 or column_bytes * inner <= TILE_BYTES:
            row_bytes = column_bytes * inner
            if inner == 1 and not scans.isdisjoint(("row_cummax", "row_cummin")):
                row_bytes = min(row_bytes, TILE_BYTES // SCANNED_ROWS)
            parallel_rows(lambda start, stop: self.work(start, slice(start, stop)), outer, row_bytes)
        else:
            width = STRIP
            if scans:
                width = max(STRIP, min(SCANNED_STRIP, inner if outer > 1 else -(-inner // get_num_threads())))
            self._strips(column_bytes, min(inner, width))
        for number, (node, out) in enumerate(zip(nodes, outs, strict=True)):
            if out is not None and node.extent == COLUMN:
                parts: list[Any] = [self.sums[key][number] for key in sorted(self.sums)]
                out[...] = parts[0] if len(parts) == 1 else numpy.add.reduce(parts, 0, _wide(out.dtype))

    def _strips(self, column_bytes: int, width: int) -> None:
        """Too much for the cache in one block: tiles of columns, wide enough for vector loops."""
        outer, _, inner = self.geometry
        strips = -(-inner // width)

        def columns(start: int, stop: int) -> None:
            while start < stop:
                block, strip = divmod(start, strips)
                count = min(stop - start, strips - strip)
                where = slice(block, block + 1), slice(None), slice(strip * width, (strip + count) * width)
                self.work(start, where)
                start += count

        parallel_rows(columns, outer * strips, width * column_bytes)

    def work(self, key: int, where: Any) -> None:
        """Compute the part of the arrays at `where`."""
        size: Any = None
        parts: list[ndarray | None] = []
        for array, extent in self.inputs:
            part = None if array is None else self._part(array, extent, where)
            if part is not None and part.dtype.kind in "fV" and part.dtype != self.dtype:
                part = widen(part)
            if part is not None and self.across and extent == ELEMENT:
                part = numpy.ascontiguousarray(part)
            parts.append(part)
        size = self._size(where)
        shapes = {ELEMENT: size, ROW: (size[0], 1, *size[2:]), COLUMN: (1, size[1], *(1,) * (len(size) - 2))}
        targets: list[ndarray | None] = []
        written = []
        for number, (node, out) in enumerate(zip(self.nodes, self.outs, strict=True)):
            if out is None:
                targets.append(None)
                continue
            dtype = _dtype(node, self.dtype)
            if node.extent == COLUMN:
                targets.append(numpy.empty(shapes[COLUMN], dtype))
                continue
            part = self._part(out, node.extent, where)
            target = part
            if out.dtype != dtype or (self.across and node.extent == ELEMENT):
                target = scratch(f"row out {number}", shapes[node.extent], dtype)
                written.append((part, target))
            targets.append(target)
        kept = [
            scratch(f"row {number}", shapes[extent], {BOOL: _BOOL, INTEGER: _INT64}.get(kind, self.dtype))
            for number, (kind, extent) in enumerate(self.tile.registers)
        ]
        self.tile.function(*parts, *self.scalars, self.geometry[1], *targets, *kept)
        for part, target in written:
            numpy.copyto(part, target, casting="unsafe")
        if any(node.extent == COLUMN for node in self.nodes):
            self.sums[key] = [
                target.reshape(out.shape) if target is not None and out is not None and node.extent == COLUMN else None
                for node, out, target in zip(self.nodes, self.outs, targets, strict=True)
            ]

    def _part(self, array: ndarray, extent: str, where: Any) -> ndarray:
        """The part of an array, as the tile sees it: short rows stand side by side."""
        if extent == COLUMN:
            return array.reshape(1, -1, 1) if self.across else array
        part = array[where if extent == ELEMENT or not isinstance(where, tuple) else (where[0], slice(None), where[2])]
        return part.T[None] if self.across else part

    def _size(self, where: Any) -> tuple[int, ...]:
        _, length, inner = self.geometry
        if isinstance(where, tuple):
            return 1, length, min(where[2].stop, inner) - where[2].start
        rows = where.stop - where.start
        if self.across:
            return 1, length, rows
        return (rows, length) if inner == 1 else (rows, length, inner)


def _wide(dtype: Dtype) -> Dtype:
    """The dtype in which the sums of tiles are added up."""
    return numpy.dtype(numpy.float64) if dtype.kind == "f" else dtype
