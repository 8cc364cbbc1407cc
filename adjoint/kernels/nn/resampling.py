"""Enlarge or reduce images: each new element is the nearest old element, or a weighted sum of neighbours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...codegen.plans import Memory, Plan, compiled
from ...codegen.recording import recordable
from ..index.scatter import take_rows
from ..runtime.floating import Array, is_floating, refuse

Sizes = tuple[int, ...]
Scales = tuple[float | None, ...]

NEAREST = ("nearest", "nearest-exact")


def _keeps(dims: int, mode: str, antialias: bool) -> bool:
    """Return whether a dimension whose size does not change stays unchanged for every requested scale."""
    return mode == "linear" or antialias or (mode == "nearest" and dims == 2)


def _resampled_bytes(
    self: Array, size: Sizes, mode: str, align_corners: bool, antialias: bool, scales: Scales
) -> Array:
    """Return `resample` of bytes in fixed-point numbers. As in PyTorch and Pillow, each pass, rows first, is rounded to bytes."""
    for axis in (3, 2):
        if size[axis - 2] == self.shape[axis]:
            continue
        weights = _weights(self.shape[axis], size[axis - 2], mode, align_corners, antialias, scales[axis - 2])
        digits, places, shares = weights.fixed_point()
        total = _sums(self.astype(numpy.int64), axis, places, shares) + (1 << digits - 1)
        self = numpy.clip(total >> digits, 0, 255).astype(numpy.uint8)
    return self.copy()


def resampling(mode: str, antialias: bool) -> Callable[..., Array]:
    """Return the kernel that resizes the last dimensions of `(N, C, *)` in this mode. `scales` are the requested factors."""

    @recordable
    @compiled("nn.resampling.passes")
    def resample(self: Array, size: Sizes, align_corners: bool, scales: Scales) -> Plan:
        _check(self, size, mode)
        if antialias and self.dtype not in (numpy.float32, numpy.float64, numpy.uint8):
            raise refuse("compute_index_ranges_weights", self)
        if self.dtype == numpy.uint8 and mode not in NEAREST and len(size) == 2:
            return Plan(
                [Memory((*self.shape[:2], *size), self.dtype)],
                run=lambda self, *_: _resampled_bytes(self, size, mode, align_corners, antialias, scales),
                compiled=NotImplemented,
            )
        passes: list[tuple[int, Any]] = []
        for axis, (length, scale) in enumerate(zip(size, scales, strict=True), start=2):
            if length == self.shape[axis] and _keeps(len(size), mode, antialias):
                continue
            if mode in NEAREST:
                passes.append((axis, _nearest(self.shape[axis], length, mode, scale)))
            else:
                passes.append((axis, _weights(self.shape[axis], length, mode, align_corners, antialias, scale)))
        return _in_passes(self, size, passes)

    return resample


@recordable
@compiled("nn.resampling.passes")
def resample_backward(
    grad: Array, size: Sizes, mode: str, align_corners: bool, antialias: bool, scales: Scales
) -> Plan:
    """Return the transpose of `resample`: the gradients of the `size` old elements from the gradients of the new elements."""
    return _in_passes(grad, size, [
        (axis, _weights(length, grad.shape[axis], mode, align_corners, antialias, scale, transposed=True))
        for axis, (length, scale) in enumerate(zip(size, scales, strict=True), start=2)
        if length != grad.shape[axis] or not _keeps(len(size), mode, antialias)
    ])  # fmt: skip


def _in_passes(array: Array, size: Sizes, passes: Sequence[tuple[int, Any]]) -> Plan:
    """Return the plan that resizes one dimension after another, by weights or by the indices of the elements to be taken."""

    def run(array: Array, *_: Any) -> Array:
        result = array
        for axis, way in passes:
            result = take_rows(result, way, axis) if isinstance(way, numpy.ndarray) else _along(result, axis, way)
        return _rounded(result, array.dtype) if passes else array.copy()

    weighted = array.size and passes and isinstance(passes[0][1], Weights)
    return Plan(
        [Memory((*array.shape[:2], *size), array.dtype)], run=run,
        compiled=(array, passes, _along) if weighted else NotImplemented,
    )  # fmt: skip


def _check(self: Array, size: Sizes, mode: str) -> None:
    if 0 in self.shape[2:] or min(size) < 1:
        names = "DHW"[-len(size) :]
        before, after = (
            ", ".join(f"{name}: {length}" for name, length in zip(names, lengths, strict=True))
            for lengths in (self.shape[2:], size)
        )
        link = "and " if len(size) == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) {link}output ({after})"
        )
    if 0 in self.shape[1:]:
        raise RuntimeError(
            f"Non-empty {self.ndim}D data tensor expected but got a tensor with sizes {list(self.shape)}"
        )
    nearest = mode in NEAREST
    if not is_floating(self.dtype) and (self.dtype != numpy.uint8 or not (nearest or len(size) == 2)):
        form = "nearest" if nearest else mode.removeprefix("bi")
        if len(size) == 2 and form != "cubic":
            raise refuse(f"upsample_{'' if nearest else 'bi'}{form}2d_channels_last", self)
        raise refuse(f"compute_indices_weights_{form}", self)


class Weights:
    """The weights of old elements in new elements. Each new element is a sum of a few old elements.

    New element `i` is the sum over `k` of `shares[i, k]` times old element `places[i, k]`. An old element may have
    several shares, for example at an edge. An element without a weight is not read, because it could be an infinity or
    NaN.
    """

    def __init__(self, places: Array, shares: Array, n_old: int) -> None:
        self.places, self.shares = places, shares
        self._n_old = n_old
        self._forms: dict[Any, Any] = {}

    @classmethod
    def grouped(cls, new: Array, old: Array, shares: Array, n_new: int, n_old: int) -> Weights:
        """Return the weights for pairs of a new and an old element, with equally many neighbours for each new element."""
        first, last = numpy.full(n_new, n_old - 1), numpy.zeros(n_new, numpy.int64)
        numpy.minimum.at(first, new, old)
        numpy.maximum.at(last, new, old)
        width = int((last - first).max(initial=0)) + 1
        of_each = numpy.zeros((n_new, width))
        numpy.add.at(of_each, (new, old - first[new]), shares)
        return cls(numpy.minimum(first[:, None] + numpy.arange(width), n_old - 1), of_each, n_old)

    def as_type(self, dtype: Any) -> Array:
        """Return the shares in a dtype."""
        if dtype not in self._forms:
            self._forms[dtype] = self.shares.astype(dtype)
        return self._forms[dtype]

    def by_tap(self, dtype: Any) -> tuple[Array, Array]:
        """Return the places and the shares in a dtype, with the new elements in the last dimension."""
        if ("by tap", dtype) not in self._forms:
            arrays = self.places.T, self.as_type(dtype).T
            self._forms["by tap", dtype] = tuple(map(numpy.ascontiguousarray, arrays))
        return self._forms["by tap", dtype]

    def fixed_point(self) -> tuple[int, Array, Array]:
        """Return the number of binary digits after the point, the places, and the shares as integers.

        The largest share has 15 bits. The shares of an old element in a new element are added up before they are rounded.
        """
        count, width = self.places.shape
        new = numpy.repeat(numpy.arange(count), width)
        one = Weights.grouped(new, self.places.reshape(-1), self.shares.reshape(-1), count, self._n_old)
        largest = one.shares.max(initial=0)
        digits = next(n for n in range(1, 23) if n == 22 or int(largest * (2 << n) + 0.5) >= 1 << 15)
        units = numpy.trunc(one.shares * (1 << digits) + numpy.copysign(0.5, one.shares)).astype(numpy.int64)
        return digits, one.places, units


def _along(array: Array, axis: int, weights: Weights) -> Array:
    """Return the weighted sums along one dimension, computed at least in float32."""
    kind = array.dtype
    if kind.char not in "fd":
        kind = numpy.result_type(kind, numpy.float32) if kind.kind != "V" else numpy.dtype(numpy.float32)
        array = array.astype(kind)
    return _sums(array, axis, weights.places, weights.as_type(kind))


def _sums(array: Array, axis: int, places: Array, shares: Array) -> Array:
    """Return the sums over `k` of `shares[i, k]` times element `places[i, k]` along `axis`."""
    factors = shares.T.reshape(-1, len(places), *[1] * (array.ndim - axis - 1))
    result = array.take(places[:, 0], axis) * factors[0]
    for k in range(1, len(factors)):
        result += array.take(places[:, k], axis) * factors[k]
    return result


def _rounded(array: Array, dtype: numpy.dtype[Any]) -> Array:
    if dtype == numpy.uint8:
        array = numpy.clip(numpy.rint(array), 0, 255)
    return numpy.ascontiguousarray(array, dtype)


def _step(old: int, new: int, scale: float | None) -> float:
    """Return the distance between new elements, in units of the distance between old elements."""
    return 1.0 / scale if scale is not None and scale > 0 else old / new


def _step_of_corners(old: int, new: int) -> float:
    """Return the distance between new elements, if the ends of the new elements coincide with the ends of the old elements."""
    return (old - 1) / (new - 1) if new > 1 else 0.0


@functools.lru_cache(maxsize=64)
def _nearest(old: int, new: int, mode: str, scale: float | None) -> Array:
    """Return the old element that each new element copies."""
    step = numpy.float32(_step(old, new, scale))
    places = numpy.arange(new, dtype=numpy.float32)
    if mode == "nearest-exact":
        places += numpy.float32(0.5)
    return numpy.minimum(numpy.floor(places * step).astype(numpy.int64), old - 1)


@functools.lru_cache(maxsize=64)
def _weights(
    old: int, new: int, mode: str, align_corners: bool, antialias: bool, scale: float | None, transposed: bool = False
) -> Weights:
    """Return the weights of the old elements in the new elements or, if `transposed`, by old element, for gradients."""
    if mode in NEAREST:
        found = numpy.arange(new), _nearest(old, new, mode, scale), numpy.ones(new)
    elif antialias:
        found = _averaging(old, new, mode, align_corners, scale)
    else:
        places, shares = _interpolating(old, new, mode, align_corners, scale)
        if not transposed:
            return Weights(places, shares, old)
        found = numpy.repeat(numpy.arange(new), places.shape[1]), places.reshape(-1), shares.reshape(-1)
    rows, columns, shares = found
    return (
        Weights.grouped(columns, rows, shares, old, new)
        if transposed
        else Weights.grouped(rows, columns, shares, new, old)
    )


Shares = tuple[Array, Array, Array]
"""Three arrays with one entry per weight: the index of the new element, the index of the old element, and the weight."""


def _interpolating(old: int, new: int, mode: str, align_corners: bool, scale: float | None) -> tuple[Array, Array]:
    """Return the old elements on both sides of each new element, and their weights."""
    if align_corners:
        centres = numpy.arange(new) * _step_of_corners(old, new)
    else:
        centres = (numpy.arange(new) + 0.5) * _step(old, new, scale) - 0.5
    reach, shape = _SHAPES[mode]
    if reach == 1:
        centres = numpy.maximum(centres, 0)
    before = numpy.floor(centres).astype(numpy.int64)[:, None]
    places = before + numpy.arange(1 - reach, reach + 1)
    shares = shape(numpy.abs(centres[:, None] - places), -0.75)
    return numpy.clip(places, 0, old - 1), shares


def _averaging(old: int, new: int, mode: str, align_corners: bool, scale: float | None) -> Shares:
    """Return the weights with antialiasing. If the image is reduced, they include all old elements between two new elements."""
    step = _step_of_corners(old, new) if align_corners else _step(old, new, scale)
    reach, shape = _SHAPES[mode]
    wide = max(step, 1.0)
    parts = []
    for place in range(new):
        centre = step * (place + 0.5)
        start, end = max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), old)
        share = shape(numpy.abs((numpy.arange(start, end) - centre + 0.5) / wide), -0.5)
        parts.append((numpy.full(end - start, place), numpy.arange(start, end), share / share.sum()))
    rows, columns, shares = (numpy.concatenate(part) for part in zip(*parts, strict=True))
    return rows, columns, shares


def _triangle(distance: Array, sharpness: float) -> Array:
    return numpy.maximum(1 - distance, 0)


def _cubic(distance: Array, sharpness: float) -> Array:
    """Return the weight by Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    a, d = sharpness, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return numpy.where(d <= 1, near, numpy.where(d < 2, far, 0))


def _lanczos(distance: Array, sharpness: float) -> Array:
    """Return the weight by Duchon, "Lanczos filtering in one and two dimensions", 1979, with three lobes."""
    return numpy.where(distance < 3, numpy.sinc(distance) * numpy.sinc(distance / 3), 0)


_SHAPES: dict[str, tuple[int, Callable[[Array, float], Array]]] = {
    "linear": (1, _triangle),
    "bicubic": (2, _cubic),
    "lanczos": (3, _lanczos),
}
"""The number of old elements on each side of a new one, and the function that returns their weights."""
