"""Reading and writing at the positions along one dimension that index arrays contain.

Functions with names that end in an underscore write into their first argument after every check has passed. The others
return a new array. If one element is written several times, sums contain all contributions, and a plain write keeps the
last value in the order of the index. Results are therefore the same in every run.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.acceleration import SHAPES
from ...codegen.plans import NUMPY, Plan, compiled, replayed
from ...codegen.recording import recordable, unchanged
from ...dtypes import from_numpy
from ..memory.copying import clone, contiguous, copy_, widen
from ..runtime.costs import JOINED, MOVED, SHORT
from ..runtime.floating import INT64, compute_dtype, refuse, type_name
from ..runtime.layout import row_major, row_major_copy
from ..runtime.positions import as_places
from ..runtime.scalar import scalar_array
from ..runtime.shapes import normalize_dim, require_dims
from .places import few_places, few_positions, flat_positions, out_of_bounds, require_in_bounds, slices_of

_INDEX_TYPES = (INT64, numpy.dtype(numpy.int32))

# --- along one dimension, one index for each element ----------------------------------------------------------


_GATHERED = compiled("index.lookup.gathered", least=MOVED)
_COMBINED = compiled("index.scattering.scatter", least=MOVED)
_TAKE = compiled("index.lookup.take", least=MOVED)
_TAKE_ROWS = compiled("index.lookup.take", least=JOINED)


@replayed
def gather(x: ndarray, dim: int, index: ndarray, sparse_grad: bool = False) -> ndarray:
    """Return elements of `x` along `dim`. For a matrix and `dim` 0, `result[i][j]` is `x[index[i][j]][j]`."""
    positions = few_positions(x.shape, dim, index)
    if positions is not None:
        return x.take(positions)
    dim = normalize_dim(dim, x.ndim)
    if index.size == 0:
        return numpy.empty(index.shape, x.dtype)
    if index.dtype not in _INDEX_TYPES:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for axis in range(x.ndim):
        if axis != dim and index.shape[axis] > x.shape[axis]:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index {list(index.shape)} to be no larger than self "
                f"{list(x.shape)} apart from dimension {dim}"
            )
    if (slices := slices_of(x.shape, dim, index)) is not None:
        shape, dim, index_of_slices = slices
        return take_rows(x.reshape(shape), index_of_slices, dim).reshape(index.shape)
    found = _GATHERED.run(index.size, x, dim, index)
    if found is not None and found is not NotImplemented:
        return asarray(found)
    require_in_bounds(index, x.shape, dim)
    return asarray(x.reshape(-1).take(flat_positions(x.shape, dim, index)))


@replayed
def scatter(x: ndarray, dim: int, index: ndarray, src: ndarray | complex, reduce: str | None = None) -> ndarray:
    """Return a copy of `x` with `src` at `index`. For matrices and `dim` 0, `result[index[i][j]][j]` is `src[i][j]`.

    `src` may be a number. `reduce` is None, 'add' or 'multiply'. See `scatter_reduce` for other reductions.
    """
    if reduce in _ALONE and SHAPES.recorder is None:
        found = _scattered(x, dim, index, src, _ALONE[reduce])
        if found is not None:
            return found
    return scatter_(copied(x), dim, index, src, reduce)


_ALONE = {None: "put", "add": "add", "multiply": "multiply"}
"""The name of each reduction of single elements in compiled loops."""

_UFUNCS = {None: None, "add": numpy.add, "multiply": numpy.multiply}
"""The ufunc that combines two numbers. If there is none, the later number replaces the earlier one."""


def _scattered(x: ndarray, dim: int, index: ndarray, src: ndarray | complex, how: str) -> ndarray | None:
    """Write or combine `src` in a copy of `x` by a compiled loop. Return None without a loop or if an index is out of bounds.

    An index for slices is left to loops over slices, which need no copy of it.
    """
    if 0 in index.strides and slices_of(x.shape, _check_scatter(x, dim, index, src), index) is not None:
        return None
    if not isinstance(src, ndarray):
        src = scalar_array(src, from_numpy(x.dtype))
    elif not (src.ndim and x.ndim):
        return None
    found: Any = _scattered_by_loops(contiguous(index), contiguous(x), dim, src, how)
    return None if found is NotImplemented else found


@compiled("index.scattering.scattered", least=MOVED, cost=1)
def _scattered_by_loops(index: ndarray, x: ndarray, dim: int, src: ndarray, how: str) -> Plan:
    """Return the copy by a compiled loop, or None if an index is out of bounds. `src` without dimensions is a number."""
    dim = _check_scatter(x, dim, index, src if src.ndim else 0)
    return Plan((), run=NUMPY.run, compiled=(index, x, dim, src, how) if x.ndim else NotImplemented)


def one_hot(classes: ndarray, count: int) -> ndarray:
    """Return int64 zeros with a one at each class in a new last dimension of size `count`. The classes are in bounds."""
    result = numpy.zeros((*classes.shape, count), INT64)
    result.reshape(-1)[classes.reshape(-1) + numpy.arange(0, result.size, count)] = 1
    return result


def copied(x: ndarray) -> ndarray:
    """Return a row-major copy."""
    if x.size < MOVED and SHAPES.recorder is None:
        return x.copy() if type(x) is ndarray else numpy.array(x, order="C")  # also for NumPy's scalars
    return row_major_copy(x)


@replayed
def scatter_(x: ndarray, dim: int, index: ndarray, src: ndarray | complex, reduce: str | None = None) -> ndarray:
    """Do the same as `scatter` in place in `x`."""
    if _few_written(x, dim, index, src, reduce):
        return x
    dim = _check_scatter(x, dim, index, src)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if index.size == 0:
        return x
    combine(x, *_located(x.shape, dim, index), _source(x, index, src), _UFUNCS[reduce])
    return x


def _located(shape: tuple[int, ...], dim: int, index: ndarray) -> tuple[tuple[int, ...], int, ndarray]:
    """Return indices in bounds for `combine`, as a vector of indices of slices if the index repeats its elements in memory."""
    slices = slices_of(shape, dim, index)
    if slices is None:
        require_in_bounds(index, shape, dim)
    return slices or (shape, dim, index)


def combine(x: ndarray, shape: tuple[int, ...], dim: int, index: ndarray, values: ndarray, ufunc: Any) -> None:
    """Write `values` at the positions along `dim` of `x`, viewed with `shape`, that `index` contains.

    The indices are in bounds. A vector of indices selects slices if there are more dimensions. There is one value for each
    position, or one for all. A `ufunc` combines each value with the element at its position, one after another.
    """
    if not x.size:
        return
    of_slices = index.ndim == 1 < len(shape)
    if ufunc is None and not of_slices and not x.flags.c_contiguous:
        x.flat[flat_positions(shape, dim, index).reshape(-1)] = values.reshape(-1)
        return
    whole = row_major(x if ufunc is None else widen(x))
    target = whole.reshape(shape)
    if of_slices:
        values = values.copy() if numpy.may_share_memory(x, values) else values
        sizes = (*shape[:dim], index.size, *shape[dim + 1 :])
        values = values.reshape(sizes) if values.ndim else numpy.broadcast_to(values, sizes)
    values = values if ufunc is None else row_major(widen(values))
    if ufunc is None and (of_slices or len(shape) == 1):
        places: Any = (*(slice(None),) * dim, index)
        target[places] = values
    else:
        how = "put" if ufunc is None else ufunc.__name__
        if _COMBINED.run(max(index.size, values.size), target, dim, index, values, how) is NotImplemented:
            positions = flat_positions(shape, dim, index, values.shape if of_slices else None).reshape(-1)
            flat, values = whole.reshape(-1), values.reshape(-1)
            if ufunc is None:
                flat[positions] = values
            elif len(shape) == 1 or _COMBINED.run(positions.size, flat, 0, positions, values, how) is NotImplemented:
                ufunc.at(flat, positions, values)
    if whole is not x:
        copy_(x, whole.reshape(x.shape))


def _reduce(
    x: ndarray, shape: tuple[int, ...], dim: int, index: ndarray, values: ndarray, reduce: str, include_self: bool
) -> ndarray:
    """Do the same as `scatter_reduce_` with the arguments of `combine`."""
    ufunc = _REDUCTIONS[reduce]
    if not include_self:
        combine(x, shape, dim, index, asarray(_identity(ufunc, x.dtype)), None)
    combine(x, shape, dim, index, values, ufunc)
    if reduce == "mean":
        if index.ndim == 1 < len(shape):
            along = [-1 if axis == dim else 1 for axis in range(len(shape))]
            counts = numpy.bincount(as_places(index), minlength=shape[dim]).reshape(along)
        else:
            counts = numpy.zeros(shape, numpy.int32)
            combine(counts, shape, dim, index, numpy.ones((), counts.dtype), numpy.add)
        counts = counts if shape == x.shape else numpy.broadcast_to(counts, shape).reshape(x.shape)
        _make_means(x, counts, include_self)
    return x


def _few_written(x: ndarray, dim: int, index: ndarray, src: Any, reduce: str | None, of_slices: bool = False) -> bool:
    """Write or add a few elements or slices of `src` to a contiguous `x` if shapes match and sums need no wider dtype."""
    if not isinstance(src, ndarray):
        if reduce is not None:
            return False
        src = scalar_array(src, from_numpy(x.dtype))
    elif not of_slices and src.shape != index.shape:
        src = src[_leading(index.shape)] if src.ndim == index.ndim else src
        if src.shape != index.shape:
            return False
    if src.dtype is not x.dtype or not x.flags.c_contiguous:
        return False
    if reduce is not None and (reduce != "add" or x.dtype.itemsize == 2):
        return False
    positions = few_positions(x.shape, dim, index, src.shape if of_slices else None)
    if positions is None:
        return False
    if reduce is None:
        x.put(as_places(positions), src)
    else:
        numpy.add.at(x.reshape(-1), positions, src)
    return True


@functools.lru_cache(256)
def _leading(sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the index of an array of these sizes at the beginning of a larger array."""
    return tuple(map(slice, sizes))


