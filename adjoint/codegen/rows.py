"""Row programs: expressions of elements that also look at sums and extremes of the row that an element is in.

    @row_program("softmax")
    def softmax_rows(x: Array):
        exponential = xp.exp(x - row.max(x))
        return exponential / row.sum(exponential)

A row lies along one dimension of the arrays, which all have one shape. NumPy computes parts of the arrays in which that
dimension is whole, sized so that they stay in cache, on several threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import compute_dtype, is_floating, quietly, type_name, widen
from ..kernels.runtime.parallel import TILE_BYTES, parallel_rows, scratch
from ..kernels.runtime.shapes import normalize_dim
from . import source
from .expression import Tree
from .pointwise import BASE_NAMES
from .schedule import ROW
from .tracing import Parameters, trace

SHORT = 32
"""Rows up to this long are put side by side, for vector loops across rows."""

_building = threading.RLock()


def row_sum(x: ndarray, out: ndarray) -> None:
    """The sum over dimension 1, kept, of a tile of two dimensions or three."""
    if x.ndim == 2 and SHORT < x.shape[1] <= 4096:
        numpy.einsum("ij->i", x, out=out[:, 0])
    else:
        numpy.add.reduce(x, axis=1, out=out, keepdims=True)


def row_max(x: ndarray, out: ndarray) -> None:
    """The maximum over dimension 1, kept."""
    numpy.maximum.reduce(x, axis=1, out=out, keepdims=True)


def row_min(x: ndarray, out: ndarray) -> None:
    """The minimum over dimension 1, kept."""
    numpy.minimum.reduce(x, axis=1, out=out, keepdims=True)


class RowProgram:
    """A traced row program, and the code made of it so far."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name
        self.parameters = Parameters(function)
        self._tiles: dict[str, tuple[Callable[..., Any], list[bool]]] = {}

    @cached_property
    def tree(self) -> Tree:
        """What the function computes, traced when first asked for."""
        return trace(self.function, self.parameters)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters.names)}):\n{self.tree}"

    def tile(self, char: str) -> tuple[Callable[..., Any], list[bool]]:
        """The function for tiles of one dtype, and which of its registers hold one number for each row."""
        found = self._tiles.get(char)
        if found is None:
            with _building:
                namespace = dict(BASE_NAMES, row_sum=row_sum, row_max=row_max, row_min=row_min)
                arrays = ", ".join(self.parameters.arrays)
                text, registers, _ = source.tile_source("rows", self.tree, arrays, char, namespace, over_input=False)
                source.compile_source(text, f"{self.name} rows {char}", namespace)
                found = self._tiles[char] = (namespace["rows"], [kind == ROW for _, kind in registers])
        return found

    def run(self, arrays: Sequence[ndarray], dim: int) -> ndarray:
        """Compute on floating-point arrays of one shape, whose rows lie along `dim`.

        Raises:
            IndexError: if `dim` is out of range.
            NotImplementedError: if the first array is not floating-point.
        """
        result: ndarray = quietly(self._run, arrays, dim)
        return result

    def _run(self, arrays: Sequence[ndarray], dim: int) -> ndarray:
        x = arrays[0]
        dim = normalize_dim(dim, x.ndim)
        if not is_floating(x.dtype) and x.size:
            kernel = f"{self.name}_lastdim_kernel_impl" if dim == max(x.ndim - 1, 0) else f"{self.name}_kernel_impl"
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(x.dtype)}'")
        result = numpy.empty(x.shape, x.dtype)
        if x.size == 0:
            return result
        compute = compute_dtype(x.dtype)
        tile, of_rows = self.tile(compute.char)
        length = x.shape[dim] if x.ndim else 1
        inner = math.prod(x.shape[dim + 1 :])
        shape = (-1, length) if inner == 1 else (-1, length, inner)
        operands = [array.reshape(shape) for array in (*arrays, result)]
        across = inner == 1 and 1 < length <= SHORT

        def work(where: Any) -> None:
            *parts, out = [array[where] for array in operands]
            target = out
            if across:
                parts = [part.T[None] for part in parts]
            if across or compute != x.dtype:
                parts = [numpy.ascontiguousarray(widen(part)) for part in parts]
                target = scratch("row result", parts[0].shape, compute)
            size = parts[0].shape
            kept = [
                scratch(f"row {number}", (size[0], 1, *size[2:]) if of_row else size, compute)
                for number, of_row in enumerate(of_rows)
            ]
            tile(*parts, target, *kept)
            if target is not out:
                out[...] = target[0].T if across else target

        column_bytes = length * compute.itemsize * len(arrays)
        if inner == 1 or column_bytes * inner <= TILE_BYTES:
            parallel_rows(lambda start, stop: work(slice(start, stop)), len(operands[0]), column_bytes * inner)
            return result
        # Too much for the cache in one block: tiles of columns, wide enough for vector loops.
        width = min(inner, 256)
        strips = -(-inner // width)

        def columns(start: int, stop: int) -> None:
            while start < stop:
                block, strip = divmod(start, strips)
                count = min(stop - start, strips - strip)
                work((slice(block, block + 1), slice(None), slice(strip * width, (strip + count) * width)))
                start += count

        parallel_rows(columns, len(operands[0]) * strips, width * column_bytes)
        return result


def row_program(name: str) -> Callable[[Callable[..., Any]], RowProgram]:
    """Make a function of elements and rows into a program; `name` is that of PyTorch's kernel, which refuses other dtypes."""
    return lambda function: RowProgram(function, name)
