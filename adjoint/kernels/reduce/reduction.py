"""Reductions over some dimensions or all.

`dim` is None (all dimensions), an int or a tuple; negative numbers count from the end. Results are always arrays, even
without dimensions. Half types are accumulated in float32. Small arrays are reduced by one NumPy call. Large arrays use
the compiled loops of `kernels.compiled.reduce`, or `reduced` if there are none.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from operator import index
from typing import Any

import numpy
from numpy import asarray, empty, ndarray

from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import NUMPY, Plan, compiled
from ...codegen.recording import recordable
from ...codegen.row_tiles import ONES
from ...codegen.selection import zero_where
from ..index.scatter import gather
from ..memory.copying import contiguous, rounded, widen
from ..runtime.costs import LARGE, MOVED, PART, SHORT, THREADED
from ..runtime.floating import (
    FLOAT32,
    HALVES,
    INT64,
    OFF,
    WARNINGS,
    compute_dtype,
    is_floating,
    is_inexact,
    quietly,
    refuse,
    restore,
    type_name,
)
from ..runtime.layout import row_major
from ..runtime.parallel import parallel_rows
from ..runtime.positions import gives_positions
from ..runtime.shapes import Dims, names_all, normalize_dim, normalize_dims
from ..shape.view import expand

Dtype = numpy.dtype[Any]
Pair = tuple[ndarray, ndarray]

_NATIVE = "fdFD"  # NumPy accumulates these in the same type, as PyTorch does
_NATIVE_SUMS = _NATIVE + INT64.char
_add: Any = numpy.add.reduce


class _Ones(dict[int, ndarray]):
    """Vectors of ones by their length, up to `LARGE`. A lookup takes a third of the time of a slice."""

    def __init__(self, ones: ndarray) -> None:
        self.longest = ones

    def __missing__(self, length: int) -> ndarray:
        found = self[length] = self.longest[:length]
        return found


_ONES = {char: _Ones(ones.reshape(-1)) for char, ones in ONES.items()}


@compiled("reduce.reduction.planned", least=MOVED)
def _compiled(x: ndarray, name: str, dim: Dims, keepdim: bool, dtype: Dtype | None) -> Plan:
    """Return the reduction `name` (or "mean"), computed by compiled loops. Return NotImplemented if NumPy must compute it."""
    return NUMPY


# --- sums, means and products ---------------------------------------------------------------------------------


@recordable
def sum(
    x: ndarray, dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the sum over `dim`. Integers and bool are summed in int64 unless `dtype` is given."""
    if dtype is None and x.size < MOVED and not LOOPS.every_size and (dim or dim is None or dim == 0):
        if x.dtype.char in _NATIVE_SUMS:
            return _sum_of_few(x, dim, keepdim)
        if x.dtype.itemsize == 2 and x.dtype in HALVES and SHAPES.recorder is None:
            return _of_few(numpy.add, widen(x), dim, keepdim).astype(x.dtype)
    found = _compiled(x, "sum", dim, keepdim, dtype, out)
    if found is not NotImplemented:
        return found
    return _accumulate(numpy.add, x, normalize_dims(dim, x.ndim), keepdim, dtype)


def _sum_of_few(x: ndarray, dim: Dims, keepdim: bool) -> ndarray:
    if isinstance(dim, tuple) and len(dim) == 1:
        (dim,) = dim
    if x.ndim == 2 and dim.__class__ is int and -3 < dim < 2 and x.size <= LARGE:
        total = sum_kept(x, dim)
        return total if keepdim else total.reshape(-1)
    return _of_few(numpy.add, x, dim, keepdim)


def _of_few(ufunc: Any, x: ndarray, dim: Dims, keepdim: bool, dtype: Any = None, out: Any = None) -> ndarray:
    """Return `ufunc.reduce(x, dim)` as a row-major array."""
    if out is not None and (
        out.dtype is not (dtype or x.dtype) or not (x.flags.c_contiguous and out.flags.c_contiguous)
    ):
        out = None
    try:
        result = ufunc.reduce(x, dim, dtype, out, keepdim)
    except ValueError:  # `out` has another shape, or the dimension is out of range, or is 0 or -1 of a 0-d array
        result = ufunc.reduce(x, normalize_dims(dim, x.ndim), dtype, None, keepdim)
    if type(result) is not ndarray:
        return asarray(result)
    return row_major(result) if x.ndim > 2 else result