@replayed
def scatter_add(x: ndarray, dim: int, index: ndarray, src: ndarray) -> ndarray:
    """Return a copy of `x` with `src` added at `index`. For matrices and `dim` 0, `result[index[i][j]][j] += src[i][j]`."""
    return scatter(x, dim, index, src, "add")


@replayed
def scatter_add_(x: ndarray, dim: int, index: ndarray, src: ndarray) -> ndarray:
    """Do the same as `scatter_add` in place in `x`."""
    return scatter_(x, dim, index, src, "add")


def scatter_reduce(
    x: ndarray, dim: int, index: ndarray, src: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    """Return a copy of `x` in which elements of `src` are combined at the positions that `index` contains.

    `reduce` is 'sum', 'prod', 'mean' (rounded down for integers), 'amax' or 'amin'. If `include_self`, the elements of
    `x` at these positions take part.
    """
    if reduce in ("sum", "prod", "amax", "amin"):
        ufunc = _REDUCTIONS[reduce]
        start = x if include_self else _scattered(x, dim, index, _identity(ufunc, x.dtype), "put")
        found = None if start is None else _scattered(start, dim, index, src, ufunc.__name__)
        if found is not None:
            return found
    return scatter_reduce_(copied(x), dim, index, src, reduce, include_self)


def scatter_reduce_(
    x: ndarray, dim: int, index: ndarray, src: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    """Do the same as `scatter_reduce` in place in `x`."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = _check_scatter(x, dim, index, src)
    _require_reducible(x, reduce)
    if index.size == 0:
        return x
    if reduce == "sum" and include_self:
        return scatter_(x, dim, index, src, "add")
    return _reduce(x, *_located(x.shape, dim, index), _source(x, index, src), reduce, include_self)


def _require_reducible(x: ndarray, reduce: str) -> None:
    """Raise an error if `reduce` does not support the dtype."""
    if (x.dtype.kind == "c" and reduce in ("amax", "amin")) or (x.dtype.kind == "b" and reduce == "mean"):
        raise refuse(f"scatter_gather_tensor_cpu_reduce_{reduce}", x)


def _make_means(x: ndarray, counts: ndarray, include_self: bool) -> None:
    """Divide sums by the number of their elements, including the previous element if `include_self`."""
    counts = counts + 1 if include_self else numpy.maximum(counts, 1)
    divide = numpy.floor_divide if x.dtype.kind in "iu" else numpy.true_divide
    divide(x, counts.astype(compute_dtype(x.dtype)), out=x, casting="unsafe")


_REDUCTIONS = {
    "sum": numpy.add,
    "prod": numpy.multiply,
    "mean": numpy.add,
    "amax": numpy.maximum,
    "amin": numpy.minimum,
}


def _identity(ufunc: numpy.ufunc, dtype: numpy.dtype[Any]) -> Any:
    """Return the neutral element of the ufunc."""
    if ufunc is numpy.add or ufunc is numpy.multiply:
        return dtype.type(0 if ufunc is numpy.add else 1)
    if dtype.kind == "b":
        return ufunc is numpy.minimum
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return limits.min if ufunc is numpy.maximum else limits.max
    return dtype.type(-math.inf if ufunc is numpy.maximum else math.inf)


def _check_scatter(x: ndarray, dim: int, index: ndarray, src: ndarray | complex) -> int:
    """Return the dimension counted from the front if types and shapes match. Otherwise raise an error."""
    dim = normalize_dim(dim, x.ndim)
    if index.size and index.dtype not in _INDEX_TYPES:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if isinstance(src, ndarray) and src.dtype != x.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return dim
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if isinstance(src, ndarray) and 0 < src.ndim < index.ndim and all(map(int.__le__, index.shape, src.shape)):
        normalize_dim(src.ndim, src.ndim)  # raises an error
    if isinstance(src, ndarray) and max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    in_self = all(axis == dim or index.shape[axis] <= x.shape[axis] for axis in range(x.ndim))
    in_src = not isinstance(src, ndarray) or all(map(int.__le__, index.shape, src.shape))
    if not (in_self and in_src):
        apart = (
            f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {dim}"
        )
        if isinstance(src, ndarray):
            apart += f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(apart)
    return dim


def _source(x: ndarray, index: ndarray, src: ndarray | complex) -> ndarray:
    """Return the written values in row-major order, one for each entry of `index`, or the array of a number."""
    if not isinstance(src, ndarray):
        return unchanged(scalar_array(src, from_numpy(x.dtype)))
    if src.shape != index.shape and src.ndim:
        src = src[_leading(index.shape)] if index.ndim else src[0]
    return row_major(src.reshape(index.shape))


# --- along one dimension, one index for each slice ------------------------------------------------------------


@recordable
def index_select(x: ndarray, dim: int, index: ndarray) -> ndarray:
    """Return the slices of `x` along `dim` that `index` selects."""
    if few_places(x, dim, index):
        return x.take(index)
    dim = normalize_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in _INDEX_TYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if x.ndim == 0 and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    length = x.shape[dim] if x.ndim else 1
    wrong = out_of_bounds(index, length)
    if not length and index.size and x.ndim > 1:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if wrong is not None:
        if dim == 0:
            raise IndexError("index out of range in self")
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={length}")
    return take_rows(x, index.reshape(-1), dim) if x.ndim else numpy.array(x)


def take_rows(x: ndarray, index: ndarray, dim: int = 0) -> ndarray:
    """Return `x.take(index, dim)` for indices that are known to be in bounds."""
    if not x.flags.c_contiguous and index.size <= x.shape[dim]:
        return row_major(x[(slice(None),) * (dim % x.ndim) + (index,)])  # `take` would copy the whole array first
    width = math.prod(x.shape[dim + 1 :])
    # NumPy copies longer rows at full speed with one thread.
    take = _TAKE if width < SHORT else _TAKE_ROWS
    found = take.run(index.size * math.prod(x.shape[:dim]) * width, x, index, dim)
    return asarray(x.take(index, dim) if found is NotImplemented else found)


@replayed
def index_add(x: ndarray, dim: int, index: ndarray, source: ndarray, alpha: complex = 1) -> ndarray:
    """Return a copy of `x` with slices of `source`, times `alpha`, added to the slices along `dim` that `index` selects."""
    return index_add_(copied(x), dim, index, source, alpha)


@replayed
def index_add_(x: ndarray, dim: int, index: ndarray, source: ndarray, alpha: complex = 1) -> ndarray:
    """Do the same as `index_add` in place in `x`."""
    if numpy.may_share_memory(x, source):
        source = source.copy()
    if alpha == 1 and _few_written(x, dim, index, source, "add", of_slices=True):
        return x
    dim = normalize_dim(dim, x.ndim)
    _check_index_add(x, dim, index, source)
    if not x.size:
        return x
    factor = scalar_array(alpha, from_numpy(x.dtype))
    if x.ndim == 0:
        x += source * factor * x.dtype.type(index.size)
        return x
    places = index.reshape(-1)
    if alpha == 1:
        combine(x, x.shape, dim, places, source, numpy.add)
        return x
    step = max(1, JOINED * places.size // max(source.size, 1))
    for start in range(0, places.size, step):  # the products take little memory
        at = slice(start, start + step)
        part = source if step >= places.size else source[(slice(None),) * dim + (at,)]
        combine(x, x.shape, dim, places[at], part * factor, numpy.add)
    return x


def _check_index_add(x: ndarray, dim: int, index: ndarray, source: ndarray, name: str = "index_add_") -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{type_name(index.dtype)} and size: {list(index.shape)}"
        )
    if index.dtype not in _INDEX_TYPES:
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
    if wrong is not None and x.size:  # PyTorch does not check if there is nothing to add
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")


def index_reduce(
    x: ndarray, dim: int, index: ndarray, source: ndarray, reduce: str, include_self: bool = True
) -> ndarray:
    """Return a copy of `x`. The slices that `index` selects are combined with slices of `source` (see `scatter_reduce`)."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = normalize_dim(dim, x.ndim)
    _check_index_add(x, dim, index, source, "index_reduce_")
    if x.ndim < 2 and x.dtype.kind in "bc":
        raise refuse("index_func_", x)
    _require_reducible(x, reduce)
    result = copied(x)
    if not source.size:
        return result
    return _reduce(result, result.shape or (1,), dim, index.reshape(-1), source, reduce, include_self)


def index_fill(x: ndarray, dim: int, index: ndarray, value: ndarray | complex) -> ndarray:
    """Return a copy of `x` with `value` in the slices along `dim` at `index`, where negative indices count from the end."""
    return index_fill_(clone(x), dim, index, value)


def index_fill_(x: ndarray, dim: int, index: ndarray, value: ndarray | complex) -> ndarray:
    """Do the same as `index_fill` in place in `x`."""
    dim = normalize_dim(dim, x.ndim)
    if isinstance(value, ndarray) and value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if index.dtype != INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, complex) and x.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    filled = value.astype(x.dtype) if isinstance(value, ndarray) else scalar_array(value, from_numpy(x.dtype))
    target = x if x.ndim else x.reshape(1)
    try:
        target[(slice(None),) * dim + (index.reshape(-1),)] = filled
    except IndexError:
        if 0 not in x.shape[:dim] + x.shape[dim + 1 :]:  # PyTorch does not check if there is nothing to fill
            length = target.shape[dim]
            wrong = out_of_bounds(index, length, -length)
            raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {length}") from None
    return x
