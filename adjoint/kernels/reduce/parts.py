"""Reductions that copy their input: they process a large array part by part."""

from collections.abc import Callable

import numpy
from numpy import ndarray

from ..runtime.parallel import parallel_rows

_PARTED = 1 << 18
"""The number of elements of a part."""

_FEW = 8
"""If a dimension has fewer elements, its parts would be too large."""


def of_parts(reduce: Callable[[ndarray], ndarray], x: ndarray, dims: tuple[int, ...]) -> ndarray:
    """Return `reduce(x)`, which keeps `dims`, computed part by part, so that copies take no more memory than a part."""
    kept = [axis for axis in range(x.ndim) if axis not in dims and x.shape[axis] > 1]
    if x.size <= _PARTED or not kept:
        return reduce(x)
    axis = max(kept, key=lambda axis: (x.shape[axis] >= _FEW, abs(x.strides[axis])))
    along = numpy.moveaxis(x, axis, 0)
    length = max(1, len(along) * _PARTED // x.size)
    found: dict[int, ndarray] = {}

    def part(start: int, stop: int) -> None:
        found[start] = reduce(numpy.moveaxis(along[start:stop], 0, axis))

    parallel_rows(part, len(along), along[0].nbytes, tile_rows=length)
    return numpy.concatenate([found[start] for start in sorted(found)], axis)