def sum_kept(x: ndarray, dim: int) -> ndarray:
    """Return the sum of a small floating-point array over one dimension, which is kept."""
    if x.ndim == 2 and x.size <= LARGE and (column := ONES.get(x.dtype.char)) is not None:
        if dim == 1 or dim == -1:
            return x.dot(column[: x.shape[1]])
        return _ONES[x.dtype.char][len(x)].dot(x)[None]
    if x.size < THREADED:
        total: ndarray = _add(x, dim, None, None, True)
        return total
    return reduced(numpy.add, x, (dim % x.ndim,), True)


def total(x: ndarray) -> ndarray:
    """Return the sum of all elements. A few elements are summed by a product with ones."""
    dtype, size = x.dtype, x.size
    ones = _ONES.get(dtype.char)
    if size >= MOVED or not x.flags.c_contiguous:
        return quietly(sum, x)
    if ones is None:
        is_half = dtype.itemsize == 2 and dtype in HALVES and not LOOPS.every_size and SHAPES.recorder is None
        return quietly(total(x.astype(FLOAT32)).astype, dtype) if is_half else quietly(sum, x)
    token = WARNINGS[OFF]
    try:
        result = empty((), dtype)
        x.ravel().dot(ones[size], result)  # returns a scalar
        return result
    finally:
        restore(token)


def total_mean(x: ndarray) -> ndarray:
    """Return the mean of all elements."""
    if x.dtype.char in "fd" and 0 < x.size < MOVED:
        result = total(x)
        result /= x.size
        return result
    return quietly(mean, x)


