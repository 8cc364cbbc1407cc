"""Where indices along one dimension point: whether in bounds, in the flattened array, and whether to whole slices."""

import math

import numpy
from numpy import ndarray

from ...codegen.acceleration import LOOPS, MOVED

_INT64 = numpy.dtype(numpy.int64)
_UINT64 = numpy.dtype(numpy.uint64)


def few_places(x: ndarray, dim: int, index: ndarray) -> bool:
    """Whether `index` holds a few places, in bounds, in an array of one dimension."""
    if x.ndim != 1 or index.ndim != 1 or index.dtype is not _INT64 or not 0 < index.size < MOVED:
        return False
    unsigned = index.view(_UINT64)  # in which negative numbers are large ones
    return bool(-1 <= dim <= 0 and unsigned.item(unsigned.argmax()) < x.size and not LOOPS.every_size)


def require_in_bounds(index: ndarray, shape: tuple[int, ...], dim: int) -> None:
    """Raise unless all of `index` are indices along `dim` of an array of this shape."""
    length = shape[dim] if shape else 1
    wrong = out_of_bounds(index, length)
    if wrong is not None:
        raise RuntimeError(
            f"index {wrong} is out of bounds for dimension {dim % max(len(shape), 1)} with size {length}"
        )


def out_of_bounds(index: ndarray, length: int, first: int = 0) -> int | None:
    """The first index that is less than `first` or not less than `length`, if there is one."""
    if LOOPS.takes(index.size, MOVED) and LOOPS.run("index.lookup.any_outside", index, first, length) is False:
        return None
    # Where extrema are is cheaper to find than what they are.
    if index.size == 0 or (index.item(index.argmin()) >= first and index.item(index.argmax()) < length):
        return None
    return int(index[(index < first) | (index >= length)].reshape(-1)[0])


def flat_positions(x: ndarray, dim: int, index: ndarray) -> ndarray:
    """Where in the flattened `x` each entry of `index` along `dim`, which is in bounds, points."""
    index = index.astype(_INT64, copy=False)
    if x.ndim == 2 == index.ndim:
        columns = x.shape[1]
        if dim == 0:
            return index * columns + numpy.arange(index.shape[1])
        return index + numpy.arange(0, len(index) * columns, columns)[:, None]
    stride = math.prod(x.shape[dim + 1 :])
    positions = index * stride if stride != 1 else index
    for axis, count in enumerate(index.shape):
        if axis != dim and count > 1:
            step = math.prod(x.shape[axis + 1 :])
            offsets = numpy.arange(0, count * step, step).reshape((-1,) + (1,) * (index.ndim - axis - 1))
            positions = positions + offsets
    return positions


def slice_positions(shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Where in the flattened array the elements of slices along `dim` are: (outer, number of slices, inner)."""
    inner = math.prod(shape[dim + 1 :])
    outer = math.prod(shape[:dim])
    return (
        numpy.arange(0, outer * shape[dim] * inner, shape[dim] * inner or 1)[:outer].reshape(-1, 1, 1)
        + (index * inner).reshape(-1, 1)
        + numpy.arange(inner)
    )


def slices_of(shape: tuple[int, ...], dim: int, index: ndarray) -> tuple[tuple[int, ...], int, ndarray] | None:
    """An index for each element as one for each slice, if it is expanded: without a copy of it.

    That is a shape in which to see an array of `shape`, a dimension of it, and a vector of indices along that; None if
    the index differs within slices, or there are others that it does not name. Raises if an index is out of bounds.
    """
    sizes = index.shape
    if sizes[:dim] != shape[:dim] or sizes[dim + 1 :] != shape[dim + 1 :]:
        return None
    alike = [count == 1 or stride == 0 for count, stride in zip(sizes, index.strides, strict=True)]
    if not all(alike[dim + 1 :]):
        return None
    if all(alike[:dim]):
        index = index[tuple(slice(None) if axis == dim else 0 for axis in range(index.ndim))]
        require_in_bounds(index, shape, dim)
        return shape, dim, index
    inner = math.prod(shape[dim + 1 :])
    if inner == 1:
        return None
    outer, length = math.prod(shape[:dim]), shape[dim]
    index = index[(slice(None),) * (dim + 1) + (0,) * (index.ndim - dim - 1)].reshape(outer, -1)
    require_in_bounds(index, shape, dim)
    return (outer * length, inner), 0, (index + numpy.arange(0, outer * length, length)[:, None]).reshape(-1)
