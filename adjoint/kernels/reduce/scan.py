"""Along one dimension: sums, products, extrema and log-sum-exp of all elements so far, and elements picked and put back.

Floating-point sums and products are carried in float64 and rounded once per element, as PyTorch does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy import asarray, ndarray

from ..runtime.floating import is_inexact, type_name, widen
from ..runtime.layout import row_major
from ..runtime.parallel import parallel_rows
from ..runtime.shapes import normalize_dim

Dtype = numpy.dtype[Any]
Pair = tuple[ndarray, ndarray]

_INT64 = numpy.dtype(numpy.int64)
_FLOAT64 = numpy.dtype(numpy.float64)
_COMPLEX128 = numpy.dtype(numpy.complex128)
_LARGE = 1 << 14


def cumsum(x: ndarray, dim: int, dtype: Dtype | None = None) -> ndarray:
    """Sums along `dim` of all elements up to each one; integers and bool are summed in int64."""
    return _scan(numpy.add, "cumsum", x, dim, dtype)


def cumprod(x: ndarray, dim: int, dtype: Dtype | None = None) -> ndarray:
    """Products along `dim` of all elements up to each one; integers and bool are multiplied in int64."""
    return _scan(numpy.multiply, "cumprod", x, dim, dtype)


def _scan(ufunc: numpy.ufunc, name: str, x: ndarray, dim: int, dtype: Dtype | None) -> ndarray:
    dim = normalize_dim(dim, x.ndim)
    if dtype is None:
        dtype = x.dtype if is_inexact(x.dtype) else _INT64
    if dtype.kind == "b":
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    if x.dtype != dtype:
        x = x.astype(dtype)
    if x.ndim == 0:
        return x.copy()
    x = row_major(x)
    carried = dtype
    if is_inexact(dtype):
        carried = _COMPLEX128 if dtype.kind == "c" else _FLOAT64
    if x.size < _LARGE:
        result = ufunc.accumulate(x, dim, carried)
        return result if carried is dtype else result.astype(dtype)
    inner = math.prod(x.shape[dim + 1 :])
    blocks = x.reshape(-1, x.shape[dim], inner)
    result = numpy.empty_like(blocks)
    if inner == 1:
        _scan_rows(ufunc, blocks[:, :, 0], carried, result[:, :, 0])
    else:
        _scan_columns(ufunc, blocks, carried, result)
    return result.reshape(x.shape)


def _scan_rows(ufunc: numpy.ufunc, x: ndarray, carried: Dtype, out: ndarray) -> None:
    def scan(start: int, stop: int) -> None:
        ufunc.accumulate(x[start:stop], 1, carried, out[start:stop])

    parallel_rows(scan, len(x), x.shape[1] * carried.itemsize)


def _scan_columns(ufunc: numpy.ufunc, x: ndarray, carried: Dtype, out: ndarray) -> None:
    """Scan (outer, length, inner) along the middle: whole rows of `inner` elements, or of `outer` if that is more."""
    if x.shape[2] < len(x):
        x, out = x.transpose(2, 1, 0), out.transpose(2, 1, 0)
    for block, scanned in zip(x, out, strict=True):
        total = block[0].astype(carried)
        scanned[0] = total
        for i in range(1, len(block)):
            ufunc(total, block[i], out=total)
            scanned[i] = total


def cummax(x: ndarray, dim: int) -> Pair:
    """The largest element along `dim` so far and where it was last attained; a nan stays from where it appears.

    Raises:
        NotImplementedError: for complex numbers.
    """
    return _running_extremum(numpy.maximum, "cummax", x, dim)


def cummin(x: ndarray, dim: int) -> Pair:
    """The smallest element along `dim` so far and where it was last attained; a nan stays from where it appears.

    Raises:
        NotImplementedError: for complex numbers.
    """
    return _running_extremum(numpy.minimum, "cummin", x, dim)


def _running_extremum(ufunc: numpy.ufunc, name: str, x: ndarray, dim: int) -> Pair:
    dim = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        return x.copy(), asarray(0, _INT64)
    if x.dtype.kind == "c":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(x.dtype)}'")
    x = row_major(x)
    values = ufunc.accumulate(x, dim)
    attained = x == values
    if is_inexact(x.dtype):
        attained |= numpy.isnan(x)
    position = numpy.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
    return values, numpy.maximum.accumulate(position * attained, dim)


def logcumsumexp(x: ndarray, dim: int) -> ndarray:
    """The logarithm of the running sum of exponentials along `dim`, without overflow.

    Raises:
        NotImplementedError: for integers and bool.
    """
    dim = normalize_dim(dim, x.ndim)
    if not is_inexact(x.dtype):
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{type_name(x.dtype)}'")
    if x.ndim == 0 or x.size == 0:
        return x.copy()
    x = row_major(x)
    if x.dtype.kind == "c":
        return row_major(_complex_logcumsumexp(x, dim))
    return numpy.logaddexp.accumulate(widen(x), dim, _FLOAT64).astype(x.dtype)


def _complex_logcumsumexp(x: ndarray, dim: int) -> ndarray:
    along_first = numpy.moveaxis(x, dim, 0)
    result = numpy.empty_like(along_first)
    total = along_first[0].astype(_COMPLEX128)
    result[0] = total
    for i in range(1, len(result)):
        total = _complex_logaddexp(total, along_first[i])
        result[i] = total
    return numpy.moveaxis(result, 0, dim)


def _complex_logaddexp(a: ndarray, b: ndarray) -> ndarray:
    """log(exp(a) + exp(b)), the exponential of the larger real part factored out."""
    larger = numpy.where(a.real >= b.real, a, b)
    smaller = numpy.where(a.real >= b.real, b, a)
    total = larger + numpy.log1p(numpy.exp(smaller - larger))
    total = numpy.where(larger.real == -numpy.inf, larger, total)
    return numpy.where(numpy.isnan(a) | numpy.isnan(b), complex(math.nan, math.nan), total)


Array = numpy.ndarray[Any, Any]


def selected_values(x: Array, dim: int, indices: Array, keepdim: bool) -> Array:
    """The elements of `x` at `indices` along `dim`; `keepdim` says whether `indices` has that dimension."""
    if x.ndim == 0:
        return x.copy()
    where = indices if keepdim else numpy.expand_dims(indices, dim)
    values = numpy.take_along_axis(x, where, dim)
    return values if keepdim else values.squeeze(dim)


def value_selecting_backward(grad: Array, shape: tuple[int, ...], dim: int, indices: Array, keepdim: bool) -> Array:
    """Zeros of `shape` with `grad` at `indices` along `dim`."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    result = numpy.zeros(shape, grad.dtype)
    if not keepdim:
        grad, indices = numpy.expand_dims(grad, dim), numpy.expand_dims(indices, dim)
    numpy.put_along_axis(result, indices, grad, dim)
    return result


