"""Read images at the positions of a grid, and compute the gradients, for several positions at a time over all channels.

The module implements the functions of `kernels.nn.grid_sampling`, which contains the formulas. The pixels around a
vector of positions, and their weights, are computed once for all channels.
"""

from __future__ import annotations

import itertools

from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.kernels import *
from ....codegen.plans import Memory
from ...nn.grid_sampling import BICUBIC, NEAREST, POLYNOMIALS, REFLECTION, ZEROS, Sampling, differentiated

Array = numpy.ndarray[Any, Any]

_VECTORS = 16
"""The number of vectors of positions in a piece of work."""


@loops
def padded(position: Any, edge: T, stray: T, W: Static, PADDING: Static, ALIGN: Static) -> Any:
    """Return positions moved back into the image (NaN to `stray`), and their derivative. `edge` is the last pixel."""
    slope = vector(T, W)(1)
    if PADDING != ZEROS:
        if PADDING == REFLECTION:
            low, span = T(0) if ALIGN else T(-0.5), edge if ALIGN else edge + 1.0
            distance = position - low
            length = fabs(distance)
            turns = floor(length / span)
            rest = fma(-turns, broadcast(span, W), length)
            rest = where(rest < 0, rest + span, rest)
            if reduce_max(where(turns > 1e6, turns, 0.0)) > 0:  # the product with the span would not be exact
                rests = local(T, W)
                store(rests, length)
                for lane in rolled(W):
                    rests[lane] = rests[lane] % span
                rest = load(rests, W)
            even = turns - 2.0 * floor(turns * 0.5) == 0
            position = where(even, rest, span - rest) + low
            slope = where(even, 1.0, vector(T, W)(-1)) * where(distance < 0, -1.0, vector(T, W)(1))
            position = where(broadcast(span, W) == 0, 0.0, position)
        slope = where((position > 0) & (position < edge), slope, 0.0)
        inside = minimum(maximum(position, vector(T, W)(0)), broadcast(edge, W))
        position = where(position == position, inside, broadcast(stray, W))
    return position, slope


@loops
def polynomial(x: Any, COEFFICIENTS: Static, T: Static, W: Static) -> Any:
    """Return the value of a polynomial whose coefficients start with the constant term."""
    result = vector(T, W)(COEFFICIENTS[-1])
    for COEFFICIENT in COEFFICIENTS[-2::-1]:
        result = result * x + vector(T, W)(COEFFICIENT)
    return result


@loops
def along(
    indices: Pointer[i32], counts: Pointer[T], rises: Pointer[T], coordinate: Any, length: Int, W: Static, DIMS: Static,
    MODE: Static, PADDING: Static, ALIGN: Static,
) -> None:  # fmt: skip
    """Return the pixels around positions along one dimension (-1 outside), their weights, and the weights' derivatives."""
    size = T(length)
    edge = size - 1.0
    stray = edge if DIMS == 3 else T(0)  # see `stray_pixel`
    if ALIGN:
        scale = edge * 0.5
        position = (coordinate + 1.0) * scale
    else:
        scale = size * 0.5
        position = fma(coordinate + 1.0, size, -1.0) * 0.5
    slope = vector(T, W)(1)
    if MODE != BICUBIC:
        position, slope = padded(position, edge, stray, W, PADDING, ALIGN)
    if MODE == NEAREST:
        position = rint(position)
    below = floor(position)
    fraction = position - below
    below = where(below == below, below, -4.0 - size)
    far = T(1e15) if MODE == BICUBIC and PADDING != ZEROS else 2.0 * size + 4.0
    below = minimum(maximum(below, broadcast(-far, W)), broadcast(far, W))
    offset = T(min(POLYNOMIALS[MODE]))
    for k in range(len(POLYNOMIALS[MODE])):
        at = below + offset
        if MODE == BICUBIC:
            at, _ = padded(at, edge, stray, W, PADDING, ALIGN)
        inside = (at >= 0) & (at < size)
        store(indices + k * W, where(inside, vector(i32, W)(where(inside, at, 0.0)), vector(i32, W)(-1)))
        offset += 1.0
    for TAP, COEFFICIENTS in enumerate(POLYNOMIALS[MODE].values()):
        store(counts + TAP * W, polynomial(fraction, COEFFICIENTS, T, W))
        store(rises + TAP * W, polynomial(fraction, differentiated(COEFFICIENTS, 1), T, W) * (slope * scale))


def _around(dims: int, mode: int) -> list[tuple[int, ...]]:
    """Return the pixels around a position, by their numbers along each dimension."""
    return list(itertools.product(range(len(POLYNOMIALS[mode])), repeat=dims))


@loops
def flat_index(indices: Pointer[i32], AROUND: Static, TAPS: Static, sizes: Pointer[i64], W: Static) -> Any:
    """Return the position of a pixel in its plane, or a negative number for no pixel."""
    index = load(indices + AROUND[0] * W, W)
    beyond = index
    for D in unrolled(1, len(AROUND)):
        own = load(indices + (D * TAPS + AROUND[D]) * W, W)
        index = index * i32(sizes[D]) + own
        beyond = beyond | own
    return where(beyond < 0, vector(i32, W)(-1), index)


