"""The NumPy interpreter of row programs for large arrays.

It computes tiles of whole rows that stay in the cache, on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import WARNINGS, off_for_rows, restore, widen
from ..kernels.runtime.parallel import PARALLEL_BYTES, TILE_BYTES, parallel_rows
from .expression import BOOL, COLUMN, ELEMENT, INPUT, Expression, is_absent

Dtype = numpy.dtype[Any]
Geometry = tuple[int, int, int]
"""Arrays with the shape (outer, length, inner), where rows lie along the middle dimension."""

SHORT = 32
"""The maximum length of rows that are placed side by side, so that vector loops run across rows."""

ROWS_BYTES = 1 << 21
"""The number of bytes of rows in one tile.

Row programs have few operations, so waiting for the interpreter lock costs more than a miss in the cache.
"""

STRIP = 256
"""The number of columns in one tile if a block of adjacent rows is too large for the cache."""

BLOCKS = 16
"""The minimum number of blocks in which sums over rows are computed.

It is the same for any number of threads, so sums do not depend on the number of threads.
"""


def dtype_of(kind: str, dtype: Dtype) -> Dtype:
    """Return the dtype of a value of this kind if numbers have `dtype`."""
    return numpy.dtype(bool) if kind == BOOL else dtype


class Tile:
    """The code of one expression for one dtype: `function(*arrays, *scalars, row_length)`, which returns a tuple."""

    def __init__(self, function: Callable[..., Any], expression: Expression, dtype: Dtype) -> None:
        self.function = function
        self.dtype = dtype
        outputs = enumerate(expression.outputs)
        self.extents = [node.extent for node in expression.outputs]
        self.sums = [number for number, node in outputs if node.extent == COLUMN and not is_absent(node)]
        self.walked = _walked(expression)


def _walked(expression: Expression) -> int:
    """Return the number of arrays that are read element by element. If there are none, count the written arrays as one."""
    nodes = expression.nodes()
    read = {item for node in nodes for item in node.operands} | set(expression.outputs)
    count = sum(node.operation == INPUT and node.extent == ELEMENT and node in read for node in nodes)
    return count or any(node.extent == ELEMENT and not is_absent(node) for node in expression.outputs)


@dataclass(slots=True)
class Run:
    """One call of a tile's code for all parts of the arrays."""

    tile: Tile
    geometry: Geometry
    inputs: list[tuple[ndarray | None, str]]
    scalars: Sequence[Any]
    outs: list[ndarray | None]
    across: bool
    sums: dict[int, list[ndarray]]


def run_rows(
    tile: Tile,
    geometry: Geometry,
    inputs: list[tuple[ndarray | None, str]],
    scalars: Sequence[Any],
    outs: list[ndarray | None],
) -> None:
    """Compute all tiles of the inputs, which are given with their extents, and add up their sums over rows."""
    _, length, inner = geometry
    run = Run(tile, geometry, inputs, scalars, outs, inner == 1 and 1 < length <= SHORT, {})
    token = WARNINGS[off_for_rows(length if inner == 1 else inner)]
    try:
        _compute(run)
    finally:
        restore(token)
    for place, number in enumerate(tile.sums):
        out: Any = outs[number]
        parts: list[Any] = [run.sums[key][place] for key in sorted(run.sums)]
        wide = numpy.dtype(numpy.float64) if out.dtype.kind == "f" else out.dtype
        total = parts[0] if len(parts) == 1 else numpy.add.reduce(numpy.array(parts, wide), 0)
        out[...] = total.reshape(out.shape)


def _compute(run: Run) -> None:
    outer, length, inner = run.geometry
    column_bytes = max(1, length * run.tile.dtype.itemsize * run.tile.walked)
    if inner == 1 or column_bytes * inner <= TILE_BYTES:
        row_bytes = column_bytes * inner

        def rows(start: int, stop: int) -> None:
            where = slice(start, stop)
            _work(run, start, where, where)

        block = _block(run, outer, row_bytes, ROWS_BYTES)
        parallel_rows(rows, outer, row_bytes, tile_rows=block, tile_bytes=ROWS_BYTES)
        return
    # One block would exceed the cache, so use tiles of columns that are wide enough for vector loops.
    width = min(STRIP, inner)
    strips = -(-inner // width)

    def columns(start: int, stop: int) -> None:
        while start < stop:
            block, strip = divmod(start, strips)
            count = min(stop - start, strips - strip)
            part = slice(strip * width, min((strip + count) * width, inner))
            where = slice(block, block + 1), slice(None), part
            _work(run, start, where, where)
            start += count

    block = _block(run, outer * strips, width * column_bytes, TILE_BYTES)
    parallel_rows(columns, outer * strips, width * column_bytes, tile_rows=block)


def _block(run: Run, rows: int, row_bytes: int, tile_bytes: int) -> int | None:
    """Return the number of rows of a tile, out of `rows` rows, or None if the number of threads may determine it."""
    if not run.tile.sums or rows * row_bytes < PARALLEL_BYTES:
        return None
    return max(1, min(-(-rows // BLOCKS), tile_bytes // row_bytes))


def _work(run: Run, key: int, elements: Any, rows: Any) -> None:
    """Compute one tile, given the `elements` and the `rows` of the arrays. Short rows are adjacent in the tile."""
    tile, across = run.tile, run.across
    parts: list[ndarray | None] = []
    for array, extent in run.inputs:
        if array is not None:
            if extent == COLUMN:
                array = array.reshape(1, -1, 1) if across else array
            else:
                array = array[elements if extent == ELEMENT else rows]
                if across:
                    array = numpy.ascontiguousarray(array.T[None])
            if array.dtype is not tile.dtype:
                array = widen(array)
        parts.append(array)
    results = tile.function(*parts, *run.scalars, run.geometry[1])
    for number, (out, result) in enumerate(zip(run.outs, results, strict=True)):
        if out is not None and number not in tile.sums:
            part = out[elements if tile.extents[number] == ELEMENT else rows]
            numpy.copyto(part.T[None] if across else part, result, casting="unsafe")
    if tile.sums:
        run.sums[key] = [results[number].reshape(-1) for number in tile.sums]
