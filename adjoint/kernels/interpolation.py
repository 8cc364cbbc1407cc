"""Images made larger or smaller: along each dimension every new element is a weighted sum of some old ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from .precision import is_inexact, type_name

Array = numpy.ndarray[Any, Any]
Sizes = tuple[int, ...]
Scales = tuple[float | None, ...]

NEAREST = ("nearest", "nearest-exact")


def resample(self: Array, size: Sizes, mode: str, align_corners: bool, antialias: bool, scales: Scales) -> Array:
    """`(N, C, *)` with its last dimensions of another size; `scales` are the factors that were asked for, if they were."""
    _check(self, size, mode)
    result = self
    for axis, (length, scale) in enumerate(zip(size, scales, strict=True), start=2):
        if mode in NEAREST:
            result = result.take(_nearest(self.shape[axis], length, mode, scale), axis=axis)
        else:
            result = _along(result, axis, _weights(self.shape[axis], length, mode, align_corners, antialias, scale))
    return _rounded(result, self.dtype)


def resample_backward(
    grad: Array, size: Sizes, mode: str, align_corners: bool, antialias: bool, scales: Scales
) -> Array:
    """The transpose of `resample`: from gradients of the new elements those of the old ones, of which there are `size`."""
    result = grad
    for axis, (length, scale) in enumerate(zip(size, scales, strict=True), start=2):
        count = grad.shape[axis]
        if mode in NEAREST:
            weights = numpy.zeros((count, length))
            weights[numpy.arange(count), _nearest(length, count, mode, scale)] = 1
        else:
            weights = _weights(length, count, mode, align_corners, antialias, scale)
        result = _along(result, axis, weights.T)
    return _rounded(result, grad.dtype)


def _check(self: Array, size: Sizes, mode: str) -> None:
    if 0 in self.shape[2:] or min(size) < 1:
        names = "DHW"[-len(size) :]
        before, after = (
            ", ".join(f"{name}: {length}" for name, length in zip(names, lengths, strict=True))
            for lengths in (self.shape[2:], size)
        )
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})"
        )
    if not is_inexact(self.dtype) and self.dtype != numpy.uint8:
        raise NotImplementedError(f"\"upsample_{mode}\" not implemented for '{type_name(self.dtype)}'")


def _along(array: Array, axis: int, weights: Array) -> Array:
    """The sums over one dimension with weights `(new, old)`, in float32 at least."""
    kind = numpy.result_type(array.dtype, numpy.float32) if array.dtype.kind != "V" else numpy.float32
    moved = array.swapaxes(axis, -1).astype(kind, copy=False)
    return (moved @ weights.T.astype(kind)).swapaxes(axis, -1)


def _rounded(array: Array, dtype: numpy.dtype[Any]) -> Array:
    if dtype == numpy.uint8:
        array = numpy.clip(numpy.rint(array), 0, 255)
    return numpy.ascontiguousarray(array, dtype)


def _step(old: int, new: int, scale: float | None) -> float:
    """How far new elements are apart, in old ones."""
    return 1.0 / scale if scale is not None and scale > 0 else old / new


@functools.lru_cache(maxsize=64)
def _nearest(old: int, new: int, mode: str, scale: float | None) -> Array:
    """For each new element the old one it is."""
    step = numpy.float32(_step(old, new, scale))
    places = numpy.arange(new, dtype=numpy.float32)
    if mode == "nearest-exact":
        places += numpy.float32(0.5)
    return numpy.minimum(numpy.floor(places * step).astype(numpy.int64), old - 1)


@functools.lru_cache(maxsize=64)
def _weights(old: int, new: int, mode: str, align_corners: bool, antialias: bool, scale: float | None) -> Array:
    """The weights `(new, old)` of the old elements in the new ones."""
    if antialias:
        return _averaging(old, new, mode, align_corners, scale)
    if align_corners:
        centres = numpy.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        centres = (numpy.arange(new) + 0.5) * _step(old, new, scale) - 0.5
    reach, shape = _SHAPES[mode]
    if reach == 1:
        centres = numpy.maximum(centres, 0)
    first = numpy.floor(centres).astype(numpy.int64)
    weights = numpy.zeros((new, old))
    for offset in range(1 - reach, reach + 1):
        share = shape(numpy.abs(centres - (first + offset)), -0.75)
        numpy.add.at(weights, (numpy.arange(new), numpy.clip(first + offset, 0, old - 1)), share)
    return weights


def _averaging(old: int, new: int, mode: str, align_corners: bool, scale: float | None) -> Array:
    """Weights that, where the image becomes smaller, reach over all old elements between two new ones."""
    step = (old - 1) / (new - 1) if align_corners and new > 1 else _step(old, new, scale)
    reach, shape = _SHAPES[mode]
    wide = max(step, 1.0)
    weights = numpy.zeros((new, old))
    for place in range(new):
        centre = step * (place + 0.5)
        start, end = max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), old)
        share = shape(numpy.abs((numpy.arange(start, end) - centre + 0.5) / wide), -0.5)
        weights[place, start:end] = share / share.sum()
    return weights


def _triangle(distance: Array, sharpness: float) -> Array:
    return numpy.maximum(1 - distance, 0)


def _cubic(distance: Array, sharpness: float) -> Array:
    """Keys (1981), "Cubic convolution interpolation for digital image processing"."""
    a, d = sharpness, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return numpy.where(d <= 1, near, numpy.where(d < 2, far, 0))


_SHAPES: dict[str, tuple[int, Callable[[Array, float], Array]]] = {"linear": (1, _triangle), "bicubic": (2, _cubic)}
"""How many old elements on either side count, and their weight by distance."""
