"""Reductions that make copies of what they reduce: of a large array, one part after the other."""

from collections.abc import Callable

import numpy
from numpy import ndarray

from ..runtime.parallel import parallel_rows

_PARTED = 1 << 18
"""Elements of a part."""

_FEW = 8
"""Parts of a dimension of fewer elements are too large."""


def of_parts(reduce: Callable[[ndarray], ndarray], x: ndarray, dims: tuple[int, ...]) -> ndarray:
    """`reduce(x)`, which keeps `dims`, put together of parts of `x`: the copies that it makes take no more memory than a part."""
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
