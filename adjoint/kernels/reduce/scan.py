"""Scans along one dimension (running sums, products, extrema and log-sum-exp), and selection of elements by their indices.

Floating-point sums and products are accumulated in float64 and rounded once per element, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.costs import MOVED, SCANNED, SUMMED
from ...codegen.plans import NUMPY, Plan, planned
from ...codegen.rows import RowProgram, row_program
from ...codegen.tracing import row, xp
from ..index.places import require_in_bounds
from ..runtime.floating import FLOAT32, is_inexact, refuse, widen
from ..runtime.layout import row_major
from ..runtime.shapes import normalize_dim
from .reduction import count_nonzero, prod

Array = numpy.ndarray[Any, Any]
Dtype = numpy.dtype[Any]
Pair = tuple[ndarray, ndarray]

_INT64 = numpy.dtype(numpy.int64)
_FLOAT64 = numpy.dtype(numpy.float64)
_COMPLEX128 = numpy.dtype(numpy.complex128)


@planned("reduce.running.integer_sum", least=SCANNED)
def _integer_sum(x: ndarray, dim: int) -> Plan:
    return NUMPY


@planned("reduce.running.complex_scan", least=SCANNED)
def _scan_of_pairs(x: ndarray, dim: int, product: bool, reverse: bool) -> Plan:
    return NUMPY


@planned("reduce.running.extremum", least=SCANNED)
def _extremum(x: ndarray, dim: int, maximum: bool) -> Plan:
    return NUMPY


@planned("reduce.running.logcumsumexp", least=SCANNED)
def _logcumsumexp(x: ndarray, dim: int) -> Plan:
    return NUMPY


# --- sums and products ----------------------------------------------------------------------------------------


@row_program()
def cumsum_rows(x: Array) -> Any:
    """Return the sum of each element and all before it."""
    return row.cumsum(x)


@row_program()
def cumprod_rows(x: Array) -> Any:
    """Return the product of each element and all before it."""
    return row.cumprod(x)


@row_program()
def reversed_cumsum_rows(x: Array) -> Any:
    """Return the sum of each element and all after it."""
    return row.cumsum(x, reverse=True)


@row_program()
def cumprod_backward_rows(grad: Array, x: Array, result: Array) -> Any:
    """Return the gradient of the elements from the gradient of the running products, if no element is zero."""
    return row.cumsum(grad * result.conj(), reverse=True) / x.conj()


def cumsum(x: ndarray, dim: int, *, dtype: Any = None) -> ndarray:
    """Return the running sums along `dim`. Integers and bool are summed in int64."""
    return _scan(numpy.add, cumsum_rows, "cumsum", x, dim, dtype)


def cumprod(x: ndarray, dim: int, *, dtype: Any = None) -> ndarray:
    """Return the running products along `dim`. Integers and bool are multiplied in int64."""
    return _scan(numpy.multiply, cumprod_rows, "cumprod", x, dim, dtype)


def _scan(ufunc: numpy.ufunc, program: RowProgram, name: str, x: ndarray, dim: int, wanted: Any) -> ndarray:
    dim = normalize_dim(dim, x.ndim)
    if wanted is None and x.dtype.kind == "f" and x.ndim and x.size < SUMMED:
        if x.dtype is FLOAT32 and LOOPS.enabled:  # the bits are the same, and the sums are rounded as they are stored
            return asarray(program.run((x,), dim))
        scanned: ndarray = ufunc.accumulate(row_major(x), dim, _FLOAT64)
        return scanned if x.dtype is _FLOAT64 else scanned.astype(x.dtype)
    dtype: Dtype = wanted if wanted is not None else x.dtype if is_inexact(x.dtype) else _INT64
    if dtype.kind == "b":
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    if ufunc is numpy.add and dtype == _INT64 and x.dtype.kind in "biu" and x.ndim:
        found: ndarray = _integer_sum(x, dim)
        if found is not NotImplemented:
            return found
    if x.dtype != dtype:
        x = x.astype(dtype)
    if x.ndim == 0:
        return x.copy()
    if dtype.kind == "c":
        found = _complex_scan(x, dim, ufunc is numpy.multiply, False)
        if found is not NotImplemented:
            return found
    if x.size >= SUMMED:
        return asarray(program.run((x,), dim))
    carried = _COMPLEX128 if dtype.kind == "c" else dtype if dtype.kind in "iu" else _FLOAT64
    scanned = ufunc.accumulate(row_major(x), dim, carried)
    return scanned if carried is dtype else scanned.astype(dtype)


def _complex_scan(x: ndarray, dim: int, product: bool, reverse: bool) -> Any:
    """Return running sums or products of complex numbers, computed by compiled loops.

    Along columns, sums are computed for each part.
    """
    found = _scan_of_pairs(x, dim, product, reverse)
    if found is NotImplemented and not product and x.size >= SUMMED and LOOPS.enabled:
        parts = row_major(x)[..., None].view(x.real.dtype)
        summed = (reversed_cumsum_rows if reverse else cumsum_rows).run((parts,), dim)
        return summed.view(x.dtype)[..., 0]
    return found


def reversed_cumsum(x: Array, dim: int) -> Array:
    """Return the sums of each element and all later elements along `dim`."""
    if x.ndim == 0:
        return x
    if x.dtype.kind == "c":
        found = _complex_scan(x, normalize_dim(dim, x.ndim), False, True)
        if found is not NotImplemented:
            return asarray(found)
    if x.size < SUMMED:
        return row_major(numpy.flip(cumsum(numpy.flip(x, dim), dim), dim))
    result: Array = reversed_cumsum_rows.run((x,), dim)
    return result


def cumprod_backward(grad: Array, x: Array, result: Array, dim: int) -> Array:
    """Return the gradient of `cumprod`.

    The gradient of an element is a sum over all later products, each without this element. If there are zeros, this sum
    is computed directly.
    """
    if x.size <= 1:
        return numpy.asarray(grad)
    if not (x == 0).any():
        gradient: Array = cumprod_backward_rows.run((numpy.asarray(grad), x, result), dim)
        return gradient
    g, a = (numpy.moveaxis(widen(numpy.asarray(value)), dim, 0) for value in (grad, x))
    summed = numpy.empty_like(g * a)
    before: Any = numpy.ones_like(a[:1])[0] if len(a) else None
    for i in range(len(a)):
        products = numpy.concatenate([before[None], a[i + 1 :]], axis=0)
        summed[i] = (g[i:] * numpy.cumprod(products, axis=0).conj()).sum(0)
        before = before * a[i]
    return row_major(numpy.moveaxis(summed, 0, dim))


def others_product(x: Array, dim: int) -> Array:
    """Return, for each element, the product of the other elements along `dim`.

    It is the product before the element times the product after it. For a large array without zeros, return the product
    of all elements divided by the element, as PyTorch does.
    """
    if LOOPS.takes(x.size, MOVED) and x.dtype.char in "fd" and count_nonzero(x) == x.size:
        return asarray(of_any_size(numpy.divide)(prod(x, dim, True), x))
    before, after = numpy.ones_like(x), numpy.ones_like(x)
    along = numpy.moveaxis(x, dim, 0)
    numpy.cumprod(along[:-1], axis=0, out=numpy.moveaxis(before, dim, 0)[1:])
    numpy.cumprod(along[:0:-1], axis=0, out=numpy.moveaxis(after, dim, 0)[-2::-1] if len(along) > 1 else None)
    return before * after


# --- extrema --------------------------------------------------------------------------------------------------


@row_program()
def cummax_rows(x: Array) -> Any:
    """Return the greatest element so far, and the index of its last occurrence."""
    greatest = row.cummax(x)
    return greatest, row.cummax(xp.where((x == greatest) | xp.isnan(x), row.index(x), 0))


@row_program()
def cummin_rows(x: Array) -> Any:
    """Return the smallest element so far, and the index of its last occurrence."""
    smallest = row.cummin(x)
    return smallest, row.cummax(xp.where((x == smallest) | xp.isnan(x), row.index(x), 0))


def cummax(x: ndarray, dim: int) -> Pair:
    """Return the largest element so far along `dim`, and its last index. From the first NaN on, the result is NaN.

    Raises:
        NotImplementedError: for complex numbers.
    """
    return _running_extremum(cummax_rows, "cummax", x, dim)


def cummin(x: ndarray, dim: int) -> Pair:
    """Return the smallest element so far along `dim`, and its last index. From the first NaN on, the result is NaN.

    Raises:
        NotImplementedError: for complex numbers.
    """
    return _running_extremum(cummin_rows, "cummin", x, dim)


def _running_extremum(program: RowProgram, name: str, x: ndarray, dim: int) -> Pair:
    dim = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        return x.copy(), asarray(0, _INT64)
    if x.dtype.kind == "c":
        raise refuse(f"{name}_cpu", x)
    found: Pair = _extremum(x, dim, name == "cummax")
    if found is NotImplemented:
        found = program.run((x,), dim)
    return found


# --- sums of exponentials -------------------------------------------------------------------------------------


@row_program()
def logcumsumexp_rows(x: Array) -> Any:
    """Return the logarithm of the sum of the exponentials so far."""
    return row.logcumsumexp(x)


def logcumsumexp(x: ndarray, dim: int) -> ndarray:
    """Return the logarithm of the running sum of exponentials along `dim`, without overflow.

    Raises:
        NotImplementedError: for integers and bool.
    """
    dim = normalize_dim(dim, x.ndim)
    if not is_inexact(x.dtype):
        raise refuse("logcumsumexp_out_cpu", x)
    if x.ndim == 0 or x.size == 0:
        return x.copy()
    if x.dtype.kind == "c":
        return row_major(_complex_logcumsumexp(row_major(x), dim))
    found: ndarray = _logcumsumexp(x, dim)
    if found is NotImplemented:
        found = logcumsumexp_rows.run((x,), dim)
    return found


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
    """Return log(exp(a) + exp(b)). The exponential of the larger real part is factored out."""
    larger = numpy.where(a.real >= b.real, a, b)
    smaller = numpy.where(a.real >= b.real, b, a)
    total = larger + numpy.log1p(numpy.exp(smaller - larger))
    total = numpy.where(larger.real == -numpy.inf, larger, total)
    return numpy.where(numpy.isnan(a) | numpy.isnan(b), complex(math.nan, math.nan), total)


# --- elements at indices --------------------------------------------------------------------------------------


def selected_values(x: Array, dim: int, indices: Array, keepdim: bool) -> Array:
    """Return the elements of `x` at `indices` along `dim`. `keepdim`: whether `indices` has this dimension."""
    if x.ndim == 0:
        return x.copy()
    require_in_bounds(indices, x.shape, dim)
    where = indices if keepdim else numpy.expand_dims(indices, dim)
    values = numpy.take_along_axis(x, where, dim)
    return values if keepdim else values.squeeze(dim)


def value_selecting_backward(grad: Array, shape: tuple[int, ...], dim: int, indices: Array, keepdim: bool) -> Array:
    """Return zeros of `shape` with `grad` at `indices` along `dim`."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    require_in_bounds(indices, shape, dim)
    result = numpy.zeros(shape, grad.dtype)
    if not keepdim:
        grad, indices = numpy.expand_dims(grad, dim), numpy.expand_dims(indices, dim)
    numpy.put_along_axis(result, indices, grad, dim)
    return result
