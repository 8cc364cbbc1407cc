"""Read images at the positions of a grid: each result is a weighted sum of the pixels around a position.

The weights are polynomials of the fractional parts of the position. The cubic polynomials come from R. Keys, "Cubic
convolution interpolation for digital image processing", 1981, with a = -0.75. `places` returns the indices of the
pixels, and `weights` returns their weights.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.plans import Memory, Plan, compiled
from ...dtypes import from_numpy
from ..create.creation import linspace
from ..math.fma import fma32
from ..memory.copying import rounded, widen
from ..runtime.costs import PIECEWISE
from ..runtime.floating import HALVES, Array, refuse

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)

_CUBIC = -0.75
POLYNOMIALS: dict[int, dict[int, tuple[float, ...]]] = {
    BILINEAR: {0: (1.0, -1.0), 1: (0.0, 1.0)},
    NEAREST: {0: (1.0,)},
    BICUBIC: {
        -1: (0.0, _CUBIC, -2 * _CUBIC, _CUBIC),
        0: (1.0, 0.0, -(_CUBIC + 3), _CUBIC + 2),
        1: (0.0, -_CUBIC, 2 * _CUBIC + 3, -(_CUBIC + 2)),
        2: (0.0, 0.0, _CUBIC, -_CUBIC),
    },
}
"""For each mode, the distance of each pixel from the position rounded down, and the coefficients of its weight, from
the constant term up.
"""


class Sampling(NamedTuple):
    """The options: the mode, the padding beyond the edges, and whether -1 and 1 are the centers of the pixels at the edges."""

    mode: int
    padding: int
    align_corners: bool


def _position(grid: Array, size: int, sampling: Sampling, stray: float) -> tuple[Array, Any]:
    """Return positions along one dimension in pixels, rounded to the grid's type as in PyTorch, and their derivative."""
    scale = (size - 1) / 2 if sampling.align_corners else size / 2
    position = grid + 1
    if sampling.align_corners:
        position = position * scale
    elif grid.dtype == numpy.float32:
        position = fma32(position.astype(numpy.float64), size, -1) / 2
    else:
        position = (position * size - 1) / 2
    position = position.astype(numpy.float32) if grid.dtype in HALVES else position
    if sampling.mode == BICUBIC:  # the padding is applied to each pixel
        return position, scale
    position, slope = _padded(position, size, sampling, stray)
    return (numpy.rint(position) if sampling.mode == NEAREST else position), slope * scale


def _padded(position: Array, size: int, sampling: Sampling, stray: float) -> tuple[Array, Any]:
    """Return positions moved back into the image (`stray` for NaN and positions without a mirror image), and their derivative."""
    slope: Any = 1.0
    if sampling.padding == ZEROS:
        return position, slope
    if sampling.padding == REFLECTION:
        low, span = (0.0, size - 1.0) if sampling.align_corners else (-0.5, float(size))
        if span == 0:
            return numpy.zeros_like(position), 0.0
        distance = position - low
        turns = numpy.floor(numpy.abs(distance) / span)
        rest = numpy.fmod(numpy.abs(distance), span)
        even = turns % 2 == 0
        position = numpy.where(even, rest, span - rest) + low
        slope = numpy.where(even, 1.0, -1.0) * numpy.where(distance < 0, -1.0, 1.0)
    inside = (position > 0) & (position < size - 1)
    position = numpy.where(numpy.isnan(position), position.dtype.type(stray), numpy.clip(position, 0, size - 1))
    return position, slope * inside


def stray_pixel(size: int, dims: int) -> float:
    """Return the pixel that is read for NaN: the first pixel of an image or the last pixel of a volume, as in PyTorch."""
    return size - 1.0 if dims == 3 else 0.0


def _along(grid: Array, sizes: tuple[int, ...]) -> list[tuple[Array, int]]:
    """Return the coordinates of each dimension with its size. A grid begins with the coordinates of the last dimension."""
    flat = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), grid.shape[-1])
    return [(flat[..., len(sizes) - 1 - dim], size) for dim, size in enumerate(sizes)]


