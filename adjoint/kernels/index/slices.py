"""Writing to slices along one dimension, one index for each, and combining them; as `scatter` does with elements.

Functions whose names end in an underscore write into their first argument, after every check has passed.
"""

import math
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import LOOPS, MOVED
from ..memory.copying import clone, contiguous
from ..runtime.floating import compute_dtype, refuse, type_name, widen
from ..runtime.shapes import normalize_dim, require_dims
from .scatter import (
    INDEX_TYPES,
    REDUCTIONS,
    add_rows,
    copied,
    few_written,
    identity_of,
    make_means,
    out_of_bounds,
    require_reducible,
    take_rows,
)

_INT64 = numpy.dtype(numpy.int64)

_SLICE = 256  # elements of a slice that NumPy rather combines as a whole


def index_add(x: ndarray, dim: int, index: ndarray, source: ndarray, alpha: complex = 1) -> ndarray:
    """A copy of `x` to whose slices along `dim` named by `index` those of `source`, times `alpha`, are added.

    Raises:
        RuntimeError: if types or shapes do not fit, or an index is out of bounds.
        IndexError: if `dim` is out of range or `index` has more than one dimension.
    """
    return index_add_(copied(x), dim, index, source, alpha)


def index_add_(x: ndarray, dim: int, index: ndarray, source: ndarray, alpha: complex = 1) -> ndarray:
    """As `index_add`, into `x`."""
    if alpha == 1:
        source = source.copy() if numpy.may_share_memory(x, source) else source
        if few_written(x, dim, index, source, "add"):
            return x
    dim = normalize_dim(dim, x.ndim)
    _check_index_add(x, dim, index, source)
    if not x.size:
        return x
    if alpha != 1:
        source = source * asarray(alpha).astype(x.dtype)
    if x.ndim == 0:
        x += source * x.dtype.type(index.size)
        return x
    whole = numpy.ascontiguousarray(widen(x))
    index = index.reshape(-1).astype(_INT64, copy=False)
    if dim == 0:
        add_rows(
            whole.reshape(len(x), math.prod(x.shape[1:])),
            index,
            widen(source).reshape(len(index), math.prod(x.shape[1:])),
        )
    else:
        combine_slices(whole, dim, index, widen(source), numpy.add)
    if whole is not x:
        x[...] = whole
    return x


