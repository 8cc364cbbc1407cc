"""The NumPy interpreter of row programs for large arrays.

It computes tiles of whole rows that stay in the cache, on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.costs import LARGE, SHORT, STEPS, TILE_BYTES
from ..kernels.runtime.floating import OFF, UNBUFFERED, WARNINGS, compute_dtype, restore
from ..kernels.runtime.parallel import parallel_rows
from .expression import COLUMN, ELEMENT, INPUT, Expression, is_absent

Dtype = numpy.dtype[Any]
Geometry = tuple[int, int, int]
"""Arrays with the shape (outer, length, inner), where rows lie along the middle dimension."""

BLOCKS = 16
"""The minimum number of blocks in which sums over rows are computed, for any number of threads."""


def _walked(expression: Expression) -> int:
    """Return the number of arrays that are read element by element. If there are none, count the written arrays as one."""
    nodes = expression.nodes()
    read = {item for node in nodes for item in node.operands} | set(expression.outputs)
    count = sum(node.operation == INPUT and node.extent == ELEMENT and node in read for node in nodes)
    return count or any(node.extent == ELEMENT and not is_absent(node) for node in expression.outputs)


def off_for_rows(length: int) -> Any:
    """Return a state that turns the warnings off, like `OFF`, and speeds up NumPy's loops over broadcast rows of this length.

    NumPy's iterator copies operands that are not contiguous into buffers, unless each row fills a buffer. Rows of a few
    hundred elements fill small buffers. Starting the loop again for such a row takes less time than copying.
    """
    return UNBUFFERED if length >= STEPS else OFF  # shorter rows gain nothing


class RowTiles:
    """The tiles of arrays of one geometry. `function(*arrays, *scalars, row_length)` returns the outputs as a tuple."""

    def __init__(self, function: Callable[..., Any], expression: Expression, dtype: Dtype, geometry: Geometry) -> None:
        outer, self.length, inner = geometry
        self.function = function
        self.dtype = dtype
        self.outputs = expression.outputs
        self.sums = [i for i, node in enumerate(self.outputs) if node.extent == COLUMN and not is_absent(node)]
        self.across = inner == 1 and 1 < self.length <= 2 * SHORT  # vector loops then run across rows
        self.warnings = off_for_rows(self.length if inner == 1 else inner)
        column_bytes = max(1, self.length * dtype.itemsize * _walked(expression))
        whole = inner == 1 or column_bytes * inner <= TILE_BYTES
        self.width = inner if whole else min(256, inner)  # columns, if a block is too large
        self.strips = -(-inner // self.width)
        self.rows = outer * self.strips
        self.row_bytes = column_bytes * self.width

    def run(
        self, inputs: list[tuple[ndarray | None, str]], scalars: Sequence[Any], outs: Sequence[ndarray | None]
    ) -> None:
        """Compute the outputs from the inputs, which are given with their extents."""
        sums: dict[int, list[ndarray]] = {}

        def compute(start: int, stop: int) -> None:
            if self.strips == 1:
                sums[start] = self._tile((slice(start, stop),), inputs, scalars, outs)
                return
            while start < stop:
                block, strip = divmod(start, self.strips)
                count = min(stop - start, self.strips - strip)
                columns = slice(strip * self.width, (strip + count) * self.width)
                where = slice(block, block + 1), slice(None), columns
                sums[start] = self._tile(where, inputs, scalars, outs)
                start += count

        tile_rows = None
        if self.sums and self.rows * self.row_bytes >= TILE_BYTES:
            tile_rows = max(1, min(-(-self.rows // BLOCKS), TILE_BYTES // self.row_bytes))
        token = WARNINGS[self.warnings]
        try:
            parallel_rows(compute, self.rows, self.row_bytes, tile_rows=tile_rows)
        finally:
            restore(token)
        for place, number in enumerate(self.sums):
            out: Any = outs[number]
            parts: list[Any] = [sums[key][place] for key in sorted(sums)]
            wide = numpy.dtype(numpy.float64) if out.dtype.kind == "f" else out.dtype
            total = parts[0] if len(parts) == 1 else numpy.add.reduce(numpy.array(parts, wide), 0)
            out[...] = total.reshape(out.shape)

    def _tile(
        self,
        where: tuple[slice, ...],
        inputs: list[tuple[ndarray | None, str]],
        scalars: Sequence[Any],
        outs: Sequence[ndarray | None],
    ) -> list[ndarray]:
        """Compute one tile, and return its sums over rows. Short rows are adjacent in the tile."""
        parts: list[ndarray | None] = []
        for array, extent in inputs:
            if array is not None:
                if extent == COLUMN:
                    array = array.reshape(1, -1, 1) if self.across else array
                else:
                    array = numpy.ascontiguousarray(array[where].T[None]) if self.across else array[where]
                array = array.astype(compute_dtype(array.dtype), copy=False)
            parts.append(array)
        results = self.function(*parts, *scalars, self.length)
        for number, (out, result) in enumerate(zip(outs, results, strict=True)):
            if out is not None and number not in self.sums:
                part = out[where]
                numpy.copyto(part.T[None] if self.across else part, result, casting="unsafe")
        return [results[number].reshape(-1) for number in self.sums]


# --- the operations on arrays, which return new arrays; values with one number per row keep dimension 1 with length 1 ---

BLOCK = 64
"""The number of rows that are added one by one before the sums of blocks are added."""

ONES: dict[str, ndarray] = {char: numpy.ones((LARGE, 1), char) for char in "fd"}
_add: Any = numpy.add.reduce
_multiply: Any = numpy.multiply.reduce
_maximum: Any = numpy.maximum.reduce
_minimum: Any = numpy.minimum.reduce


def row_sum(x: ndarray) -> Any:
    """Return the sum of each row."""
    if x.size <= LARGE and x.ndim == 2 and (ones := ONES.get(x.dtype.char)) is not None:
        return x.dot(ones[: x.shape[1]])  # in a third of the time of `add.reduce`
    return _add(x, 1, None, None, True)


def column_sum(x: ndarray) -> Any:
    """Return the sum over the rows."""
    if x.ndim == 3:
        return _add(x, (0, 2), None, None, True)
    if len(x) > 2 * BLOCK:
        whole = len(x) // BLOCK * BLOCK
        x = numpy.concatenate([_add(x[:whole].reshape(-1, BLOCK, x.shape[1]), 1), x[whole:]])
    if len(x) <= BLOCK and (ones := ONES.get(x.dtype.char)) is not None:
        return ones[: len(x)].T.dot(x)
    return _add(x, 0, None, None, True)


ROW_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "row_sum": row_sum,
    "row_prod": lambda x: _multiply(x, 1, None, None, True),
    "row_max": lambda x: _maximum(x, 1, None, None, True),
    "row_min": lambda x: _minimum(x, 1, None, None, True),
    "column_sum": column_sum,
}
