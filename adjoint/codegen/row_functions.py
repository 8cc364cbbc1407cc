"""The operations of row programs on NumPy arrays, both for tiles and for small arrays.

Rows lie along dimension 1 of two or three dimensions. Values with one number per row keep this dimension with length 1.
For tiles, the result is written into the last argument. If this argument is missing, a new array is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.parallel import scratch

BLOCK = 64
"""The number of rows that are added one by one before the sums of blocks are added."""

_ONES: dict[str, ndarray] = {char: numpy.ones((8192, 1), char) for char in "fd"}
_maximum: Any = numpy.maximum.reduce
_minimum: Any = numpy.minimum.reduce
_FLOAT64 = numpy.dtype(numpy.float64)
_COMPLEX128 = numpy.dtype(numpy.complex128)


def row_sum(x: ndarray, out: ndarray) -> None:
    """Return the sum of each row."""
    numpy.add.reduce(x, axis=1, out=out, keepdims=True)


def row_max(x: ndarray, out: ndarray) -> None:
    """Return the greatest element of each row."""
    numpy.maximum.reduce(x, axis=1, out=out, keepdims=True)


def row_min(x: ndarray, out: ndarray) -> None:
    """Return the smallest element of each row."""
    numpy.minimum.reduce(x, axis=1, out=out, keepdims=True)


def row_take(x: ndarray, index: ndarray, out: ndarray) -> None:
    """Return the element of each row at its index. `x` may be one row that is used for all indices."""
    if x.size == x.shape[1]:
        numpy.take(x.reshape(-1), index, out=out, mode="clip")
    else:
        out[...] = numpy.take_along_axis(x, index, 1)


def row_put(value: ndarray, index: ndarray, out: ndarray) -> None:
    """Return rows that contain a number at the index of each row and 0 elsewhere."""
    out.fill(0)
    numpy.put_along_axis(out, index, value, 1)


def row_index(out: ndarray) -> None:
    """Return the positions in a row."""
    out[...] = numpy.arange(out.shape[1]).reshape(out.shape)


def column_sum(x: ndarray, out: ndarray) -> None:
    """Return the sum over the rows of the tile."""
    if x.ndim == 3:
        numpy.add.reduce(x, axis=(0, 2), out=out, keepdims=True)
        return
    whole = len(x) // BLOCK * BLOCK
    if whole <= BLOCK:
        numpy.add.reduce(x, axis=0, out=out, keepdims=True)
        return
    partial = numpy.add.reduce(x[:whole].reshape(-1, BLOCK, x.shape[1]), axis=1)
    numpy.add.reduce(partial, axis=0, out=out, keepdims=True)
    if whole < len(x):
        out += numpy.add.reduce(x[whole:], axis=0)


# --- scans ----------------------------------------------------------------------------------------------------


def _carried(dtype: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """Return the dtype in which sums and products are accumulated."""
    return {"f": _FLOAT64, "c": _COMPLEX128}.get(dtype.kind, dtype)


def _accumulated(ufunc: numpy.ufunc, x: ndarray, out: ndarray, carried: numpy.dtype[Any]) -> None:
    if x.ndim == 3 and x.shape[2] > 1:  # side by side
        total = x[:, 0].astype(carried)
        out[:, 0] = total
        for place in range(1, x.shape[1]):
            ufunc(total, x[:, place], out=total)
            out[:, place] = total
    elif x.dtype is carried:
        ufunc.accumulate(x, 1, None, out)
    else:
        wide = scratch("carried", x.shape, carried)
        numpy.copyto(wide, x)
        ufunc.accumulate(wide, 1, None, wide)
        numpy.copyto(out, wide, casting="same_kind")


def row_cumsum(x: ndarray, out: ndarray) -> None:
    """Return the cumulative sums."""
    _accumulated(numpy.add, x, out, _carried(x.dtype))


def row_cumprod(x: ndarray, out: ndarray) -> None:
    """Return the cumulative products."""
    _accumulated(numpy.multiply, x, out, _carried(x.dtype))


def row_cummax(x: ndarray, out: ndarray) -> None:
    """Return the cumulative maxima."""
    _accumulated(numpy.maximum, x, out, x.dtype)


def row_cummin(x: ndarray, out: ndarray) -> None:
    """Return the cumulative minima."""
    _accumulated(numpy.minimum, x, out, x.dtype)


def row_logcumsumexp(x: ndarray, out: ndarray) -> None:
    """Return the cumulative logarithms of sums of exponentials."""
    _accumulated(numpy.logaddexp, x, out, _FLOAT64)


def _reversed(scan: Callable[[ndarray, ndarray], None]) -> Callable[[ndarray, ndarray], None]:
    return lambda x, out: scan(x[:, ::-1], out[:, ::-1])


TILE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (row_sum, row_max, row_min, row_take, row_put, row_index, column_sum)
}
for _scan in (row_cumsum, row_cumprod, row_cummax, row_cummin, row_logcumsumexp):
    TILE_FUNCTIONS[_scan.__name__] = _scan
    TILE_FUNCTIONS[f"{_scan.__name__}_reversed"] = _reversed(_scan)


# --- for small arrays -----------------------------------------------------------------------------------------


def _sum(x: ndarray) -> ndarray:
    if x.size <= len(_ONES["f"]) and x.ndim == 2 and (ones := _ONES.get(x.dtype.char)) is not None:
        return x.dot(ones[: x.shape[1]])  # in a third of the time of `add.reduce`
    total = numpy.empty((len(x), 1, *x.shape[2:]), x.dtype)
    row_sum(x, total)
    return total


def _max(x: ndarray) -> Any:
    return _maximum(x, 1, None, None, True)


def _min(x: ndarray) -> Any:
    return _minimum(x, 1, None, None, True)


def _column_sum(x: ndarray) -> Any:
    if len(x) <= BLOCK and x.ndim == 2 and (ones := _ONES.get(x.dtype.char)) is not None:
        return ones[: len(x)].T.dot(x)
    total = numpy.empty((1, x.shape[1], *(1,) * (x.ndim - 2)), x.dtype)
    column_sum(x, total)
    return total


STRAIGHT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "row_sum": _sum,
    "row_max": _max,
    "row_min": _min,
    "column_sum": _column_sum,
}
"""The functions that compute operations into new arrays, for programs that contain no other operations."""