def slice_positions(shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Where in the flattened array the elements of slices along `dim` are: (outer, number of slices, inner)."""
    inner = math.prod(shape[dim + 1 :])
    outer = math.prod(shape[:dim])
    return (
        numpy.arange(0, outer * shape[dim] * inner, shape[dim] * inner or 1)[:outer].reshape(-1, 1, 1)
        + (index * inner).reshape(-1, 1)
        + numpy.arange(inner)
    )


def _check_index_add(x: ndarray, dim: int, index: ndarray, source: ndarray, name: str = "index_add_") -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{type_name(index.dtype)} and size: {list(index.shape)}"
        )
    if index.dtype not in INDEX_TYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {type_name(index.dtype)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"{name}(): self ({type_name(x.dtype)}) and source ({type_name(source.dtype)}) must have the same "
            "scalar type"
        )
    slices = source.shape[dim] if source.ndim > dim else 1
    if index.size != slices:
        require_dims(source, dim)
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({slices}), "
            f"for dim: {dim}"
        )
    if source.ndim != x.ndim or source.shape[:dim] != x.shape[:dim] or source.shape[dim + 1 :] != x.shape[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(x.shape)} source.shape = {list(source.shape)}"
        )
    length = x.shape[dim] if x.ndim else 1
    wrong = out_of_bounds(index, length)
    if wrong is not None and (name == "index_reduce_" or x.ndim <= 1):
        raise IndexError("index out of range in self")
    if wrong is not None and x.size:  # PyTorch does not look where there is nothing to add
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")


def index_reduce(
    x: ndarray, dim: int, index: ndarray, source: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    """A copy of `x` with whose slices along `dim` named by `index` those of `source` are combined, as `scatter_reduce` does.

    Raises:
        RuntimeError: if types or shapes do not fit.
        IndexError: if `dim` or an index is out of range or `index` has more than one dimension.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = normalize_dim(dim, x.ndim)
    _check_index_add(x, dim, index, source, "index_reduce_")
    if x.ndim < 2 and x.dtype.kind in "bc":
        raise refuse("index_func_", x)
    require_reducible(x, reduce)
    result = copied(x)
    if not source.size:
        return result
    x, source = result.reshape(result.shape or 1), source.reshape(source.shape or 1)
    index = index.astype(_INT64, copy=False).reshape(-1)
    ufunc = REDUCTIONS[reduce]
    if not include_self:
        x[(slice(None),) * dim + (index,)] = identity_of(ufunc, x.dtype)
    whole = widen(x)
    combine_slices(whole, dim, index, widen(source), ufunc)
    if whole is not x:
        x[...] = whole
    if reduce == "mean":
        counts = numpy.bincount(index, minlength=x.shape[dim])
        make_means(x, counts.reshape([-1 if d == dim else 1 for d in range(x.ndim)]), include_self)
    return result


def combine_slices(x: ndarray, dim: int, index: ndarray, source: ndarray, ufunc: Any) -> None:
    """`x[index[k]] = ufunc(x[index[k]], source[k])` for slices along `dim` of a contiguous array, one after another."""
    if (
        LOOPS.takes(source.size, MOVED)
        and LOOPS.run("index.scattering.scatter", x, dim, index, source, ufunc.__name__) is not NotImplemented
    ):
        return
    if source.size < _SLICE * index.size:
        ufunc.at(x.reshape(-1), slice_positions(x.shape, dim, index).reshape(-1), source.reshape(-1))
        return
    target, source = numpy.moveaxis(x, dim, 0), numpy.moveaxis(source, dim, 0)
    for place, values in zip(index.tolist(), source, strict=True):
        ufunc(target[place], values, out=target[place])


def index_copy(x: ndarray, dim: int, index: ndarray, source: ndarray) -> ndarray:
    """A copy of `x` whose slices along `dim` named by `index` are those of `source`.

    Raises:
        RuntimeError: if types or shapes do not fit.
        IndexError: if `dim` or an index is out of range, or the number of indices does not fit.
    """
    return index_copy_(copied(x), dim, index, source)


def index_copy_(x: ndarray, dim: int, index: ndarray, source: ndarray) -> ndarray:
    """As `index_copy`, into `x`."""
    dim = normalize_dim(dim, x.ndim)
    _check_index_copy(x, dim, index, source)
    if x.ndim == 0:
        x[...] = source.reshape(())
    else:
        x[(slice(None),) * dim + (index.reshape(-1),)] = source
    return x


def _check_index_copy(x: ndarray, dim: int, index: ndarray, source: ndarray) -> None:
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    slices = source.shape[dim] if source.ndim else 1
    if source.ndim == 0 and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if x.ndim and source.ndim and source.ndim != x.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    if index.dtype != _INT64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {type_name(index.dtype)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {type_name(x.dtype)} and "
            f"(source) {type_name(source.dtype)}"
        )
    mine, theirs = x.shape[:dim] + x.shape[dim + 1 :], source.shape[:dim] + source.shape[dim + 1 :]
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} "
            "at dimension 0."
        )
    if index.size != slices:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({slices})"
        )
    length = x.shape[dim] if x.ndim else 1
    wrong = out_of_bounds(index, length)
    if wrong is not None:
        raise IndexError(f"index_copy_(): index {wrong} is out of bounds for dimension {dim} with size {length}")


def index_fill(x: ndarray, dim: int, index: ndarray, value: ndarray | complex) -> ndarray:
    """A copy of `x` whose slices along `dim` named by `index`, from the end if negative, hold `value`.

    Raises:
        RuntimeError: if `value` has dimensions or `index` more than one.
        IndexError: if `dim` or an index is out of range, or `index` is not of int64.
    """
    return index_fill_(clone(x), dim, index, value)


