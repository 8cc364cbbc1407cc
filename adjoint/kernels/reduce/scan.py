"""Scans along one dimension (running sums, products, extrema and log-sum-exp), and selection of elements by their indices.

Floating-point sums and products are accumulated in float64 and rounded once per element, as in PyTorch.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.plans import NUMPY, Plan, compiled, replayed, zeros
from ...codegen.recording import recordable
from ..index.places import require_in_bounds
from ..index.scatter import scatter_
from ..memory.copying import rounded, widen
from ..runtime.costs import MOVED, SCANNED
from ..runtime.floating import FLOAT32, FLOAT64, HALVES, INT64, Array, is_inexact, refuse, unwarned
from ..runtime.layout import row_major
from ..runtime.shapes import normalize_dim
from .reduction import count_nonzero, of_parts, prod

Dtype = numpy.dtype[Any]
Pair = tuple[ndarray, ndarray]

_COMPLEX128 = numpy.dtype(numpy.complex128)


@compiled("reduce.running.scan")
def _compiled(x: ndarray, dim: int, name: str, reverse: bool) -> Plan:
    """Return the running results of `name` (and, for "max" and "min", their positions), computed by compiled loops."""
    return NUMPY


@compiled("reduce.running.scan", least=SCANNED, cost=1)
def _exact(x: ndarray, dim: int, name: str, reverse: bool) -> Plan:
    """Return `_compiled` for sums of integers and for extrema, whose bits are NumPy's."""
    return NUMPY


# --- sums and products ----------------------------------------------------------------------------------------