def places(grid: Array, sizes: tuple[int, ...], sampling: Sampling) -> tuple[Array, Array]:
    """Return the flat indices `(N, pixels, positions)` of the pixels around each position, and which pixels are in the image."""
    each = []
    for coordinates, size in _along(grid, sizes):
        stray = stray_pixel(size, len(sizes))
        position, _ = _position(coordinates, size, sampling, stray)
        below = numpy.where(numpy.isnan(position), -size - 4, numpy.floor(position))
        far = 1e15 if sampling.mode == BICUBIC and sampling.padding != ZEROS else 2 * size + 4
        below = numpy.clip(below, -far, far)
        pixels = []
        for offset in POLYNOMIALS[sampling.mode]:
            at = below + offset
            if sampling.mode == BICUBIC:
                at, _ = _padded(at, size, sampling, stray)
            pixels.append(((at >= 0) & (at < size), numpy.clip(at, 0, size - 1).astype(numpy.int64)))
        each.append(pixels)
    index: list[Any] = []
    inside: list[Any] = []
    for around in itertools.product(*each):
        flat: Any = 0
        for (_, at), size in zip(around, sizes, strict=True):
            flat = flat * size + at
        index.append(flat)
        inside.append(numpy.logical_and.reduce([within for within, _ in around]))
    return numpy.stack(index, 1), numpy.stack(inside, 1)


def weights(grid: Array, sizes: tuple[int, ...], sampling: Sampling, orders: tuple[int, ...]) -> Array:
    """Return the weights `(N, pixels, positions)` of the pixels, or their derivatives of these `orders` by each dimension."""
    each = []
    for (coordinates, size), order in zip(_along(grid, sizes), orders, strict=True):
        position, slope = _position(coordinates, size, sampling, stray_pixel(size, len(sizes)))
        fraction = position - numpy.floor(position)
        polynomials = POLYNOMIALS[sampling.mode].values()
        each.append([_derivative(polynomial, order, fraction) * slope**order for polynomial in polynomials])
    result = numpy.stack([math.prod(around[1:], start=around[0]) for around in itertools.product(*each)], 1)
    if len(sizes) == 3:
        # Pixels outside of an image are 0, and NaN weights multiply them. Pixels outside of a volume do not exist.
        result = numpy.where(places(grid, sizes, sampling)[1], result, result.dtype.type(0))
    return rounded(result, grid.dtype)


def _derivative(coefficients: tuple[float, ...], order: int, x: Array) -> Array:
    """Return the value at `x` of the derivative of this `order` of a polynomial."""
    *rest, highest = differentiated(coefficients, order)
    result = numpy.full_like(x, highest)
    for coefficient in rest[::-1]:
        result = result * x + coefficient
    return result


def differentiated(coefficients: tuple[float, ...], order: int) -> list[float]:
    """Return the coefficients of the derivative of this `order` of a polynomial."""
    found = list(coefficients)
    for _ in range(order):
        found = [power * each for power, each in enumerate(found)][1:] or [0.0]
    return found


def pixels(input: Array, grid: Array, sampling: Sampling) -> Array:
    """Return the pixels around each position, `(N, C, pixels, positions)`. Missing pixels are 0."""
    index, inside = places(grid, input.shape[2:], sampling)
    count, channels = input.shape[:2]
    flat = input.reshape(count, channels, math.prod(input.shape[2:]))
    found = numpy.take_along_axis(flat, index.reshape(count, 1, math.prod(index.shape[1:])), 2)
    found = found.reshape(count, channels, *index.shape[1:])
    return numpy.where(inside[:, None], found, input.dtype.type(0))


def scattered(grad: Array, grid: Array, sizes: tuple[int, ...], sampling: Sampling) -> Array:
    """Return the transpose of `pixels`, which adds `(N, C, pixels, positions)` to the pixels of images."""
    index, inside = places(grid, sizes, sampling)
    count, channels = grad.shape[:2]
    area = math.prod(sizes)
    rows = numpy.arange(count * channels).reshape(count, channels, 1, 1) * area
    at = numpy.broadcast_to(index[:, None], grad.shape) + rows
    kept = numpy.broadcast_to(inside[:, None], grad.shape)
    wide = numpy.float64 if grad.dtype == numpy.float64 else numpy.float32
    total = numpy.bincount(at[kept], grad[kept].astype(wide), count * channels * area)
    return rounded(total.reshape(count, channels, *sizes), grad.dtype)