def prod(
    x: ndarray, dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the product over `dim`. Integers and bool are multiplied in int64 unless `dtype` is given."""
    if (
        dtype is None
        and x.dtype.char in _NATIVE_SUMS
        and x.size < MOVED
        and not LOOPS.every_size
        and (dim or dim is None or dim == 0)
    ):
        return _of_few(numpy.multiply, x, dim, keepdim, None, out)
    found = _compiled(x, "prod", dim, keepdim, dtype, out)
    if found is not NotImplemented:
        return found
    return _accumulate(numpy.multiply, x, normalize_dims(dim, x.ndim), keepdim, dtype)


def prod_along(
    x: ndarray, dim: int, keepdim: bool = False, dtype: Dtype | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the product over one dimension."""
    if type(dim) is bool:
        raise TypeError("a dimension is an int, not a bool")
    return prod(x, index(dim), keepdim, dtype, out)


@recordable
def sum_to_shape(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Sum over the dimensions along which `shape` was broadcast: the transpose of `numpy.broadcast_to`."""
    if x.ndim == 2 and x.size <= LARGE and x.dtype.char in "fd" and x.shape[1:] == shape and not LOOPS.every_size:
        rows: ndarray = _ONES[x.dtype.char][len(x)].dot(x)  # takes a third of the time of `add.reduce`
        return rows
    lead = x.ndim - len(shape)
    wide = [lead + dim for dim, size in enumerate(shape) if size == 1 and x.shape[lead + dim] != 1]
    if not lead and not wide:
        return x
    result = sum(x, (*range(lead), *wide), True) if shape else total(x)
    return result.reshape(shape).astype(x.dtype, copy=False)


def _accumulate(ufunc: numpy.ufunc, x: ndarray, dims: tuple[int, ...], keepdim: bool, dtype: Dtype | None) -> ndarray:
    """Reduce by `add` or `multiply`. Elements are first converted to `dtype`."""
    if dtype is None:
        dtype = x.dtype if is_inexact(x.dtype) else INT64
    if not is_inexact(dtype):
        whole = x if not is_inexact(x.dtype) else x.astype(dtype)
        return row_major(asarray(ufunc.reduce(whole, dims, dtype, None, keepdim)))  # type: ignore[call-arg]
    result = reduced(ufunc, widen(x.astype(dtype, copy=False)), dims, keepdim)
    return row_major(result if result.dtype == dtype else result.astype(dtype))


def reduced(ufunc: numpy.ufunc, x: ndarray, dims: tuple[int, ...], keepdim: bool) -> ndarray:
    """Return `ufunc.reduce(x, dims, keepdims=keepdim)`. Large arrays are reduced in two passes, so that float32 remains accurate.

    NumPy reduces short rows, and columns of short rows, one element at a time. The loops here avoid both cases.
    """
    if x.size < THREADED:
        return asarray(ufunc.reduce(x, dims, None, None, keepdim))  # type: ignore[call-arg]
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    result = x.transpose(order)
    if not result.flags.c_contiguous:
        return asarray(ufunc.reduce(x, dims, None, None, keepdim))  # type: ignore[call-arg]
    fates, lengths = [], []
    for fate, axes in itertools.groupby(order, dims.__contains__):  # join neighbours that are both kept or reduced
        fates.append(fate)
        lengths.append(math.prod([x.shape[axis] for axis in axes]))
    for place in reversed(range(len(fates))):
        if fates[place]:
            result = _middle_reduced(ufunc, result.reshape(-1, lengths[place], math.prod(lengths[place + 1 :])))
            lengths[place] = 1
    kept = [1 if axis in dims else x.shape[axis] for axis in order]
    result = result.reshape(kept).transpose(numpy.argsort(order))
    return result if keepdim else result.squeeze(dims)


def _middle_reduced(ufunc: numpy.ufunc, x: ndarray) -> ndarray:
    """Reduce a contiguous array (outer, rows, inner) to (outer, inner)."""
    outer, rows, inner = x.shape
    if outer > 1 and inner == 1 and rows <= SHORT:
        return functools.reduce(ufunc, x[:, :, 0].T)
    if outer > 1 or rows <= SHORT:
        return asarray(ufunc.reduce(x, 1))
    count = math.isqrt(rows)
    whole = rows // count * count
    parts = ufunc.reduce(x[:, :whole].reshape(count, -1)).reshape(1, -1, inner)
    return asarray(ufunc.reduce(numpy.concatenate([parts, x[:, whole:]], 1), 1))


@recordable
def mean(x: ndarray, dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None) -> ndarray:
    """Return the mean over `dim`, which is NaN if there are no elements."""
    size = x.size
    if (
        dtype is None
        and x.dtype.char in _NATIVE
        and size
        and x.size < MOVED
        and not LOOPS.every_size
        and (dim or dim is None or dim == 0)
    ):
        result = _sum_of_few(x, dim, keepdim)
        result /= size // result.size
        return result
    found = _compiled(x, "mean", dim, keepdim, dtype)
    return _mean(x, dim, keepdim, dtype) if found is NotImplemented else found


def require_inexact(which: str, dtype: Dtype) -> None:
    """Raise an error if means have no such dtype."""
    if not is_inexact(dtype):
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {type_name(dtype)}"
        )


def _mean(x: ndarray, dim: Dims, keepdim: bool, dtype: Dtype | None) -> ndarray:
    target = dtype or x.dtype
    require_inexact("Input" if dtype is None else "Optional", target)
    dims = normalize_dims(dim, x.ndim)
    result = sum(x.astype(target, copy=False), dims, keepdim, compute_dtype(target))
    numpy.true_divide(result, count(x.shape, dims), out=result)
    return result if result.dtype == target else result.astype(target)


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """Return the number of elements that a reduction over `dims` combines to one element."""
    return shape[dims[0]] if len(dims) == 1 else math.prod([shape[dim] for dim in dims])


def kept_shape(shape: tuple[int, ...], dim: Dims) -> tuple[int, ...]:
    """Return `shape` with size 1 in the reduced dimensions."""
    if dim is None:
        return (1,) * len(shape)
    reduced = normalize_dims(dim, len(shape))
    return tuple(1 if axis in reduced else size for axis, size in enumerate(shape))


def spread(grad: ndarray, shape: tuple[int, ...], dim: Dims, keepdim: bool) -> ndarray:
    """Return the transpose of a sum over `dim`, which repeats `grad` along the summed dimensions."""
    if not keepdim and shape and dim is not None:
        grad = grad.reshape(kept_shape(shape, dim))
    return expand(grad, shape)


def kept(value: ndarray, shape: tuple[int, ...], dim: Dims, keepdim: bool) -> ndarray:
    """Insert the reduced dimensions into `value` with size 1. The result broadcasts against the original array of `shape`."""
    return value if keepdim or not shape else value.reshape(kept_shape(shape, dim))


def in_dtype_of(value: ndarray, other: ndarray) -> ndarray:
    """Return `value` in the dtype of `other`."""
    return value if value.dtype == other.dtype else value.astype(other.dtype)


def nansum(x: ndarray, dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None) -> ndarray:
    """Return the sum over `dim`. NaN counts as zero."""
    if x.dtype.kind == "c":
        normalize_dims(dim, x.ndim)
        raise RuntimeError("nansum on CPU does not support complex inputs")
    found = _compiled(x, "nansum", dim, keepdim, dtype)
    if found is not NotImplemented:
        return found
    if dtype is not None and dtype.kind == "c" and x.dtype.kind not in "iub":
        raise refuse("nansum_cpu", dtype)
    if x.dtype.char in "fd" and dtype is None and x.size:
        total = sum(x, dim, keepdim)
        largest = total.item(total.argmax())  # the first NaN, if there is one
        if largest == largest:
            return total
    return sum(zero_where(x, numpy.isnan(x)) if is_floating(x.dtype) else x, dim, keepdim, dtype)


# --- extrema --------------------------------------------------------------------------------------------------


def _extremum(
    ufunc: numpy.ufunc, name: str, x: ndarray, dim: Dims = None, keepdim: bool = False, out: ndarray | None = None
) -> ndarray:
    """Return the maximum or minimum over `dim`, or NaN if an element is NaN."""
    if x.dtype.kind == "c":
        normalize_dims(dim, x.ndim)
        raise refuse(f"{name}_values_cpu", x)
    if 0 < x.size < MOVED and not LOOPS.every_size and (dim or dim is None or dim == 0):
        return _of_few(ufunc, x, dim, keepdim, None, out)
    found = _compiled(x, f"a{name}", dim, keepdim, None, out)
    if found is not NotImplemented:
        return found
    dims = normalize_dims(dim, x.ndim)
    if x.size == 0:
        _require_elements(f"a{name}()", x, dims, dim)
    return row_major(rounded(reduced(ufunc, x if x.size < THREADED else widen(x), dims, keepdim), x.dtype))


amax = functools.partial(_extremum, numpy.maximum, "max")
amin = functools.partial(_extremum, numpy.minimum, "min")


def _require_elements(function: str, x: ndarray, dims: tuple[int, ...], dim: Dims) -> None:
    """Raise an error if a reduction without an identity would have no elements to reduce."""
    if names_all(dim) and x.size == 0:
        hint = " Specify the reduction dim with the 'dim' argument."
        raise RuntimeError(f"{function}: Expected reduction dim to be specified for input.numel() == 0.{hint}")
    for each in (dim,) if isinstance(dim, int) else dim or dims:
        if x.ndim and x.shape[each] == 0:
            raise IndexError(f"{function}: Expected reduction dim {each} to have non-zero size.")


def _whole_extremum(name: str, x: ndarray) -> ndarray:
    """Return the maximum or minimum of all elements, or NaN if an element is NaN."""
    if x.dtype.char in "fdlqi" and 0 < x.size < THREADED and x.flags.c_contiguous and not LOOPS.every_size:
        flat = x.reshape(-1)
        return asarray(flat[flat.argmax() if name == "max" else flat.argmin()])  # the first nan, if there is one
    if x.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
            "argument."
        )
    if x.dtype.kind == "c":
        raise refuse(f"{name}_all", x)
    return amax(x) if name == "max" else amin(x)


largest = functools.partial(_whole_extremum, "max")
smallest = functools.partial(_whole_extremum, "min")


def aminmax(x: ndarray, dim: int | None = None, keepdim: bool = False) -> Pair:
    """Return the minimum and the maximum over one dimension or all dimensions."""
    if x.size == 0:
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        _require_elements("aminmax", x, normalize_dims(dim, x.ndim), dim)
    if dim is not None:
        dim = normalize_dim(dim, x.ndim)
    if x.dtype.kind == "c":
        raise refuse("aminmax_cpu", x)
    return amin(x, dim, keepdim), amax(x, dim, keepdim)


@gives_positions(1)
def _extremum_with_indices(name: str, x: ndarray, dim: int, keepdim: bool = False) -> Pair:
    """Return the maximum or minimum along `dim` and the index of its first occurrence, or the first NaN if there is one."""
    dim = normalize_dim(dim, x.ndim)
    if x.ndim and x.shape[dim] == 0:
        _require_elements(f"{name}()", x, (dim,), dim)
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    if x.ndim == 0:
        return x.copy(), asarray(0, INT64)
    if x.size == 0:
        indices = _no_elements(x, dim, keepdim)
        return indices.astype(x.dtype), indices
    places = _places(name, x, dim, True)
    # `gather` would copy the whole array if it is not in row-major order.
    values = gather(x, dim, places) if x.flags.c_contiguous else numpy.take_along_axis(x, places, dim)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


max_with_indices = functools.partial(_extremum_with_indices, "max")
min_with_indices = functools.partial(_extremum_with_indices, "min")


def _places(name: str, x: ndarray, dim: int, keepdim: bool) -> ndarray:
    if x.size >= THREADED:
        found = of_parts(lambda part: numpy.expand_dims(_places_of_rows(name, part, dim), dim), x, (dim,))
        return found if keepdim else found.squeeze(dim)
    return row_major(asarray(x.argmax(dim, keepdims=keepdim) if name == "max" else x.argmin(dim, keepdims=keepdim)))


def _places_of_rows(name: str, x: ndarray, dim: int) -> ndarray:
    rows = contiguous(numpy.moveaxis(x, dim, -1))  # NumPy would copy all of it too, but element by element
    return asarray(rows.argmax(-1) if name == "max" else rows.argmin(-1))


def _no_elements(x: ndarray, dim: int, keepdim: bool) -> ndarray:
    shape = x.shape[:dim] + ((1,) if keepdim else ()) + x.shape[dim + 1 :]
    return numpy.empty(shape, INT64)


@gives_positions()
def _arg_extremum(name: str, x: ndarray, dim: int | None = None, keepdim: bool = False) -> ndarray:
    """Return the index of the first maximum or minimum (or the first NaN, if any) along `dim`, or in the flattened array."""
    if x.dtype.kind in "cb":
        kind = "complex" if x.dtype.kind == "c" else "bool"
        raise RuntimeError(f"arg{name}(): does not support {kind} input")
    if dim is None:
        if x.size == 0:
            raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        index = asarray(x.argmax() if name == "max" else x.argmin())
        return index.reshape((1,) * x.ndim) if keepdim else index
    dim = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        return asarray(0, INT64)
    if x.size == 0:
        _require_elements(f"arg{name}()", x, (dim,), dim)
        return _no_elements(x, dim, keepdim)
    return _places(name, x, dim, keepdim)


argmax = functools.partial(_arg_extremum, "max")
argmin = functools.partial(_arg_extremum, "min")


# --- truth ----------------------------------------------------------------------------------------------------


def _all_or_any(
    ufunc: numpy.ufunc, name: str, x: ndarray, dim: Dims = None, keepdim: bool = False, out: ndarray | None = None
) -> ndarray:
    """Return whether all or any elements over `dim` are nonzero, as uint8 for uint8, else as bool. `()` reduces nothing."""
    if dim != ():
        found = _compiled(x, name, dim, keepdim, None, out)
        if found is not NotImplemented:
            return found
    result = _of_few(ufunc, x if x.dtype.kind == "b" or x.size < THREADED else x != 0, dim, keepdim, bool)
    return result.astype(numpy.uint8) if x.dtype.char == "B" else result


all = functools.partial(_all_or_any, numpy.logical_and, "all")
any = functools.partial(_all_or_any, numpy.logical_or, "any")


def count_nonzero(x: ndarray, dim: Dims = None) -> ndarray:
    """Return the number of nonzero elements over `dim`, in int64."""
    found = _compiled(x, "count_nonzero", dim, False, None)
    if found is not NotImplemented:
        return found
    if names_all(dim):
        return asarray(numpy.count_nonzero(x), INT64)
    return sum(x != 0, normalize_dims(dim, x.ndim))


def hash_tensor(x: ndarray, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> ndarray:
    """Return the exclusive or of the bits of the elements, which are widened to 64 bits first."""
    if x.dtype.kind == "c":
        raise refuse("hash_tensor_cpu", x)
    dims = normalize_dims(dim, x.ndim)
    if dim in (None, ()) and not x.size:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    for each in dims:
        if not x.shape[each]:
            raise IndexError(f"hash_tensor(): Expected reduction dim {each} to have non-zero size.")
    wide = x.astype(numpy.int64 if x.dtype.kind in "iub" else numpy.float64)
    reduce: Any = numpy.bitwise_xor.reduce
    return asarray(reduce(wide.view(numpy.uint64), dims, keepdims=keepdim), order="C")


# --- in parts --------------------------------------------------------------------------------------------------


def of_parts(reduce: Callable[..., ndarray], x: ndarray, dims: tuple[int, ...], *others: ndarray) -> ndarray:
    """Return `reduce(x, *others)`, which keeps `dims`, part by part, so that copies take no more memory than a part."""
    kept = [axis for axis in range(x.ndim) if axis not in dims and x.shape[axis] > 1]
    if x.size <= PART or not kept:
        return reduce(x, *others)
    axis = max(kept, key=lambda axis: (x.shape[axis] >= SHORT, abs(x.strides[axis])))
    along, *others_along = (numpy.moveaxis(each, axis, 0) for each in (x, *others))
    length = max(1, len(along) * PART // x.size)
    found: dict[int, ndarray] = {}

    def part(start: int, stop: int) -> None:
        found[start] = reduce(*(numpy.moveaxis(each[start:stop], 0, axis) for each in (along, *others_along)))

    parallel_rows(part, len(along), along[0].nbytes, tile_rows=length)
    return numpy.concatenate([found[start] for start in sorted(found)], axis)
