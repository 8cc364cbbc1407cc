"""Compiled pooling: vectors run along the windows of a row, and each element of the windows is read in place.

The plans of the forms in `kernels.nn.pooling`, which describes their arguments. The layout of a table is that of the
windows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.calls import ARRAYS_AT, NativeCall, array_at
from ....codegen.llvm.language import *
from ....codegen.plans import Memory, Plan
from ...nn.pooling import divisor
from ...nn.windows import Windows, windows_of
from .adaptive_pooling import mean_plan
from .convolution_kernels import dealt, store_first

Sizes = tuple[int, ...]

WINDOWS = Struct("length:3 count:3 kernel:3 stride:3 padding:3 dilation:3")
PLANES = Struct("size count")


@loops(explicit=True, plain=True, noalias=False)
def largest(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, STEP: Static, INDEXED: Static) -> None:
    """Find the largest element of each window of planes `start` to `stop`: the first, or the last NaN.

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
                    store_first(values + (to + k), best, count_w - k, W)
                    if INDEXED:
                        indices = array_at(table, 2, i64)
                        store_first(indices + (to + k), i64(chosen), count_w - k, W)
                to += count_w


@loops(explicit=True, noalias=False)
def scatter_planes(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static) -> None:
    """Zeros, to which `grad` is added at `indices` of each plane; writes to `wrong` if one is outside."""
    planes = fields(table[0], PLANES)
    size, count = planes.size, planes.count
    grad, indices = array_at(table, 0, T), array_at(table, 1, i64)
    result, wrong = array_at(table, 2, T), as_pointer(table[ARRAYS_AT + 3], i64)
    for p in range(start, stop):
        plane = result + p * size
        for i in range(0, size, W):
            store_first(plane + i, vector(T, W)(0), size - i, W)
        for i in range(p * count, (p + 1) * count):
            at = indices[i]
            if at < 0 or at >= size:
                wrong[0] = 1
            else:
                plane[at] += grad[i]


@loops(explicit=True, noalias=False)
def averages(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, STEP: Static) -> None:
    """The sum of each window of planes `start` to `stop` over its divisor."""
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
    """The parameters of windows that kernels receive. Missing dimensions come first."""
    missing = [1] * (3 - len(windows.dims))
    found = {name: missing + [getattr(along, name) for along in windows.dims] for name in WINDOWS.counts}
    found["padding"][: len(missing)] = [0] * len(missing)
    return WINDOWS.pack(**found)


def _fits(x: ndarray) -> bool:
    return bool(x.dtype.char in "fd" and x.dtype.isnative and x.flags.c_contiguous and x.size)


def _statics(x: ndarray) -> dict[str, Any]:
    return {"T": type_of(x.dtype), "W": HOST.vector_bytes // x.itemsize}


def _step(windows: Windows) -> int:
    """The parameter `STEP`: the step of the last dimension if it is 1 or 2, otherwise 0."""
    step = windows.dims[-1].stride
    return step if step < 3 else 0


_MAXIMUM = ["input", "dims", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "indexed"]
_MEAN = ["dims", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]


def max_pool(
    input: ndarray,
    dims: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indexed: bool,
) -> Any:
    """The plan of the largest elements of windows and their indices, with None for these if they are not `indexed`."""
    windows = windows_of(f"max_pool{dims}d", input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(input) or not count or size >= 1 << 31 or any(w.padding and w.dilation > 1 for w in windows.dims):
        return NotImplemented
    shape = input.shape[: input.ndim - dims] + windows.sizes
    elements = math.prod(w.kernel for w in windows.dims)
    return NativeCall(
        largest.compiled(**_statics(input), STEP=_step(windows), INDEXED=indexed),
        input.size // size, (elements + 4) * count * input.itemsize, _layout(windows), _MAXIMUM, ["input"],
        [Memory(shape, input.dtype), Memory(shape, numpy.dtype(numpy.int64)) if indexed else None],
    ).plan()  # fmt: skip


def max_pool_backward(grad: ndarray, indices: ndarray, input_shape: Sizes, dims: int) -> Any:
    """The plan of zeros of `input_shape`, to which `grad` is added at `indices` into the flattened spatial dimensions."""
    planes, size = math.prod(input_shape[:-dims]), math.prod(input_shape[-dims:])
    if not _fits(grad) or indices.dtype != numpy.int64 or not indices.flags.c_contiguous or indices.size != grad.size:
        return NotImplemented
    if not planes or grad.size % planes:
        return NotImplemented
    count = grad.size // planes
    plan = NativeCall(
        scatter_planes.compiled(**_statics(grad)), planes, (size + 8 * count) * grad.itemsize,
        PLANES.pack(size=size, count=count), ["grad", "indices", "wrong"], ["grad", "indices"],
        [Memory(tuple(input_shape), grad.dtype)], ["wrong"], "q",
    ).plan()  # fmt: skip

    def into(out: Any, grad: ndarray, indices: ndarray, *_: Any) -> Any:
        wrong = numpy.zeros(1, numpy.int64)
        plan.into(out, grad, indices, address(wrong))
        return NotImplemented if wrong[0] else None  # NumPy's form says which index is wrong

    return Plan(plan.results, into=into)


def avg_pool(
    input: ndarray,
    dims: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """The plan of the sums of windows over how many elements they have, or over `divisor_override`."""
    windows = windows_of(f"avg_pool{dims}d", input.shape, kernel_size, stride, padding, (1,), ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(input) or not count or size >= 1 << 31:
        return NotImplemented
    elements = math.prod(w.kernel for w in windows.dims)
    return NativeCall(
        averages.compiled(**_statics(input), STEP=_step(windows)), input.size // size,
        (elements + 2) * count * input.itemsize, _layout(windows), ["input", *_MEAN], ["input", "divisors"],
        [Memory(input.shape[: input.ndim - dims] + windows.sizes, input.dtype)],
        constants={"divisors": _divisors(windows, count_include_pad, divisor_override, input.dtype.char)},
    ).plan()  # fmt: skip


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
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """The plan of the gradient of the input of `avg_pool`: each mean's share added to the elements of its window."""
    windows = windows_of(f"avg_pool{dims}d", tuple(input_shape), kernel_size, stride, padding, (1,), ceil_mode)
    size, count = math.prod(windows.lengths), math.prod(windows.sizes)
    if not _fits(grad) or not size or grad.shape != (*input_shape[:-dims], *windows.sizes):
        return NotImplemented
    elements = math.prod(w.kernel for w in windows.dims)
    divisors = divisor(windows.dims, count_include_pad, divisor_override)
    bounds, work = [along.bounds() for along in windows.dims], size + 4 * elements * count
    return mean_plan(grad, tuple(input_shape), work, bounds, divisors, spread=True)