def _scan(
    ufunc: numpy.ufunc,
    name: str,
    x: ndarray,
    dim: int,
    *,
    dtype: Dtype | None = None,
    reverse: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """Return the running sums or products along `dim`, or from its end if `reverse`. Integers and bool are converted to int64."""
    dim = normalize_dim(dim, x.ndim)
    dtype = dtype if dtype is not None else x.dtype if is_inexact(x.dtype) else INT64
    if dtype.kind == "b":
        raise NotImplementedError(f"\"cum{name}_out_cpu\" not implemented for 'Bool'")
    integers = dtype == INT64 and x.dtype.kind in "biu"
    if x.dtype != dtype and not integers:
        x = x.astype(dtype)
    if x.ndim == 0:
        return x.astype(dtype)
    if integers or is_inexact(dtype):
        # The results of short numbers are rounded as they are stored, so the bits are NumPy's.
        found: Any = NotImplemented
        if integers:
            found = _exact(x, dim, name, reverse, out)
        elif LOOPS.takes(x.size, 0 if dtype is FLOAT32 or dtype in HALVES else SCANNED):
            found = _compiled(x, dim, name, reverse, out)
        if found is not NotImplemented:
            return asarray(found)
    if not reverse:
        return _accumulated(ufunc, x, dim, dtype)
    return row_major(numpy.flip(_accumulated(ufunc, numpy.flip(x, dim), dim, dtype), dim))


cumsum = recordable(partial(_scan, numpy.add, "sum"))
cumprod = recordable(partial(_scan, numpy.multiply, "prod"))
reversed_cumsum = recordable(partial(_scan, numpy.add, "sum", reverse=True))


def _accumulated(ufunc: numpy.ufunc, x: ndarray, dim: int, dtype: Dtype) -> ndarray:
    """Return the running results, computed by NumPy."""
    carried = _COMPLEX128 if dtype.kind == "c" else dtype if dtype.kind in "iu" else FLOAT64

    def scanned(part: ndarray) -> ndarray:
        with unwarned():
            found = ufunc.accumulate(row_major(widen(part)), dim, carried)
            if ufunc is not numpy.multiply:
                found += 0  # a sum of negative zeros is 0
            return rounded(found, dtype)

    return of_parts(scanned, x, (dim,))


def cumprod_backward(grad: Array, x: Array, result: Array, dim: int) -> Array:
    """Return the gradient of `cumprod`.

    The gradient of an element is a sum over all later products, each without this element. If there are zeros, this sum
    is computed directly.
    """
    if x.size <= 1:
        return numpy.asarray(grad)
    if not (x == 0).any():
        products = _MULTIPLY(widen(numpy.asarray(grad)), widen(result).conj())
        return rounded(asarray(_DIVIDE(reversed_cumsum(products, dim), widen(x).conj())), x.dtype)
    g, a = (numpy.moveaxis(widen(numpy.asarray(value)), dim, 0) for value in (grad, x))
    summed = numpy.empty_like(g * a)
    before: Any = numpy.ones_like(a[:1])[0] if len(a) else None
    for i in range(len(a)):
        products = numpy.concatenate([before[None], a[i + 1 :]], axis=0)
        summed[i] = (g[i:] * numpy.cumprod(products, axis=0).conj()).sum(0)
        before = before * a[i]
    return row_major(numpy.moveaxis(summed, 0, dim))


_MULTIPLY, _DIVIDE = of_any_size(numpy.multiply), of_any_size(numpy.divide)


def others_product(x: Array, dim: int) -> Array:
    """Return, for each element, the product of the other elements along `dim`.

    It is the product before the element times the product after it. For a large array without zeros, return the product
    of all elements divided by the element, as PyTorch does.
    """
    if LOOPS.takes(x.size, MOVED) and x.dtype.char in "fd" and count_nonzero(x) == x.size:
        return asarray(_DIVIDE(prod(x, dim, True), x))
    before, after = numpy.ones_like(x), numpy.ones_like(x)
    along = numpy.moveaxis(x, dim, 0)
    numpy.cumprod(along[:-1], axis=0, out=numpy.moveaxis(before, dim, 0)[1:])
    numpy.cumprod(along[:0:-1], axis=0, out=numpy.moveaxis(after, dim, 0)[-2::-1] if len(along) > 1 else None)
    return before * after


# --- extrema --------------------------------------------------------------------------------------------------


def _running_extremum(ufunc: numpy.ufunc, name: str, x: ndarray, dim: int) -> Pair:
    """Return the largest or smallest element so far along `dim`, and its last index. From the first NaN on, it is NaN."""
    if x.ndim == 0 and dim not in (-1, 0):
        raise IndexError(f"cum{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    dim = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    if x.dtype.kind == "c":
        raise refuse(f"cum{name}_cpu", x)
    found: Pair = _exact(x, dim, name, False)
    if found is not NotImplemented:
        return found
    wide = row_major(widen(x))
    best = ufunc.accumulate(wide, dim)
    index = numpy.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - dim - 1))
    places = numpy.where((wide == best) | (wide != wide), index, 0)
    return rounded(best, x.dtype), numpy.maximum.accumulate(places, dim, out=places)


cummax, cummin = partial(_running_extremum, numpy.maximum, "max"), partial(_running_extremum, numpy.minimum, "min")


# --- sums of exponentials -------------------------------------------------------------------------------------


def logcumsumexp(x: ndarray, dim: int) -> ndarray:
    """Return the logarithm of the running sum of exponentials along `dim`, without overflow."""
    dim = normalize_dim(dim, x.ndim)
    if not is_inexact(x.dtype):
        raise refuse("logcumsumexp_out_cpu", x)
    if x.ndim == 0 or x.size == 0:
        return x.copy()
    if x.dtype.kind == "c":
        return row_major(_complex_logcumsumexp(row_major(x), dim))
    found = _compiled(x, dim, "logsumexp", False) if LOOPS.takes(x.size, SCANNED) else NotImplemented
    return _accumulated(numpy.logaddexp, x, dim, x.dtype) if found is NotImplemented else asarray(found)


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


@replayed
def value_selecting_backward(grad: Array, shape: tuple[int, ...], dim: int, indices: Array, keepdim: bool) -> Array:
    """Return zeros of `shape` with `grad` at `indices` along `dim`."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    if not keepdim:
        whole = (*(slice(None),) * (dim % len(shape)), None)
        grad, indices = grad[whole], indices[whole]
    return scatter_(zeros(shape, grad.dtype), dim, indices, grad)
