"""Pooling compiled: vectors run along the windows of a row; each element of the windows is read where it is.

The forms of `kernels.nn.pooling`, which says what their arguments are.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Pointer,
    S,
    Static,
    T,
    address,
    i32,
    i64,
    lanes,
    load,
    loops,
    maximum,
    minimum,
    store,
    type_of,
    unrolled,
    vector,
    where,
)
from ....codegen.llvm.launch import launch
from ...nn.pooling import divisor
from ...nn.windows import Windows, windows_of
from .convolution_kernels import dealt

Sizes = tuple[int, ...]


@loops(explicit=True)
def store_row(to: Pointer[T], values: S, count: Int, W: Static) -> None:
    """The first `count` numbers of a vector."""
    if count >= W:
        store(to, values)
    else:
        store(to, values, lanes(i32, W) < i32(count))


@loops(explicit=True, plain=True)
def largest(
    values: Pointer[T],
    indices: Pointer[i64],
    x: Pointer[T],
    windows: Pointer[i64],
    start: Int,
    stop: Int,
    W: Static,
    STEP: Static,
    INDEXED: Static,
) -> None:
    """The largest element of each window of planes `start` to `stop`: the first one, or the last NaN; its index if `INDEXED`."""
    length_d, length_h, length_w, count_d, count_h, count_w = [windows[K] for K in unrolled(6)]
    kernel_d, kernel_h, kernel_w, step_d, step_h, step_w = [windows[6 + K] for K in unrolled(6)]
    padding_d, padding_h, padding_w, gap_d, gap_h, gap_w = [windows[12 + K] for K in unrolled(6)]
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
                    # A window of nothing but -inf gives its first element; padding has no gaps.
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
                    store_row(values + (to + k), best, count_w - k, W)
                    if INDEXED:
                        store_row(indices + (to + k), i64(chosen), count_w - k, W)
                to += count_w


@loops(explicit=True)
def scatter_planes(
    result: Pointer[T],
    wrong: Pointer[i64],
    grad: Pointer[T],
    indices: Pointer[i64],
    size: Int,
    count: Int,
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """Zeros, to which `grad` is added at `indices` of each plane; writes to `wrong` if one is outside."""
    for p in range(start, stop):
        plane = result + p * size
        for i in range(0, size, W):
            store_row(plane + i, vector(T, W)(0), size - i, W)
        for i in range(p * count, (p + 1) * count):
            at = indices[i]
            if at < 0 or at >= size:
                wrong[0] = 1
            else:
                plane[at] += grad[i]


@loops(explicit=True)
def averages(
    result: Pointer[T],
    x: Pointer[T],
    divisors: Pointer[T],
    windows: Pointer[i64],
    start: Int,
    stop: Int,
    W: Static,
    STEP: Static,
) -> None:
    """The sum of each window of planes `start` to `stop` over its divisor."""
    length_d, length_h, length_w, count_d, count_h, count_w = [windows[K] for K in unrolled(6)]
    kernel_d, kernel_h, kernel_w, step_d, step_h, step_w = [windows[6 + K] for K in unrolled(6)]
    padding_d, padding_h, padding_w = [windows[12 + K] for K in unrolled(3)]
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
                    store_row(result + (to + k), total / divisor, count, W)
                place += count_w
                to += count_w


@loops(explicit=True)
def spread_averages(
    result: Pointer[T],
    grad: Pointer[T],
    divisors: Pointer[T],
    windows: Pointer[i64],
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """The transpose of `averages`: `grad / divisor` added to all elements of each window."""
    length_d, length_h, length_w, count_d, count_h, count_w = [windows[K] for K in unrolled(6)]
    kernel_d, kernel_h, kernel_w, step_d, step_h, step_w = [windows[6 + K] for K in unrolled(6)]
    padding_d, padding_h, padding_w = [windows[12 + K] for K in unrolled(3)]
    for p in range(start, stop):
        size = length_d * length_h * length_w
        plane = result + p * size
        for i in range(0, size, W):
            store_row(plane + i, vector(T, W)(0), size - i, W)
        given = grad + p * count_d * count_h * count_w
        place = 0
        for i in range(count_d):
            first_d = i * step_d - padding_d
            for j in range(count_h):
                first_h = j * step_h - padding_h
                for k in range(count_w):
                    first_w = k * step_w - padding_w
                    share = given[place] / divisors[place]
                    place += 1
                    for z in range(maximum(first_d, 0), minimum(first_d + kernel_d, length_d)):
                        for y in range(maximum(first_h, 0), minimum(first_h + kernel_h, length_h)):
                            row = plane + (z * length_h + y) * length_w
                            for c in range(maximum(first_w, 0), minimum(first_w + kernel_w, length_w)):
                                row[c] += share


@functools.lru_cache(64)
def _table(windows: Windows) -> ndarray:
    """What kernels are told about windows; dimensions that are missing come first."""
    missing = 3 - len(windows.dims)
    rows = [
        [one] * missing + [getattr(along, name) for along in windows.dims]
        for name, one in (("length", 1), ("count", 1), ("kernel", 1), ("stride", 1), ("padding", 0), ("dilation", 1))
    ]
    return numpy.array(rows, numpy.int64).reshape(-1)


def _fits(x: ndarray) -> bool:
    return bool(x.dtype.char in "fd" and x.dtype.isnative and x.flags.c_contiguous and x.size)


def _statics(x: ndarray) -> dict[str, Any]:
    return {"T": type_of(x.dtype), "W": HOST.vector_bytes // x.itemsize}


def _step(windows: Windows) -> int:
    """The parameter `STEP`: that of the last dimension if it is 1 or 2, else 0."""
    step = windows.dims[-1].stride
    return step if step < 3 else 0


def max_pool(
    input: ndarray,
    dims: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool = False,
    indexed: bool = True,
) -> Any:
    """The largest element of each window and its index, or None if it is not `indexed`."""
    windows = windows_of(f"max_pool{dims}d", input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(input) or not count or size >= 1 << 31 or any(w.padding and w.dilation > 1 for w in windows.dims):
        return NotImplemented
    shape = input.shape[: input.ndim - dims] + windows.sizes
    values, table = numpy.empty(shape, input.dtype), _table(windows)
    indices = numpy.empty(shape, numpy.int64) if indexed else None
    elements = math.prod(w.kernel for w in windows.dims)
    launch(
        largest.compiled(**_statics(input), STEP=_step(windows), INDEXED=indexed),
        input.size // size, (elements + 4) * count * input.itemsize,
        address(values), 0 if indices is None else address(indices), address(input), address(table),
    )  # fmt: skip
    return values, indices


def max_pool_backward(grad: ndarray, indices: ndarray, input_shape: Sizes, dims: int) -> Any:
    """Zeros of `input_shape`, to which `grad` is added at `indices` into the flattened `dims` spatial dimensions."""
    planes, size = math.prod(input_shape[:-dims]), math.prod(input_shape[-dims:])
    if not _fits(grad) or indices.dtype != numpy.int64 or not indices.flags.c_contiguous or indices.size != grad.size:
        return NotImplemented
    if not planes or grad.size % planes:
        return NotImplemented
    result = numpy.empty(input_shape, grad.dtype)
    function = scatter_planes.compiled(**_statics(grad))
    count = grad.size // planes
    wrong = numpy.zeros(1, numpy.int64)
    launch(
        function, planes, (size + 8 * count) * grad.itemsize, address(result), address(wrong), address(grad), address(indices),
        size, count,
    )  # fmt: skip
    return NotImplemented if wrong[0] else result  # NumPy's form says which index is wrong


def avg_pool(
    input: ndarray,
    dims: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The sum of each window over how many elements it has, or over `divisor_override`."""
    windows = windows_of(f"avg_pool{dims}d", input.shape, kernel_size, stride, padding, (1,), ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(input) or not count or size >= 1 << 31:
        return NotImplemented
    divisors = _divisors(windows, count_include_pad, divisor_override, input.dtype.char)
    result = numpy.empty(input.shape[: input.ndim - dims] + windows.sizes, input.dtype)
    elements, table = math.prod(w.kernel for w in windows.dims), _table(windows)
    launch(
        averages.compiled(**_statics(input), STEP=_step(windows)), input.size // size, (elements + 2) * count * input.itemsize,
        address(result), address(input), address(divisors), address(table),
    )  # fmt: skip
    return result


@functools.lru_cache(64)
def _divisors(windows: Windows, count_include_pad: bool, divisor_override: int | None, code: str) -> ndarray:
    """The divisor of each window."""
    found = numpy.empty(windows.sizes, code)
    found[...] = divisor(windows.dims, count_include_pad, divisor_override)
    return found


def avg_pool_backward(
    grad: ndarray,
    input_shape: Sizes,
    dims: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The gradient of the input of `avg_pool`: each mean's share added to the elements of its window."""
    windows = windows_of(f"avg_pool{dims}d", tuple(input_shape), kernel_size, stride, padding, (1,), ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(grad) or not size or grad.shape != (*input_shape[:-dims], *windows.sizes):
        return NotImplemented
    divisors = _divisors(windows, count_include_pad, divisor_override, grad.dtype.char)
    result, table = numpy.empty(input_shape, grad.dtype), _table(windows)
    elements = math.prod(w.kernel for w in windows.dims)
    launch(
        spread_averages.compiled(**_statics(grad)), grad.size // count, (size + 4 * elements * count) * grad.itemsize,
        address(result), address(grad), address(divisors), address(table),
    )  # fmt: skip
    return result
