"""Positions of indices along one dimension: bounds checks, flat positions, and whole slices."""

import math
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import Plans
from ..runtime.costs import MOVED
from ..runtime.floating import INT64

_UINT64 = numpy.dtype(numpy.uint64)


_Places = tuple[int, int, tuple[int, ...] | None, Any]
"""The properties of indices along one dimension: their upper bound, the distance between adjacent positions in the flattened
array, the shape of a vector of slices, and the offsets that the other dimensions add.
"""

_PLANS: Plans[_Places | None] = Plans()


def few_positions(
    shape: tuple[int, ...], dim: int, index: ndarray, slices: tuple[int, ...] | None = None
) -> ndarray | None:
    """Do the same as `flat_positions` for a few int64 indices in bounds that match `shape`. Return None for others."""
    if index.dtype is not INT64 or LOOPS.every_size or SHAPES.recorder is not None:
        return None
    places = _kept_places(shape, dim, index.shape, slices)
    if places is None:
        return None
    unsigned = index.view(_UINT64)  # in which negative numbers are large numbers
    return None if unsigned.item(unsigned.argmax()) >= places[0] else _positions(index, *places)


def _kept_places(*key: Any) -> _Places | None:
    try:
        return _PLANS[key]
    except KeyError:
        return _PLANS.keep(key, _few_places(*key))


def flat_positions(shape: tuple[int, ...], dim: int, index: ndarray, slices: tuple[int, ...] | None = None) -> ndarray:
    """Return the position, in a flattened array of `shape`, of each entry of `index` along `dim`.

    Indices must be in bounds. With `slices`, each entry of a vector is the position of a slice and refers to all of its
    elements. The result then has these sizes.
    """
    if len(shape) < 2 and slices is None:
        return index
    places = _kept_places(shape, dim, index.shape, slices)
    if places is None:
        places = _places(shape or (1,), dim, slices or index.shape, slices is not None)
    return _positions(index.astype(INT64, copy=False), *places)


def _positions(index: ndarray, length: int, stride: int, view: tuple[int, ...] | None, offsets: Any) -> ndarray:
    if stride != 1:
        index = index * stride
    if view is not None:
        index = index.reshape(view)
    return index if offsets is None else index + offsets


def _places(shape: tuple[int, ...], dim: int, sizes: tuple[int, ...], of_slices: bool) -> _Places:
    """Return the properties of indices along `dim` of an array of `shape`, for elements or slices in an array of `sizes`."""
    offsets: Any = None
    for axis, count in enumerate(sizes):
        if axis != dim and count > 1:
            step = math.prod(shape[axis + 1 :])
            more = (numpy.arange(count) * step).reshape((-1,) + (1,) * (len(sizes) - axis - 1))
            offsets = more if offsets is None else offsets + more
    view = (*(1,) * dim, -1, *(1,) * (len(sizes) - dim - 1)) if of_slices else None
    return shape[dim], math.prod(shape[dim + 1 :]), view, offsets


def _few_places(
    shape: tuple[int, ...], dim: int, of_index: tuple[int, ...], slices: tuple[int, ...] | None
) -> _Places | None:
    """Return the plan of `few_positions`, or None if the sizes do not match or are large."""
    if not -len(shape) <= dim < len(shape):
        return None
    dim %= len(shape)
    sizes = of_index if slices is None else slices
    if len(sizes) != len(shape) or not 0 < math.prod(sizes) < MOVED or 0 in shape:
        return None
    others = zip(sizes[:dim] + sizes[dim + 1 :], shape[:dim] + shape[dim + 1 :], strict=True)
    if slices is not None:
        fits = of_index == (slices[dim],) and all(count == there for count, there in others)
        return _places(shape, dim, sizes, of_slices=True) if fits else None
    if not all(count <= there for count, there in others):
        return None
    length, stride, view, offsets = _places(shape, dim, sizes, of_slices=False)
    # In the shape of the indices, because NumPy then adds in half the time.
    return length, stride, view, None if offsets is None else numpy.broadcast_to(offsets, sizes).copy()


def few_places(x: ndarray, dim: int, index: ndarray) -> bool:
    """Return whether `index` contains a few positions in bounds of a one-dimensional array."""
    return x.ndim == 1 and few_positions(x.shape, dim, index) is not None


def require_in_bounds(index: ndarray, shape: tuple[int, ...], dim: int) -> None:
    """Raise an error unless all of `index` are valid indices along `dim` of an array of this shape."""
    length = shape[dim] if shape else 1
    wrong = out_of_bounds(index, length)
    if wrong is not None:
        raise RuntimeError(
            f"index {wrong} is out of bounds for dimension {dim % max(len(shape), 1)} with size {length}"
        )


def out_of_bounds(index: ndarray, length: int, first: int = 0) -> int | None:
    """Return the first index that is less than `first` or not less than `length`, or None."""
    # The positions of extrema are found faster than their values.
    if SHAPES.recorder is not None:
        SHAPES.recorder.expect(True, "index.lookup.are_inside", index, length, first)
    if index.size == 0 or SHAPES.recorder is not None:
        return None
    unsigned = index.view(_UINT64) if index.dtype is INT64 and first <= 0 else None
    if unsigned is not None and unsigned.item(unsigned.argmax()) < length:  # negative numbers are large numbers
        return None
    if index.item(index.argmin()) >= first and index.item(index.argmax()) < length:
        return None
    return int(index[(index < first) | (index >= length)].reshape(-1)[0])


def slices_of(shape: tuple[int, ...], dim: int, index: ndarray) -> tuple[tuple[int, ...], int, ndarray] | None:
    """Convert an expanded index for elements to an index for slices, without a copy.

    The result is a shape for an array of `shape`, a dimension of this shape, and a vector of indices along the
    dimension. It is None if the index differs within slices, or does not name all slices. An index out of bounds raises
    an error.
    """
    sizes = index.shape
    if 0 in sizes or 0 not in index.strides or sizes[:dim] != shape[:dim] or sizes[dim + 1 :] != shape[dim + 1 :]:
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