@loops
def product_of(
    index: Any, counts: Pointer[T], rises: Pointer[T], AROUND: Static, TAPS: Static, RAISED: Static, W: Static
) -> Any:
    """Return the weight of a pixel, or its derivative along dimension `RAISED`."""
    result = load((rises if RAISED == 0 else counts) + AROUND[0] * W, W)
    for D in unrolled(1, len(AROUND)):
        result = result * load((rises if RAISED == D else counts) + (D * TAPS + AROUND[D]) * W, W)
    if len(AROUND) == 3:  # see `weights`
        result = where(index < 0, 0.0, result)
    return result


@loops
def pixels(
    grid: Pointer[T], there: Any, sizes: Pointer[i64], W: Static, DIMS: Static, MODE: Static, PADDING: Static, ALIGN: Static
) -> Any:  # fmt: skip
    """Return the indices of the pixels around positions, and the results of `along` for all dimensions.

    The coordinate of the last dimension comes first in a grid.
    """
    SIDE = len(POLYNOMIALS[MODE])
    ROOM = SIDE * W
    indices, counts, rises = local(i32, DIMS * ROOM), local(T, DIMS * ROOM), local(T, DIMS * ROOM)
    for d in range(DIMS):
        coordinate = gather(grid + (DIMS - 1 - d), lanes(i64, W) * DIMS, there)
        along(
            indices + d * ROOM, counts + d * ROOM, rises + d * ROOM, coordinate, sizes[d], W, DIMS, MODE, PADDING, ALIGN,
        )  # fmt: skip
    return [flat_index(indices, PIXEL, SIDE, sizes, W) for PIXEL in _around(DIMS, MODE)], counts, rises


@loops(explicit=True, plain=True, T=FLOATS, copied="images grid")
def sample(
    out: Pointer[T], images: Pointer[T], grid: Pointer[T], sizes: Pointer[i64], area: Int, channels: Int, places: Int,
    start: Int, stop: Int, W: Static, DIMS: Static, MODE: Static, PADDING: Static, ALIGN: Static,
) -> None:  # fmt: skip
    """Compute some pieces of the images at the positions of a grid."""
    PIXELS, SIDE = _around(DIMS, MODE), len(POLYNOMIALS[MODE])
    pieces = (places + (_VECTORS * W - 1)) // (_VECTORS * W)
    for piece in range(start, stop):
        image, first = piece // pieces, piece % pieces * (_VECTORS * W)
        for place in range(first, minimum(first + _VECTORS * W, places), W):
            there = first_lanes(places - place, W)
            own_grid = grid + (image * places + place) * DIMS
            indices, counts, rises = pixels(own_grid, there, sizes, W, DIMS, MODE, PADDING, ALIGN)
            weights = [product_of(indices[K], counts, rises, PIXELS[K], SIDE, -1, W) for K in unrolled(len(PIXELS))]
            plane = images + image * channels * area
            target = out + (image * channels * places + place)
            for _channel in range(channels):
                total = vector(T, W)(0)
                for K in unrolled(len(PIXELS)):
                    total = fma(weights[K], gather(plane, indices[K], indices[K] >= 0), total)
                store(target, total, there)
                plane = plane + area
                target = target + places


@loops(explicit=True, plain=True, T=FLOATS, copied="grad grid")
def spread(
    to_images: Pointer[T], grad: Pointer[T], grid: Pointer[T], sizes: Pointer[i64], area: Int, channels: Int, places: Int,
    planes: Int, start: Int, stop: Int, W: Static, DIMS: Static, MODE: Static, PADDING: Static, ALIGN: Static,
) -> None:  # fmt: skip
    """Compute the transpose of `sample` for pieces of planes, by adding to the images in the order of the positions."""
    PIXELS, SIDE = _around(DIMS, MODE), len(POLYNOMIALS[MODE])
    pieces = (channels + planes - 1) // planes
    targets, weights, shares = local(i32, len(PIXELS) * W), local(T, len(PIXELS) * W), local(T, W)
    for piece in range(start, stop):
        image, first = piece // pieces, piece % pieces * planes
        for place in range(0, places, W):
            there = first_lanes(places - place, W)
            own_grid = grid + (image * places + place) * DIMS
            indices, counts, rises = pixels(own_grid, there, sizes, W, DIMS, MODE, PADDING, ALIGN)
            for K in unrolled(len(PIXELS)):  # terms without weight are added to the first pixel
                weight = product_of(indices[K], counts, rises, PIXELS[K], SIDE, -1, W)
                store(targets + K * W, where(indices[K] >= 0, indices[K], 0))
                store(weights + K * W, where(indices[K] >= 0, weight, 0.0))
            count = minimum(places - place, W)
            for channel in range(first, minimum(first + planes, channels)):
                plane = to_images + (image * channels + channel) * area
                own = load(grad + ((image * channels + channel) * places + place), W, there)
                for pixel in range(len(PIXELS)):
                    share = load(weights + pixel * W, W)
                    store(shares, where(share == 0, 0.0, own * share))
                    for lane in range(count):
                        at = i64(targets[pixel * W + lane])
                        plane[at] = plane[at] + shares[lane]


