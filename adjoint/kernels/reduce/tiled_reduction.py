"""Reductions of large arrays: one pass over memory, several threads, partial sums that keep float32 accurate.

NumPy reduces short rows, and columns of short rows, one element at a time. Here the array is brought into one of two
shapes, rows or columns, in which its loops run at the speed of memory. Operations must be associative and commutative.
"""

import numpy
from numpy import ndarray

from ...codegen.costs import THREADED
from ..runtime.parallel import get_num_threads, parallel_rows

_WIDE = 2048  # columns of a wide row: long enough for vector loops, short enough for the first-level cache
_BLOCK = 512  # wide rows accumulated into one partial result
_RUN = 1024  # elements summed in one run; the partial sums of runs are added pairwise
_SHORT = 8  # rows up to this long are reduced column by column


def reduce_tiled(ufunc: numpy.ufunc, x: ndarray, dims: tuple[int, ...], keepdim: bool) -> ndarray:
    """`ufunc.reduce(x, dims, keepdims=keepdim)` of a large array for `add`, `multiply`, `maximum` or `minimum`."""
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    by_stride = x.transpose(order)
    if not by_stride.flags.c_contiguous:
        return numpy.asarray(ufunc.reduce(x, dims, keepdims=keepdim))
    lengths, reduced = _merge(by_stride.shape, [axis in dims for axis in order])
    flat = _reduce_groups(ufunc, by_stride.reshape(lengths), reduced)
    kept = [axis for axis in order if axis not in dims]
    result = flat.reshape([x.shape[axis] for axis in kept]).transpose(numpy.argsort(kept))
    return numpy.expand_dims(result, dims) if keepdim else result


def _merge(shape: tuple[int, ...], reduced: list[bool]) -> tuple[list[int], list[bool]]:
    """Neighbouring axes that share a fate become one axis."""
    lengths: list[int] = []
    fates: list[bool] = []
    for length, fate in zip(shape, reduced, strict=True):
        if length == 1:
            continue
        if fates and fates[-1] == fate:
            lengths[-1] *= length
        else:
            lengths.append(length)
            fates.append(fate)
    return lengths, fates


def _reduce_groups(ufunc: numpy.ufunc, x: ndarray, reduced: list[bool]) -> ndarray:
    """Reduce a contiguous array whose axes alternate between kept and reduced."""
    if len(reduced) > 1 and reduced[-1]:
        x = _reduce_rows(ufunc, x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])
        reduced = reduced[:-1]
    if reduced in ([True], [True, False]):
        return _reduce_columns(ufunc, x.reshape(x.shape[0], -1))
    if reduced == [False, True, False] and x.size >= THREADED:
        return _reduce_middle(ufunc, x)
    return numpy.asarray(ufunc.reduce(x, tuple(axis for axis, fate in enumerate(reduced) if fate)))


def _reduce_columns(ufunc: numpy.ufunc, x: ndarray) -> ndarray:
    """Reduce (rows, columns) to (columns,): rows are glued into wide ones, wide ones combined by several threads."""
    rows, columns = x.shape
    if columns >= 4 * _WIDE and rows <= _BLOCK:
        result = numpy.empty(columns, x.dtype)

        def reduce_tile(start: int, stop: int) -> None:
            ufunc.reduce(x[:, start:stop], 0, None, result[start:stop])

        parallel_rows(reduce_tile, columns, rows * x.itemsize)
        return result
    glue = max(1, _WIDE // columns)
    wide_rows = rows // glue
    if wide_rows < 2:
        return numpy.asarray(ufunc.reduce(x, 0))
    block = max(2, min(wide_rows, _BLOCK, -(-wide_rows // (2 * get_num_threads()))))
    wide = x[: wide_rows * glue].reshape(wide_rows, glue * columns)
    n_blocks = -(-wide_rows // block)
    partial = numpy.empty((n_blocks, glue * columns), x.dtype)

    def combine(start: int, stop: int) -> None:
        for i in range(start, stop):
            ufunc.reduce(wide[i * block : (i + 1) * block], 0, None, partial[i])

    parallel_rows(combine, n_blocks, block * wide.itemsize * wide.shape[1])
    result = ufunc.reduce(ufunc.reduce(partial, 0).reshape(glue, columns), 0)
    if wide_rows * glue < rows:
        result = ufunc(result, ufunc.reduce(x[wide_rows * glue :], 0))
    return numpy.asarray(result)


def _reduce_middle(ufunc: numpy.ufunc, x: ndarray) -> ndarray:
    """Reduce (outer, middle, inner) to (outer, inner)."""
    outer, middle, inner = x.shape
    result = numpy.empty((outer, inner), x.dtype)
    if inner < 64 and middle * inner >= _WIDE:
        for i in range(outer):
            result[i] = _reduce_columns(ufunc, x[i])
        return result

    def combine(start: int, stop: int) -> None:
        ufunc.reduce(x[start:stop], 1, None, result[start:stop])

    parallel_rows(combine, outer, middle * inner * x.itemsize)
    return result


def _reduce_rows(ufunc: numpy.ufunc, x: ndarray) -> ndarray:
    """Reduce (rows, columns) to (rows,)."""
    rows, columns = x.shape
    if rows == 1:
        return _reduce_columns(ufunc, x.reshape(-1, 1))
    result = numpy.empty(rows, x.dtype)
    if columns <= _SHORT:

        def combine(start: int, stop: int) -> None:
            tile, out = x[start:stop], result[start:stop]
            ufunc(tile[:, 0], tile[:, 1], out=out)
            for column in range(2, columns):
                ufunc(out, tile[:, column], out=out)

    elif ufunc is numpy.add:

        def combine(start: int, stop: int) -> None:
            _sum_rows(x[start:stop], result[start:stop])

    else:

        def combine(start: int, stop: int) -> None:
            ufunc.reduce(x[start:stop], 1, None, result[start:stop])

    # At least a megabyte a call: there is one pass, so nothing is gained by staying in cache.
    parallel_rows(combine, rows, columns * x.itemsize // 4)
    return result


def _sum_rows(x: ndarray, out: ndarray) -> None:
    """Sum each row by runs, whose vectorised sums `einsum` makes, and add the partial sums."""
    columns = x.shape[1]
    if columns <= 2 * _RUN:
        numpy.einsum("ij->i", x, out=out)
        return
    runs = columns // _RUN
    partial = numpy.einsum("ijk->ij", x[:, : runs * _RUN].reshape(len(x), runs, _RUN))
    numpy.add.reduce(partial, 1, None, out)  # type: ignore[call-overload]
    if runs * _RUN < columns:
        out += numpy.einsum("ij->i", x[:, runs * _RUN :])
