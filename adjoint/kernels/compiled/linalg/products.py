"""Products of matrices, and of stacks of matrices, in blocks; see `product_blocks`."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import address, f32, f64
from ....codegen.llvm.launch import launch
from ...runtime.parallel import get_num_threads, scratch
from .product_blocks import ADDED, FRESH, OFFSET, multiply
from .tiles import VECTORS, tile_rows

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}

_PANEL_BYTES = 24 << 10
"""So much of a panel stays in the first-level cache while rows pass."""

_BLOCK_BYTES = 384 << 10
"""So much of all panels stays in the second-level cache."""

_ROWS = 128
"""So many rows pass a panel, then the next one: their elements stay in the second-level cache as well."""

_PARALLEL = 1 << 19
"""From so many multiplications on, threads share a product."""

_READING, _PACKING = 16, 24
"""To read an element from memory, and to pack it, takes about as long as so many multiplications."""

_MULTIPLICATIONS_PER_BYTE = 8
"""How many multiplications take as long as one byte of the memory by which work is measured."""


@functools.lru_cache(maxsize=1024)
def _plan(
    count: int, rows: int, depth: int, columns: int, packs_rows: bool, char: str, threads: int
) -> tuple[Any, ...]:
    """The compiled kernel; the numbers that it takes from `rows` to `shares`; the elements that a share packs."""
    kind = _TYPES[char]
    item = numpy.dtype(char).itemsize
    lanes, tile = HOST.vector_bytes // item, tile_rows(HOST.vector_bytes)
    panel = VECTORS * lanes
    most = max(_PANEL_BYTES // (panel * item) // 8, 1) * 8
    deep = _rounded(-(-depth // -(-depth // most)), 8)
    if count * rows * depth * columns < _PARALLEL:
        threads = 1
    split = 1 if count >= 4 * threads else threads
    part = min(
        (
            (_rounded(-(-rows // (split // across)), tile), _rounded(-(-columns // across), panel))
            for across in range(1, split + 1)
            if split % across == 0
        ),
        key=lambda part: (
            part[0] * part[1] + (_READING + _PACKING) * part[1] + (_READING + _PACKING * packs_rows) * part[0]
        ),
    )
    parts = count * -(-rows // part[0]) * -(-columns // part[1])
    shares = 1 if threads == 1 else min(parts, threads if split > 1 else 4 * threads)
    wide = min(part[1], max(_BLOCK_BYTES // (deep * item) // panel, 1) * panel)
    tall = min(part[0], _ROWS)
    function = multiply.compiled(T=kind, W=lanes, R=tile)
    return function, (rows, depth, columns, *part, tall, deep, wide, shares), deep * (wide + tall * packs_rows)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def product(a: Array, b: Array, added: Array | None = None, result: Array | None = None) -> Any:
    """`a @ b`, of matrices or of stacks of as many; plus `added`, a vector, in each row; or added to `result`."""
    kind = a.dtype
    if kind.char not in _TYPES or b.dtype is not kind or a.ndim != b.ndim or not (a.flags.aligned and b.flags.aligned):
        return NotImplemented
    item = kind.itemsize
    count = 1 if a.ndim == 2 else len(a)
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if min(count, rows, depth, columns) == 0:
        return NotImplemented
    a, b = _stepwise(a), _stepwise(b)
    a_row, a_column = a.strides[-2] // item, 1 if depth == 1 else a.strides[-1] // item
    b_row, b_column = b.strides[-2] // item, 1 if columns == 1 else b.strides[-1] // item
    begins = FRESH if result is None else ADDED
    if added is not None:
        if added.dtype is not kind or added.strides != (item,) or result is not None:
            return NotImplemented
        begins = OFFSET
    if result is None:
        result = numpy.empty((*a.shape[:-1], columns), kind)
    function, sizes, room = _plan(count, rows, depth, columns, a_column != 1, kind.char, get_num_threads())
    shares = sizes[-1]
    packs = b_column != 1 or columns % (VECTORS * HOST.vector_bytes // item) != 0 or rows > 64
    memory = scratch("matrix_product", (shares * room,), kind)
    launch(
        function, shares, count * rows * depth * columns // shares // _MULTIPLICATIONS_PER_BYTE if shares > 1 else 0,
        address(result), 0 if count == 1 else result.strides[0] // item, result.strides[-2] // item,
        address(a), 0 if count == 1 else a.strides[0] // item, a_row, a_column,
        address(b), 0 if count == 1 else b.strides[0] // item, b_row, b_column, packs,
        0 if added is None else address(added), begins, address(memory), room, count, *sizes,
    )  # fmt: skip
    return result


def _stepwise(array: Array) -> Array:
    """The array, or a copy, in whose matrices the elements of a row or those of a column are contiguous."""
    if array.itemsize in array.strides[-2:] and not any(step % array.itemsize for step in array.strides):
        return array
    return numpy.ascontiguousarray(array)