def add_at_selected(grad: Array, shape: tuple[int, ...], dim: int, indices: Array) -> Array:
    """Zeros of `shape` to which `grad` is added at `indices` along `dim`, of which several may be the same."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    result = numpy.zeros(shape, grad.dtype)
    places: list[Any] = list(numpy.indices(indices.shape, sparse=True))
    places[dim] = indices
    numpy.add.at(result, tuple(places), grad)
    return result


def gathered(x: Array, dim: int, indices: Array) -> Array:
    """The elements of `x` at `indices` along `dim`."""
    return x.copy() if x.ndim == 0 else numpy.take_along_axis(x, indices, dim)


def others_product(x: Array, dim: int) -> Array:
    """For each element the product of the others along `dim`: what precedes it times what follows it."""
    before, after = numpy.ones_like(x), numpy.ones_like(x)
    along = numpy.moveaxis(x, dim, 0)
    numpy.cumprod(along[:-1], axis=0, out=numpy.moveaxis(before, dim, 0)[1:])
    numpy.cumprod(along[:0:-1], axis=0, out=numpy.moveaxis(after, dim, 0)[-2::-1] if len(along) > 1 else None)
    return before * after


def cumprod_backward(grad: Array, x: Array, result: Array, dim: int) -> Array:
    """The gradient of `cumprod`: each element's is a sum over all later products, each without that element.

    Without zeros that is the reversed cumulative sum of `grad * result`, divided by the element; where there are zeros the sum
    is taken as it stands.
    """
    if x.size <= 1:
        return numpy.asarray(grad)
    g, a, r = (numpy.moveaxis(widen(numpy.asarray(value)), dim, 0) for value in (grad, x, result))
    if not (x == 0).any():
        summed = numpy.cumsum((g * r.conj())[::-1], axis=0)[::-1] / a.conj()
    else:
        summed = numpy.empty_like(g * a)
        before: Any = numpy.ones_like(a[:1])[0] if len(a) else None
        for i in range(len(a)):
            products = numpy.concatenate([before[None], a[i + 1 :]], axis=0)
            summed[i] = (g[i:] * numpy.cumprod(products, axis=0).conj()).sum(0)
            before = before * a[i]
    return row_major(numpy.moveaxis(summed, 0, dim))


def reversed_cumsum(x: Array, dim: int) -> Array:
    """Sums of each element and all later ones along `dim`."""
    return x if x.ndim == 0 else row_major(numpy.flip(numpy.cumsum(numpy.flip(x, dim), axis=dim), dim))


def at_indices(x: Array, indices: Array) -> Array:
    """The elements of `x` (batch, channels, spatial...) at `indices` of its flattened spatial dimensions."""
    rows = x.reshape(*x.shape[:2], -1)
    return numpy.take_along_axis(rows, indices.reshape(*x.shape[:2], -1), -1).reshape(indices.shape)