def index_fill_(x: ndarray, dim: int, index: ndarray, value: ndarray | complex) -> ndarray:
    """As `index_fill`, into `x`."""
    dim = normalize_dim(dim, x.ndim)
    if isinstance(value, ndarray) and value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if index.dtype != _INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    length = x.shape[dim] if x.ndim else 1
    wrong = out_of_bounds(index, length, -length)
    if wrong is not None:
        if 0 in x.shape[:dim] + x.shape[dim + 1 :]:
            return x  # PyTorch does not look where there is nothing to fill
        raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")
    if isinstance(value, complex) and x.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    filled = asarray(value).astype(x.dtype)
    if x.ndim == 0:
        if index.size:
            x[...] = filled
        return x
    x[(slice(None),) * dim + (index.reshape(-1),)] = filled
    return x


def sum_of_runs(x: ndarray, bounds: ndarray, index: ndarray | None = None, mean: bool = False) -> ndarray:
    """Sums (means if `mean`; 0 of nothing) of slices of `x` along the first dimension: sum g of those from `bounds[g]` to `bounds[g + 1]`.

    If there is an `index`, these are slices of `x[index]`, which is not made. `bounds` are places in it.

    Raises:
        IndexError: if an index is not one of a slice.
        RuntimeError: if the bounds descend, or are outside.
    """
    count = len(x) if index is None else index.size
    if bounds[0] < 0 or bounds[-1] > count or (bounds[1:] < bounds[:-1]).any():
        raise RuntimeError(f"the bounds of runs of {count} rows must ascend, from 0 on")
    if index is not None and out_of_bounds(index, len(x)) is not None:
        raise IndexError("index out of range in self")
    if x.dtype.itemsize == 2 and x.dtype.kind != "i":
        rows = x if index is None else take_rows(x, index)
        return sum_of_runs(widen(rows), bounds, None, mean).astype(x.dtype)
    shape = (len(bounds) - 1, *x.shape[1:])
    matrix = contiguous(x).reshape(len(x), math.prod(x.shape[1:]))
    if LOOPS.takes(count * matrix.shape[1], MOVED):
        found = LOOPS.run("index.scattering.sum_of_runs", matrix, bounds, index, mean)
        if found is not NotImplemented:
            return asarray(found).reshape(shape)
    rows = (matrix if index is None else matrix.take(index, 0))[: bounds[-1]]
    result = numpy.zeros((shape[0], matrix.shape[1]), x.dtype)
    filled = bounds[1:] > bounds[:-1]
    if filled.any():
        result[filled] = numpy.add.reduceat(rows, bounds[:-1][filled], 0)
    if mean:
        result /= _sizes(bounds, result)
    return result.reshape(shape)


def _sizes(bounds: ndarray, sums: ndarray) -> ndarray:
    """How many slices are in each of `sums`, but at least 1, as a column."""
    sizes = numpy.maximum(numpy.diff(bounds), 1).astype(compute_dtype(sums.dtype))
    return sizes.reshape(-1, *[1] * (sums.ndim - 1))


def sum_of_runs_backward(
    grad: ndarray, shape: tuple[int, ...], bounds: ndarray, index: ndarray | None = None, mean: bool = False
) -> ndarray:
    """The transpose of `sum_of_runs` of an array of `shape`: each slice's gradient is that of its sum."""
    if mean:
        grad = (widen(grad) / _sizes(bounds, grad)).astype(grad.dtype, copy=False)
    rows = take_rows(grad, numpy.repeat(numpy.arange(len(grad)), numpy.diff(bounds)))
    result = numpy.zeros(shape, grad.dtype)
    used = slice(bounds[0], bounds[-1])
    if index is not None:
        return index_add_(result, 0, index[used], rows)
    result[used] = rows
    return result