@compiled("nn.grid_sampling.sampled")
def grid_sampler(input: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Plan:
    """Return the images `(N, C, *)` at the positions of a grid `(N, *, dimensions)`."""
    dims = input.ndim - 2
    if input.dtype.kind != "f" and input.dtype not in HALVES:
        kernel = f"grid_sampler_{dims}d_cpu{'_kernel_impl' if dims == 2 else ''}"
        raise refuse(f"{kernel}", input)
    sampling = Sampling(mode, padding, bool(align_corners))
    result = Memory((*input.shape[:2], *grid.shape[1:-1]), input.dtype)

    def run(input: Array, grid: Array, *_: Any) -> Array:
        wide = numpy.float32 if input.dtype in HALVES else input.dtype
        found = pixels(input, grid, sampling).astype(wide, copy=False)
        counted = weights(grid, input.shape[2:], sampling, (0,) * dims).astype(wide, copy=False)
        return rounded((found * counted[:, None]).sum(2).reshape(result.shape), input.dtype)

    large = LOOPS.takes(input.shape[1] * grid.size, PIECEWISE)
    return Plan((result,), run=run, compiled=(input, grid, sampling) if large else NotImplemented)


@compiled("nn.grid_sampling.gradients", least=PIECEWISE)
def grid_sampler_gradients(
    grad: Array, input: Array, grid: Array, sampling: Sampling, needs: Sequence[bool]
) -> tuple[Array | None, Array | None]:
    """Return the needed gradients of images and grid."""
    sizes = input.shape[2:]
    zeros = (0,) * len(sizes)
    at_places = grad.reshape((*input.shape[:2], 1, math.prod(grid.shape[1:-1])))
    of_input = of_grid = None
    if needs[0]:
        of_input = scattered(at_places * weights(grid, sizes, sampling, zeros)[:, None], grid, sizes, sampling)
    if needs[1]:
        products = (at_places * pixels(input, grid, sampling)).sum(1)
        parts = [(products * weights(grid, sizes, sampling, each)).sum(1) for each in raised(zeros)]
        of_grid = numpy.stack([part.reshape(grid.shape[:-1]) for part in parts], -1)
    return of_input, of_grid


def raised(orders: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield, for each coordinate, the orders of derivatives after one more derivative by this coordinate.

    A grid begins with the coordinate of the last dimension.
    """
    for dim in reversed(range(len(orders))):
        yield tuple([order + (place == dim) for place, order in enumerate(orders)])


# --- affine maps as grids -------------------------------------------------------------------------------------------


@functools.lru_cache(16)
def _base(size: tuple[int, ...], align_corners: bool, dtype: Any) -> Array:
    """Return the coordinates, from -1 to 1, of all pixels, each followed by 1, rounded as in PyTorch.

    Under the identity map, rounding decides which pixels lie around a position, and so the gradient.
    """
    lines = []
    for length in size[2:]:
        line = linspace(-1, 1, from_numpy(dtype), (length,), dtype) if length > 1 else numpy.zeros(1, dtype)
        lines.append(line if align_corners else line * (length - 1) / length)
    mesh = numpy.meshgrid(*lines, indexing="ij")[::-1]
    return numpy.stack([*mesh, numpy.ones_like(mesh[0])], -1).reshape(-1, len(lines) + 1).astype(dtype)


def affine_grid(theta: Array, size: tuple[int, ...], align_corners: bool) -> Array:
    """Return a grid: the positions of the pixels of images of this size after affine maps `(N, d, d + 1)`."""
    maps = widen(theta).swapaxes(-1, -2)
    result = _base(tuple(size), align_corners, maps.dtype) @ maps
    return result.astype(theta.dtype, copy=False).reshape(theta.shape[0], *size[2:], theta.shape[1])


def affine_grid_backward(grad: Array, size: tuple[int, ...], align_corners: bool) -> Array:
    """Return the transpose of `affine_grid`."""
    flat = widen(grad).reshape(grad.shape[0], math.prod(grad.shape[1:-1]), grad.shape[-1])
    return (flat.swapaxes(-1, -2) @ _base(tuple(size), align_corners, flat.dtype)).astype(grad.dtype, copy=False)
