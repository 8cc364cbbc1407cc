"""Compiled pooling over windows that divide the input into a given number of parts, from tables of their bounds.

Reductions compute a single window, and `max_pool` computes maxima over windows of one length.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...nn.windows import Bounds

SIZES = Struct("length:3 count:3")


@loops(explicit=True, plain=True)
def some(x: Pointer[T], inside: Any, W: Static) -> Any:
    """Return a number, or the first `inside` numbers of a register."""
    return x[0] if W == 1 else load(x, W, inside)


@loops(explicit=True, plain=True)
def largest(
    values: Pointer[T], indices: Pointer[i64], x: Pointer[T], corners: Pointer[i64], steps: Pointer[i64], size: Int, count: Int,
    elements: Int, corner_step: Int, start: Int, stop: Int, W: Static, ALIKE: Static,
) -> None:  # fmt: skip
    """Find the largest element of each of `count` windows in planes `start` to `stop`, and its index.

    The result is the first largest element, or the last NaN.

    A window has `elements` elements. Row `i` of `steps` contains the positions of element `i` relative to the corners.
    Planes are `size` apart, and their corners are `corner_step` apart. `ALIKE`: whether all windows have the same
    steps. `W` windows are computed together.
    """
    for p in range(start, stop):
        plane = x + p * size
        for k in range(0, count, W):
            inside = 1 if W == 1 else first_lanes(count - k, W)
            corner = some(corners + (p * corner_step + k), inside, W)
            chosen = corner
            best = plane[corner] if W == 1 else gather(plane, corner, inside)
            for e in range(elements):
                here = corner + (broadcast(steps[e], W) if ALIKE else some(steps + (e * count + k), inside, W))
                met = plane[here] if W == 1 else gather(plane, here, inside)
                better = (met > best) | (met != met)
                best = where(better, met, best)
                chosen = where(better, here, chosen)
            if W == 1:
                values[p * count + k] = best
                indices[p * count + k] = chosen
            else:
                store(values + (p * count + k), best, inside)
                store(indices + (p * count + k), chosen, inside)


def _largest_call(
    results: Sequence[Memory], arrays: Sequence[str], constants: Sequence[ndarray], size: int, corner_step: int,
    elements: int, alike: bool,
) -> NativeCall:  # fmt: skip
    """Return the call of `largest` for an array, corners and steps, which are `arrays` or `constants`."""
    shape, dtype, _ = results[0]
    planes = shape[0] if alike else math.prod(shape) // constants[0].size
    count = math.prod(shape) // planes
    width = HOST.vector_bytes // 8 if count > 1 else 1
    function = largest.compiled(T=type_of(dtype), W=width, ALIKE=alike)
    layout = [*constants, size, count, elements, corner_step]
    return NativeCall(function, planes, 8 * elements * count, layout, arrays, results)


@loops(explicit=True, plain=True)
def averages(
    result: Pointer[T], x: Pointer[T], sizes: Pointer[i64], bounds: Pointer[i64], divisors: Pointer[T],
    start: Int, stop: Int, SPREAD: Static,
) -> None:  # fmt: skip
    """Divide the sums of the windows of planes by their divisors, or (`SPREAD`) compute the transpose."""
    windows = fields(sizes, SIZES)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    rows, columns = bounds + 2 * count_d, bounds + 2 * (count_d + count_h)
    size, count = length_d * length_h * length_w, count_d * count_h * count_w
    for p in range(start, stop):
        plane = (result if SPREAD else x) + p * size
        pooled = (x if SPREAD else result) + p * count
        place = i64(0)
        if SPREAD:
            for i in range(size):
                plane[i] = 0
        for i in range(count_d):
            for j in range(count_h):
                for k in range(count_w):
                    total = pooled[place] / divisors[place] if SPREAD else T(0)
                    for z in range(bounds[2 * i], bounds[2 * i + 1]):
                        for y in range(rows[2 * j], rows[2 * j + 1]):
                            line = (z * length_h + y) * length_w
                            for at in range(line + columns[2 * k], line + columns[2 * k + 1]):
                                if SPREAD:
                                    plane[at] += total
                                else:
                                    total += plane[at]
                    if not SPREAD:
                        pooled[place] = total / divisors[place]
                    place += 1


def fits(x: ndarray) -> bool:
    """Return whether there are loops for an array."""
    return bool(x.dtype.char in "fd" and x.dtype.isnative and x.flags.c_contiguous and x.size)


def adaptive_max_pool(input: ndarray, elements: ndarray, results: Sequence[Memory]) -> Any:
    """Return the plan that finds the largest element of each window, of the given flat positions, and its index."""
    if not fits(input):
        return NotImplemented
    planes = math.prod(results[0].shape) // elements.shape[1]
    corners, steps = elements[0].copy(), elements - elements[0]
    return _largest_call(results, ["input"], [corners, steps], input.size // planes, 0, len(steps), False)


def largest_at(values: ndarray, corners: ndarray, offsets: ndarray) -> Any:
    """Return the plan of `kernels.nn.pooling._largest_at`."""
    if values.dtype.char not in "fd" or not corners.size:
        return NotImplemented
    results = Memory(corners.shape, values.dtype), Memory(corners.shape, numpy.dtype(numpy.int64))
    return _largest_call(results, ["values", "corners", "offsets"], [], 0, corners[0].size, len(offsets), True)


def means(x: ndarray, bounds: Sequence[Bounds], divisors: ndarray, result: Memory, spread: bool = False) -> Any:
    """Return the plan that sums windows and divides the sums by `divisors`, or the plan of the transpose."""
    dims, counts = len(bounds), tuple([len(starts) for starts, _ in bounds])
    whole, pooled = (result.shape, x.shape) if spread else (x.shape, result.shape)
    if not fits(x) or 0 in whole or pooled != (*whole[:-dims], *counts):
        return NotImplemented
    missing, lengths = 3 - dims, whole[-dims:]
    sizes = SIZES.pack(length=[1] * missing + list(lengths), count=[1] * missing + list(counts))
    pairs = [numpy.stack(along, 1).reshape(-1) for along in bounds]
    tables = (
        numpy.array(sizes, numpy.int64),
        numpy.concatenate([numpy.array([0, 1] * missing, numpy.int64), *pairs]),
        numpy.broadcast_to(divisors, counts).astype(x.dtype, order="C"),
    )
    function = averages.compiled(T=type_of(x.dtype), SPREAD=spread)
    touched = math.prod([int((stops - starts).sum()) for starts, stops in bounds])
    planes, plane_bytes = math.prod(whole[:-dims]), (math.prod(lengths) + 4 * touched) * x.itemsize
    return NativeCall(function, planes, plane_bytes, tables, ["grad" if spread else "input"], [result])
