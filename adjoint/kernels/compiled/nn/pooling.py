"""Compiled pooling. Vectors run along the windows of a row, and each element of the windows is read in place.

The layout of the table describes the windows.
"""

from __future__ import annotations

from typing import NamedTuple

from ....codegen.llvm.kernels import *
from ...nn.windows import Windows
from .adaptive_pooling import fits
from .convolution_kernels import dealt, store_first

Sizes = tuple[int, ...]

WINDOWS = Struct("length:3 count:3 kernel:3 stride:3 padding:3 dilation:3 divisors")


class Pool(NamedTuple):
    """A pooling: the first value, the function that meets an element (with its index), and the result for a divisor."""

    first: float
    meet: Loops
    result: Loops


@loops
def meet_largest(best: T, chosen: S, met: T, places: S, inside: Any) -> Any:
    """Choose the first largest element, or the last NaN."""
    better = inside & ((met > best) | (met != met))
    return where(better, met, best), where(better, places, chosen)


@loops
def meet_sum(total: T, chosen: S, met: T, places: S, inside: Any) -> Any:
    """Add the element, which is 0 outside."""
    return total + met, chosen


@loops
def itself(value: T, divisor: T) -> T:
    """Return the value."""
    return value


@loops
def quotient(value: T, divisor: T) -> T:
    """Return the quotient."""
    return value / divisor


LARGEST, AVERAGE = Pool(-math.inf, meet_largest, itself), Pool(0, meet_sum, quotient)


@loops(explicit=True, plain=True, noalias=False)
def pooled(
    table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, STEP: Static, POOL: Static, DIVIDED: Static,
    INDEXED: Static,
) -> None:  # fmt: skip
    """Pool the windows of some planes, with a divisor for each if `DIVIDED`, and the index of an element if `INDEXED`."""
    windows = fields(table[0], WINDOWS)
    length_d, length_h, length_w = windows.length
    count_d, count_h, count_w = windows.count
    kernel_d, kernel_h, kernel_w = windows.kernel
    step_d, step_h, step_w = windows.stride
    padding_d, padding_h, padding_w = windows.padding
    gap_d, gap_h, gap_w = windows.dilation
    x, values, divisors = array_at(table, 0, T), array_at(table, 1, T), as_pointer(windows.divisors, T)
    for p in range(start, stop):
        plane = x + p * length_d * length_h * length_w
        window = i64(0)
        to = p * count_d * count_h * count_w
        for i in range(count_d):
            first_d = i * step_d - padding_d
            for j in range(count_h):
                first_h = j * step_h - padding_h
                corner = (maximum(first_d, 0) * length_h + maximum(first_h, 0)) * length_w
                for k in range(0, count_w, W):
                    first_w = k * step_w - padding_w
                    column = lanes(i32, W) * i32(step_w) + i32(first_w)
                    value = vector(T, W)(POOL.first)
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
                                        value, chosen = POOL.meet(value, chosen, met, places + i32(row), inside)
                    left = minimum(count_w - k, W)
                    divisor = value
                    if DIVIDED:
                        divisor = load(divisors + (window + k), W, lanes(i32, W) < i32(left))
                    store_first(values + (to + window + k), POOL.result(value, divisor), left, W)
                    if INDEXED:
                        indices = array_at(table, 2, i64)
                        store_first(indices + (to + window + k), i64(chosen), left, W)
                window += count_w


def _layout(windows: Windows, divisors: int) -> list[int]:
    """Return the parameters of windows, and the address of divisors, that kernels receive. Missing dimensions come first."""
    missing = [1] * (3 - len(windows.dims))
    found = {name: missing + [getattr(along, name) for along in windows.dims] for name in list(WINDOWS.counts)[:-1]}
    found["padding"][: len(missing)] = [0] * len(missing)
    return WINDOWS.pack(**found, divisors=divisors)


def _call(pool: Pool, x: ndarray, windows: Windows, results: Sequence[Memory | None], divisors: ndarray | None) -> Any:
    """Return the call that pools windows. A last step of 1 or 2 is known at compile time."""
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not fits(x) or not count or size >= 1 << 31:
        return NotImplemented
    elements, step = math.prod(along.kernel for along in windows.dims), windows.dims[-1].stride
    function = pooled.compiled(
        T=type_of(x.dtype), W=HOST.vector_bytes // x.itemsize, STEP=step if step < 3 else 0, POOL=pool,
        DIVIDED=divisors is not None, INDEXED=len(results) > 1 and results[1] is not None,
    )  # fmt: skip
    each = None if divisors is None else numpy.broadcast_to(divisors, windows.sizes).astype(x.dtype, order="C")
    layout = _layout(windows, 0 if each is None else address(each))
    work = (elements + 4) * count * x.itemsize
    return NativeCall(function, x.size // size, work, layout, ["input"], results, constants={"divisors": each})


def max_pool(input: ndarray, windows: Windows, results: Sequence[Memory | None]) -> Any:
    """Return the call that finds the largest elements of windows, and their indices if these are requested."""
    if any(along.padding and along.dilation > 1 for along in windows.dims):
        return NotImplemented
    return _call(LARGEST, input, windows, results, None)


def avg_pool(input: ndarray, windows: Windows, divisors: ndarray, result: Memory) -> Any:
    """Return the call that divides the sums of windows by `divisors`."""
    return _call(AVERAGE, input, windows, [result], divisors)
