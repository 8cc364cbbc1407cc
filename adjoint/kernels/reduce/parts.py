"""Reductions that copy their input: they process a large array part by part."""

from collections.abc import Callable

import numpy
from numpy import ndarray

from ...codegen.costs import PART
from ..runtime.parallel import parallel_rows

_FEW = 8
"""If a dimension has fewer elements, its parts would be too large."""


def of_parts(reduce: Callable[..., ndarray], x: ndarray, dims: tuple[int, ...], *others: ndarray) -> ndarray:
    """Return `reduce(x, *others)`, which keeps `dims`, part by part, so that copies take no more memory than a part."""
    kept = [axis for axis in range(x.ndim) if axis not in dims and x.shape[axis] > 1]
    if x.size <= PART or not kept:
        return reduce(x, *others)
    axis = max(kept, key=lambda axis: (x.shape[axis] >= _FEW, abs(x.strides[axis])))
    along, *others_along = (numpy.moveaxis(each, axis, 0) for each in (x, *others))
    length = max(1, len(along) * PART // x.size)
    found: dict[int, ndarray] = {}

    def part(start: int, stop: int) -> None:
        found[start] = reduce(*(numpy.moveaxis(each[start:stop], 0, axis) for each in (along, *others_along)))

    parallel_rows(part, len(along), along[0].nbytes, tile_rows=length)
    return numpy.concatenate([found[start] for start in sorted(found)], axis)
