"""Compiled reflected, replicated and circular padding, in which rows are copied by tables of source indices.

The functions return plans for the functions in `kernels.nn.padding` if planes are contiguous.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...nn.padding import origins
from ..memory.copying import WORDS

Sizes = tuple[int, ...]


SIZES = Struct("rows width old_rows old_width first last")


@loops(explicit=True, plain=True)
def copy_rows(
    out: Pointer[T], x: Pointer[T], origins: Pointer[i64], sizes: Pointer[i64], start: Int, stop: Int, W: Static
) -> None:
    """Compute planes `start` to `stop` of `out`.

    For each row and each column, `origins` contains the index of its source in `x`.

    Columns from `first` to `last` have consecutive sources.
    """
    told = fields(sizes, SIZES)
    rows, width, old_rows, old_width = told.rows, told.width, told.old_rows, told.old_width
    first, last = told.first, told.last
    columns = origins + rows
    for p in range(start, stop):
        for r in range(rows):
            row = x + (p * old_rows + origins[r]) * old_width
            to = out + (p * rows + r) * width
            for c in range(first):
                to[c] = row[columns[c]]
            for c in range(first, last, W):
                inside = lanes(i32, W) < i32(last - c)
                store(to + c, load(row + (columns[first] + c - first), W, inside), inside)
            for c in range(last, width):
                to[c] = row[columns[c]]


@loops(explicit=True, plain=True)
def add_rows(
    result: Pointer[T], grad: Pointer[T], origins: Pointer[i64], sizes: Pointer[i64], start: Int, stop: Int, W: Static
) -> None:
    """Compute the transpose of `copy_rows`, which adds each row and column of `grad` to its source."""
    told = fields(sizes, SIZES)
    rows, width, old_rows, old_width = told.rows, told.width, told.old_rows, told.old_width
    first, last = told.first, told.last
    columns = origins + rows
    for p in range(start, stop):
        plane = result + p * old_rows * old_width
        for i in range(0, old_rows * old_width, W):
            store(plane + i, vector(T, W)(0), lanes(i32, W) < i32(old_rows * old_width - i))
        for r in range(rows):
            row = plane + origins[r] * old_width
            given = grad + (p * rows + r) * width
            for c in range(first, last, W):
                inside = lanes(i32, W) < i32(last - c)
                to = row + (columns[first] + c - first)
                store(to, load(to, W, inside) + load(given + c, W, inside), inside)
            for c in range(first):
                row[columns[c]] += given[c]
            for c in range(last, width):
                row[columns[c]] += given[c]


@functools.lru_cache(256)
def _tables(lengths: Sizes, padding: Sizes, mode: str) -> tuple[ndarray, ndarray, Sizes]:
    """Return the tables of source indices, the sizes that the loops require, and the sizes of a padded plane."""
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in range(len(lengths))][::-1]
    tables = [origins(length, *pair, mode) for length, pair in zip(lengths, pairs, strict=True)]
    rows = numpy.zeros(1, numpy.int64)
    for length, table in zip(lengths[:-1], tables[:-1], strict=True):
        rows = (rows[:, None] * length + table).reshape(-1)
    first = max(pairs[-1][0], 0)
    last = max(first, len(tables[-1]) - max(pairs[-1][1], 0))
    sizes = SIZES.pack(
        rows=len(rows), width=len(tables[-1]), old_rows=math.prod(lengths[:-1]), old_width=lengths[-1], first=first, last=last
    )  # fmt: skip
    return numpy.concatenate([rows, tables[-1]]), numpy.array(sizes, numpy.int64), tuple(map(len, tables))


def _fits(x: ndarray, lengths: Sizes) -> bool:
    return bool(x.flags.c_contiguous and x.size and min(lengths, default=0) > 0)


def padded(self: ndarray, padding: Sequence[int], mode: str) -> Any:
    """Return the plan of padding the last dimensions by "reflect", "replicate" or "circular"."""
    dims = len(padding) // 2
    lengths, word = self.shape[-dims:] if dims else (), WORDS.get(self.itemsize)
    if word is None or not _fits(self, lengths):
        return NotImplemented
    origins, sizes, new = _tables(lengths, tuple(padding), mode)
    if 0 in new:
        return NotImplemented
    planes, function = self.size // math.prod(lengths), copy_rows.compiled(T=word, W=_width(self))
    row = 2 * math.prod(new) * self.itemsize
    return _plan(function, planes, row, Memory((*self.shape[:-dims], *new), self.dtype), origins, sizes)


def padded_backward(grad: ndarray, self: ndarray, padding: Sequence[int], mode: str) -> Any:
    """Return the plan of the gradient of the padded array."""
    dims = len(padding) // 2
    lengths = self.shape[-dims:] if dims else ()
    if grad.dtype.char not in "fd" or not _fits(grad, lengths) or self.dtype != grad.dtype or not grad.dtype.isnative:
        return NotImplemented
    origins, sizes, new = _tables(lengths, tuple(padding), mode)
    if grad.shape != (*self.shape[: self.ndim - dims], *new):
        return NotImplemented
    planes, function = grad.size // math.prod(new), add_rows.compiled(T=type_of(grad.dtype), W=_width(grad))
    row = 3 * math.prod(new) * grad.itemsize
    return _plan(function, planes, row, Memory(self.shape, grad.dtype), origins, sizes)


def _plan(function: Any, planes: int, plane_bytes: int, result: Memory, origins: ndarray, sizes: ndarray) -> Plan:
    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        launch(function, planes, plane_bytes, address(out[0]), address(x), address(origins), address(sizes))

    return Plan([result], into=into)


def _width(x: ndarray) -> int:
    return HOST.vector_bytes // x.itemsize