@loops(explicit=True, plain=True, T=FLOATS, copied="grad images grid")
def steer(
    to_grid: Pointer[T], grad: Pointer[T], images: Pointer[T], grid: Pointer[T], sizes: Pointer[i64], area: Int,
    channels: Int, places: Int, start: Int, stop: Int, W: Static, DIMS: Static, MODE: Static, PADDING: Static, ALIGN: Static,
) -> None:  # fmt: skip
    """Compute some pieces of the gradient of the grid."""
    PIXELS, SIDE = _around(DIMS, MODE), len(POLYNOMIALS[MODE])
    pieces = (places + (_VECTORS * W - 1)) // (_VECTORS * W)
    products, found = local(vector(T, W), len(PIXELS)), local(T, DIMS * W)
    for piece in range(start, stop):
        image, first = piece // pieces, piece % pieces * (_VECTORS * W)
        for place in range(first, minimum(first + _VECTORS * W, places), W):
            there = first_lanes(places - place, W)
            own_grid = grid + (image * places + place) * DIMS
            indices, counts, rises = pixels(own_grid, there, sizes, W, DIMS, MODE, PADDING, ALIGN)
            for K in unrolled(len(PIXELS)):
                products[K] = vector(T, W)(0)
            plane = images + image * channels * area
            source = grad + (image * channels * places + place)
            for _channel in range(channels):
                own = load(source, W, there)
                for K in unrolled(len(PIXELS)):
                    products[K] = fma(own, gather(plane, indices[K], indices[K] >= 0), products[K])
                plane = plane + area
                source = source + places
            for D in unrolled(DIMS):
                total = vector(T, W)(0)
                for K in unrolled(len(PIXELS)):
                    total += products[K] * product_of(indices[K], counts, rises, PIXELS[K], SIDE, D, W)
                store(found + (DIMS - 1 - D) * W, total)
            target = to_grid + (image * places + place) * DIMS
            for lane in range(minimum(places - place, W)):
                for D in unrolled(DIMS):
                    target[lane * DIMS + D] = found[D * W + lane]


@functools.lru_cache(64)
def _pieces(images: tuple[int, ...], grid: tuple[int, ...], sampling: Sampling, step: int | None) -> Any:
    """Return the number of pieces of `step` positions, or of pieces of planes, their cost, and the parameters of the loops."""
    (count, channels), sizes, places = images[:2], images[2:], math.prod(grid[1:-1])
    static = {"DIMS": len(sizes), "MODE": sampling.mode, "PADDING": sampling.padding, "ALIGN": sampling.align_corners}
    numbers = unchanged(numpy.array(sizes, numpy.int64)), math.prod(sizes), channels, places
    place_bytes = channels * len(POLYNOMIALS[sampling.mode]) ** len(sizes) * 16
    if step is not None:
        return count * -(-places // step), step * place_bytes, numbers, static
    planes = max(1, min(4, count * channels // 8))  # of gradients in a piece of work
    return count * -(-channels // planes), planes * places * place_bytes // channels, (*numbers, planes), static


def _step(images: Array) -> int:
    """Return the number of positions in a piece of work."""
    return _VECTORS * (HOST.vector_bytes // images.itemsize)


def _fits(*arrays: Array) -> bool:
    first = arrays[0]
    alike = all(item.size and item.dtype == first.dtype for item in arrays)
    return alike and FLOATS(first.dtype) is not None and math.prod(first.shape[2:]) < 1 << 31


def sampled(images: Array, grid: Array, sampling: Sampling) -> Any:
    """Plan `kernels.nn.grid_sampling.grid_sampler`."""
    if not _fits(images, grid):
        return NotImplemented
    pieces, piece_bytes, numbers, static = _pieces(images.shape, grid.shape, sampling, _step(images))
    return NativeCall(
        sample.compiled(T=type_of(images.dtype), W=HOST.vector_bytes // images.itemsize, **static), pieces, piece_bytes,
        numbers, ["input", "grid"], [Memory((*images.shape[:2], *grid.shape[1:-1]), images.dtype)],
        copied=not_row_major(input=images, grid=grid),
    )  # fmt: skip


def gradients(grad: Array, input: Array, grid: Array, sampling: Sampling, needs: Any) -> Any:
    """Compute `kernels.nn.grid_sampling.grid_sampler_gradients`."""
    if not _fits(input, grid, grad):
        return NotImplemented
    to_input = numpy.zeros(input.shape, input.dtype) if needs[0] else None
    to_grid = numpy.zeros(grid.shape, grid.dtype) if needs[1] else None
    if to_input is not None:
        pieces, piece_bytes, numbers, static = _pieces(input.shape, grid.shape, sampling, None)
        to_input = spread.run(pieces, piece_bytes, to_input, grad, grid, *numbers, **static)
    if to_grid is not None and sampling.mode != NEAREST:
        pieces, piece_bytes, numbers, static = _pieces(input.shape, grid.shape, sampling, _step(input))
        to_grid = steer.run(pieces, piece_bytes, to_grid, grad, input, grid, *numbers, **static)
    return to_input, to_grid
