"""Maxima and minima, with the index of their first occurrence, along rows and along columns."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from .loops import reduce_row
from .reduction import REDUCTIONS, itself, larger, smaller

_CHUNK = 1 << 15
"""The number of elements in a chunk of a longer row. They are read twice, so they should stay in the second-level cache."""

_TILE = 1024
"""The number of columns that are compared together."""

_PIECES = 32
"""The number of pieces of work that need not be divided further."""


@loops
def exceeds(x: T, best: T, MAXIMUM: Static) -> boolean:
    """Return whether an element replaces the best element so far. A NaN replaces everything except another NaN."""
    if x.type.kind == "f":
        return (not (x <= best) if MAXIMUM else not (x >= best)) & (best == best)
    return x > best if MAXIMUM else x < best


@loops
def extreme_rows(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], stride: Int, n: Int, chunk: Int,
    W: Static, COMBINE: Static, IDENTITY: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the extremum of each row of `n` elements, in chunks, and its first position in its chunk."""
    chunks = (n + chunk - 1) // chunk
    for piece in range(start, stop):
        row = piece // chunks
        begin = (piece - row * chunks) * chunk
        first = x + (row * stride + begin)
        count = minimum(chunk, n - begin)
        wanted = reduce_row(first, count, T(0), W, itself, COMBINE, IDENTITY, 1)
        i = 0
        while i + W <= count:
            if reduce_or(found(load(first + i, W), broadcast(wanted, W))):
                break
            i += W
        while i + 1 < count:
            if found(first[i], wanted):
                break
            i += 1
        values[piece] = first[i]
        places[piece] = i


@loops
def found(x: T, wanted: T) -> boolean:
    """Return whether an element equals the extremum, or both are NaN."""
    return (x == wanted) | (x != x)


@loops(plain=True)
def extreme_columns(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], rows: Int, inner: Int, chunk: Int,
    W: Static, MAXIMUM: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute, from (outer, rows, inner) to (outer, chunks, inner), the extremum of `chunk` rows and its first row."""
    best = local(T, _TILE + 64)
    where_best = local(i32, _TILE + 64)
    tiles = (inner + _TILE - 1) // _TILE
    chunks = (rows + chunk - 1) // chunk
    for piece in range(start, stop):
        column = (piece % tiles) * _TILE
        part = (piece // tiles) % chunks
        outer = piece // (tiles * chunks)
        width = minimum(inner - column, _TILE)
        count = minimum(chunk, rows - part * chunk)
        source = x + ((outer * rows + part * chunk) * inner + column)
        for row in range(count):
            line = source + row * inner
            number = i32(part * chunk + row)
            j = 0
            while j < width:
                here = lanes(i32, W) < i32(minimum(width - j, W))
                element = load(line + j, W, here)
                if row == 0:
                    store(best + j, element)
                    store(where_best + j, broadcast(number, W))
                else:
                    before = load(best + j, W)
                    taken = exceeds(element, before, MAXIMUM)
                    store(best + j, where(taken, element, before))
                    store(where_best + j, where(taken, broadcast(number, W), load(where_best + j, W)))
                j += W
        target = (outer * chunks + part) * inner + column
        for j in range(width):
            values[target + j] = best[j]
            places[target + j] = i64(where_best[j])


def extremum(name: str, x: ndarray, dim: int | None) -> Any:
    """Return the extrema of `x` along `dim`, or of all elements, and their indices.

    Without `dim`, the index is in the flattened array.

    `name` is "max" or "min". Return NotImplemented if there is no loop for the dtype.
    """
    if not x.flags.c_contiguous or x.size == 0 or x.size >= 1 << 31:
        return NotImplemented
    if dim is None:
        outer, rows, inner = 1, x.size, 1
    else:
        outer, rows, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    loop = _loop(name, x.dtype, inner == 1, HOST.vector_bytes)
    if loop is None:
        return NotImplemented
    if inner == 1:
        chunk = rows if outer >= _PIECES else min(rows, _CHUNK)
        tiles = 1
    else:
        tiles = -(-inner // _TILE)
        chunk = rows if outer * tiles >= _PIECES else min(rows, max(16, (1 << 16) // min(inner, _TILE)))
    chunks = -(-rows // chunk)
    values: ndarray = numpy.empty(outer * chunks * inner, x.dtype)
    places: ndarray = numpy.empty(outer * chunks * inner, numpy.int64)
    steps = (rows, rows, chunk) if inner == 1 else (rows, inner, chunk)
    launch(
        loop, outer * chunks * tiles, 2 * chunk * min(inner, _TILE) * x.itemsize,
        address(values), address(places), address(x), *steps,
    )  # fmt: skip
    if chunks > 1:
        values, places = values.reshape(outer, chunks, inner), places.reshape(outer, chunks, inner)
        best = values.argmax(1, keepdims=True) if name == "max" else values.argmin(1, keepdims=True)
        values, places = numpy.take_along_axis(values, best, 1), numpy.take_along_axis(places, best, 1)
        if inner == 1:
            places += best * chunk
    shape = () if dim is None else x.shape[:dim] + x.shape[dim + 1 :]
    return values.reshape(shape), places.reshape(shape)


@functools.lru_cache(64)
def _loop(name: str, dtype: Any, rows: bool, vector_bytes: int) -> Any:
    kind = type_of(dtype)
    if kind is None or kind.storage_only or dtype.kind not in "fiu":
        return None
    width = max(2, 8 * vector_bytes // max(kind.bits, 32))
    if not rows:
        return extreme_columns.compiled(T=kind, W=width, MAXIMUM=name == "max")
    identity: Any = REDUCTIONS["a" + name].identity
    if dtype.kind != "f":
        limits = numpy.iinfo(dtype)
        identity = limits.min if name == "max" else limits.max
    combination = larger if name == "max" else smaller
    return extreme_rows.compiled(
        T=kind, S=kind, W=width, COMBINE=combination, IDENTITY=int(identity) if dtype.kind != "f" else identity
    )
