"""Compiled pooling. Vectors run along the windows of a row, and each element of the windows is read in place.

The layout of the table describes the windows.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...nn.windows import Windows
from .adaptive_pooling import fits
from .convolution_kernels import dealt, store_first

Sizes = tuple[int, ...]

WINDOWS = Struct("length:3 count:3 kernel:3 stride:3 padding:3 dilation:3")


@loops(explicit=True, plain=True, noalias=False)
def largest(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, STEP: Static, INDEXED: Static) -> None:
    """Find the largest element of each window of planes `start` to `stop`.

    The result is the first largest element, or the last NaN.

    Return its index if `INDEXED`.
    """
    windows = fields(table[0], WINDOWS)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    kernel_d, kernel_h, kernel_w = windows.kernel
    step_d, step_h, step_w = windows.stride
    padding_d, padding_h, padding_w = windows.padding
    gap_d, gap_h, gap_w = windows.dilation
    x, values = array_at(table, 0, T), array_at(table, 1, T)
    for p in range(start, stop):
        plane = x + p * length_d * length_h * length_w
        to = p * count_d * count_h * count_w
        for i in range(count_d):
            first_d = i * step_d - padding_d
            for j in range(count_h):
                first_h = j * step_h - padding_h
                corner = (maximum(first_d, 0) * length_h + maximum(first_h, 0)) * length_w
                for k in range(0, count_w, W):
                    first_w = k * step_w - padding_w
                    column = lanes(i32, W) * i32(step_w) + i32(first_w)
                    best = vector(T, W)(-math.inf)
                    # A window that contains only -inf gives its first element. Padding has no gaps.
                    chosen = maximum(column, 0) + i32(corner)
                    for a in range(kernel_d):
                        z = first_d + a * gap_d
                        if z >= 0 and z < length_d:
                            for b in range(kernel_h):
                                y = first_h + b * gap_h
                                if y >= 0 and y < length_h:
                                    row = (z * length_h + y) * length_w
                                    for c in range(kernel_w):
                                        at = first_w + c * gap_w
                                        met = dealt(plane + row, at, step_w, length_w, W, STEP)
                                        places = column + i32(c * gap_w)
                                        inside = (places >= 0) & (places < i32(length_w))
                                        better = inside & ((met > best) | (met != met))
                                        best = where(better, met, best)
                                        chosen = where(better, places + i32(row), chosen)
                    store_first(values + (to + k), best, count_w - k, W)
                    if INDEXED:
                        indices = array_at(table, 2, i64)
                        store_first(indices + (to + k), i64(chosen), count_w - k, W)
                to += count_w


@loops(explicit=True, noalias=False)
def averages(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, STEP: Static) -> None:
    """Sum each window of planes `start` to `stop`, and divide the sum by its divisor."""
    windows = fields(table[0], WINDOWS)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    kernel_d, kernel_h, kernel_w = windows.kernel
    step_d, step_h, step_w = windows.stride
    padding_d, padding_h, padding_w = windows.padding
    x, divisors = array_at(table, 0, T), array_at(table, 1, T)
    result = array_at(table, 2, T)
    for p in range(start, stop):
        plane = x + p * length_d * length_h * length_w
        place = 0
        to = p * count_d * count_h * count_w
        for i in range(count_d):
            first_d = i * step_d - padding_d
            for j in range(count_h):
                first_h = j * step_h - padding_h
                for k in range(0, count_w, W):
                    first_w = k * step_w - padding_w
                    total = vector(T, W)(0)
                    for z in range(maximum(first_d, 0), minimum(first_d + kernel_d, length_d)):
                        for y in range(maximum(first_h, 0), minimum(first_h + kernel_h, length_h)):
                            row = plane + (z * length_h + y) * length_w
                            for c in range(kernel_w):
                                total += dealt(row, first_w + c, step_w, length_w, W, STEP)
                    count = minimum(count_w - k, W)
                    divisor = load(divisors + (place + k), W, lanes(i32, W) < i32(count))
                    store_first(result + (to + k), total / divisor, count, W)
                place += count_w
                to += count_w


def _layout(windows: Windows) -> list[int]:
    """Return the parameters of windows that kernels receive. Missing dimensions come first."""
    missing = [1] * (3 - len(windows.dims))
    found = {name: missing + [getattr(along, name) for along in windows.dims] for name in WINDOWS.counts}
    found["padding"][: len(missing)] = [0] * len(missing)
    return WINDOWS.pack(**found)


def _statics(x: ndarray) -> dict[str, Any]:
    return {"T": type_of(x.dtype), "W": HOST.vector_bytes // x.itemsize}


def _call(loop: Any, x: ndarray, windows: Windows, results: Sequence[Memory | None], **options: Any) -> Any:
    """Return the call of a loop over the windows of each plane.

    The step of the last dimension is known at compile time if it is 1 or 2.
    """
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not fits(x) or not count or size >= 1 << 31:
        return NotImplemented
    elements, step = math.prod(along.kernel for along in windows.dims), windows.dims[-1].stride
    function = loop.compiled(**_statics(x), STEP=step if step < 3 else 0, **options)
    row_bytes = (elements + 4) * count * x.itemsize
    return NativeCall(function, x.size // size, row_bytes, _layout(windows), ["input"], results)


def max_pool(input: ndarray, windows: Windows, results: Sequence[Memory | None]) -> Any:
    """Return the call that finds the largest elements of windows, and their indices if these are requested."""
    if any(along.padding and along.dilation > 1 for along in windows.dims):
        return NotImplemented
    return _call(largest, input, windows, results, INDEXED=results[1] is not None)


def avg_pool(input: ndarray, windows: Windows, divisors: ndarray, result: Memory) -> Any:
    """Return the call that divides the sums of windows by `divisors`."""
    call = _call(averages, input, windows, [result])
    if call is not NotImplemented:
        call.arrays = ["input", "divisors"]
        call.constants = {"divisors": numpy.broadcast_to(divisors, windows.sizes).astype(input.dtype, order="C")}
    return call
