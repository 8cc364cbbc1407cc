"""Pooling: the maximum or the mean of windows, and their gradients, for any number of spatial dimensions.

Arrays are (batch, channels, spatial...). A window is gone through offset by offset, each of them one vector operation over all windows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy

from .precision import widen

Array = numpy.ndarray[Any, Any]
Sizes = tuple[int, ...]


def output_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> Sizes:
    """How many windows there are along each dimension; in ceil mode also one that begins inside and ends outside."""
    result = []
    for size, width, step, pad, gap in zip(sizes, kernel, stride, padding, dilation, strict=True):
        span = size + 2 * pad - gap * (width - 1) - 1
        count = (-(-span // step) if ceil_mode else span // step) + 1
        if ceil_mode and (count - 1) * step >= size + pad:
            count -= 1
        result.append(count)
    return tuple(result)


def _check(x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> Sizes:
    if any(step == 0 for step in stride):
        raise RuntimeError("stride should not be zero")
    if any(width <= 0 for width in kernel):
        raise RuntimeError("kernel size should be greater than zero")
    if any(gap <= 0 for gap in dilation):
        raise RuntimeError("dilation should be greater than zero")
    for pad, width, gap in zip(padding, kernel, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > ((width - 1) * gap + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={width} and dilation={gap}"
            )
    sizes = output_sizes(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    if any(size < 1 for size in sizes):
        given = "x".join(map(str, x.shape[1:]))
        found = "x".join(map(str, (x.shape[1], *(max(size, 0) for size in sizes))))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({found}). Output size is too small")
    return sizes


def _windows(sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
    """Each offset within a window, and the slices of the padded input that it takes in all windows."""
    for offset in itertools.product(*map(range, kernel)):
        begin = [step * gap for step, gap in zip(offset, dilation, strict=True)]
        yield (
            offset,
            (Ellipsis, *(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, sizes, stride, strict=True))),  # type: ignore[misc]
        )


def _padded(x: Array, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, value: Any) -> Array:
    """`x` surrounded by `value`, as far as the windows reach."""
    widths = [(0, 0), (0, 0)]
    for length, n, width, step, pad, gap in zip(x.shape[2:], sizes, kernel, stride, padding, dilation, strict=True):
        reach = (n - 1) * step + gap * (width - 1) + 1
        widths.append((pad, max(reach - pad - length, 0)))
    if not any(before or after for before, after in widths):
        return x
    return numpy.pad(x, widths, constant_values=value)


# --- the maximum ----------------------------------------------------------------------------------------------


def _lowest(dtype: Any) -> Any:
    return numpy.iinfo(dtype).min if dtype.kind in "iu" else -numpy.inf


def max_pool(
    x: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> tuple[Array, Array]:
    """The largest element of each window and its index in the flattened spatial dimensions; NaN is larger than all."""
    sizes = _check(x, kernel_size, stride, padding, dilation, ceil_mode)
    padded = _padded(x, sizes, kernel_size, stride, padding, dilation, _lowest(x.dtype))
    values = indices = None
    floating = x.dtype.kind not in "iu"
    for offset, window in _windows(sizes, kernel_size, stride, dilation):
        candidates, position = padded[window], _positions(x.shape[2:], sizes, offset, stride, padding, dilation)
        if values is None or indices is None:
            values = candidates.copy()
            indices = numpy.broadcast_to(position, values.shape).copy()
            continue
        better = candidates > values
        if floating:
            better |= candidates != candidates
        if any(padding):
            better |= indices < 0
        numpy.copyto(values, candidates, where=better)
        numpy.copyto(indices, position, where=better)
    return values, indices  # type: ignore[return-value]


def _positions(lengths: Sizes, sizes: Sizes, offset: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Array:
    """The flat spatial index of the element at `offset` of each window; below 0 where that is padding."""
    flat, outside = numpy.zeros((), numpy.int64), numpy.zeros((), bool)
    for dim, length in enumerate(lengths):
        along = numpy.arange(sizes[dim]) * stride[dim] + (offset[dim] * dilation[dim] - padding[dim])
        flat = flat[..., None] * length + along
        outside = outside[..., None] | (along < 0) | (along >= length)
    return numpy.where(outside, -1, flat)


def max_pool_backward(grad: Array, indices: Array, input_shape: Sizes) -> Array:
    """Zeros of `input_shape` to which `grad` is added at the flat spatial `indices`."""
    places = math.prod(input_shape[2:])
    wide = widen(grad)
    result = numpy.zeros(math.prod(input_shape[:2]) * places, wide.dtype)
    rows = indices.reshape(math.prod(input_shape[:2]), -1)
    flat = (rows + numpy.arange(len(rows))[:, None] * places).reshape(-1)
    numpy.add.at(result, flat, wide.reshape(-1))
    return result.reshape(input_shape).astype(grad.dtype, copy=False)


def at_indices(x: Array, indices: Array) -> Array:
    """The elements of `x` at flat spatial `indices`."""
    rows = x.reshape(*x.shape[:2], -1)
    return numpy.take_along_axis(rows, indices.reshape(*x.shape[:2], -1), -1).reshape(indices.shape)


# --- the mean -------------------------------------------------------------------------------------------------


def _divisors(
    lengths: Sizes, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, include_pad: bool, override: int | None
) -> Any:
    """By what each window's sum is divided: the elements in it, the padding counted or not."""
    if override is not None:
        return override
    count: Any = 1
    for dim, length in enumerate(lengths):
        start = numpy.arange(sizes[dim]) * stride[dim] - padding[dim]
        end = numpy.minimum(start + kernel[dim], length + padding[dim])
        if not include_pad:
            start, end = numpy.maximum(start, 0), numpy.minimum(end, length)
        count = numpy.asarray(count)[..., None] * (end - start)
    return count


def avg_pool(
    x: Array,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The mean of each window."""
    ones = (1,) * len(kernel_size)
    sizes = _check(x, kernel_size, stride, padding, ones, ceil_mode)
    padded = _padded(widen(x), sizes, kernel_size, stride, padding, ones, 0)
    total: Any = None
    for _, window in _windows(sizes, kernel_size, stride, ones):
        if total is None:
            total = padded[window].copy()
        else:
            total += padded[window]
    count = _divisors(x.shape[2:], sizes, kernel_size, stride, padding, count_include_pad, divisor_override)
    if x.dtype.kind in "iu":
        return numpy.asarray(total // count, dtype=x.dtype)
    total /= numpy.asarray(count, dtype=total.real.dtype)
    return numpy.asarray(total, dtype=x.dtype)


def avg_pool_backward(
    grad: Array,
    input_shape: Sizes,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """Zeros of `input_shape` to which each window's share is added."""
    ones = (1,) * len(kernel_size)
    sizes, lengths = grad.shape[2:], tuple(input_shape[2:])
    count = _divisors(lengths, sizes, kernel_size, stride, padding, count_include_pad, divisor_override)
    wide = widen(grad)
    share = wide / numpy.asarray(count, dtype=wide.real.dtype)
    reach = [
        max((n - 1) * step + width, length + 2 * pad)
        for n, step, width, length, pad in zip(sizes, stride, kernel_size, lengths, padding, strict=True)
    ]
    padded = numpy.zeros((*input_shape[:2], *reach), share.dtype)
    for _, window in _windows(sizes, kernel_size, stride, ones):
        padded[window] += share
    inside = (Ellipsis, *(slice(pad, pad + length) for pad, length in zip(padding, lengths, strict=True)))
    return padded[inside].astype(grad.dtype, copy=False)


# --- windows that adapt ---------------------------------------------------------------------------------------


def _bounds(length: int, size: int) -> list[tuple[int, int]]:
    """Where each of `size` windows that divide `length` begins and ends."""
    return [(index * length // size, -(-(index + 1) * length // size)) for index in range(size)]


def _averaging(length: int, size: int, dtype: Any) -> Array:
    """The matrix whose product with a column of `length` elements are the means of `size` windows."""
    matrix = numpy.zeros((size, length), dtype)
    for row, (start, end) in enumerate(_bounds(length, size)):
        matrix[row, start:end] = 1 / (end - start)
    return matrix


def _along_each(x: Array, matrices: list[Array]) -> Array:
    for dim, matrix in enumerate(matrices, start=2):
        x = numpy.moveaxis(numpy.tensordot(x, matrix, axes=(dim, 1)), -1, dim)
    return numpy.ascontiguousarray(x)


def _check_adaptive(x: Array, output_size: Sizes) -> None:
    for dim, size in enumerate(x.shape[1:], start=1):
        if size == 0:
            raise RuntimeError(
                f"adaptive pooling: Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(x.shape)} with dimension {dim} being empty"
            )
    if any(size < 0 for size in output_size):
        raise RuntimeError("elements of output_size must be greater than or equal to 0")


def adaptive_avg_pool(x: Array, output_size: Sizes) -> Array:
    """The means of windows that divide the input into `output_size`."""
    _check_adaptive(x, output_size)
    wide = widen(x)
    matrices = [
        _averaging(length, size, wide.real.dtype) for length, size in zip(x.shape[2:], output_size, strict=True)
    ]
    return _along_each(wide, matrices).astype(x.dtype, copy=False)


def adaptive_avg_pool_backward(grad: Array, input_shape: Sizes) -> Array:
    """The gradient of the input of `adaptive_avg_pool`."""
    wide = widen(grad)
    matrices = [
        _averaging(length, size, wide.real.dtype).T
        for length, size in zip(input_shape[2:], grad.shape[2:], strict=True)
    ]
    return _along_each(wide, matrices).astype(grad.dtype, copy=False)


def adaptive_max_pool(x: Array, output_size: Sizes) -> tuple[Array, Array]:
    """The largest elements of windows that divide the input into `output_size`, and their flat spatial indices."""
    _check_adaptive(x, output_size)
    lengths = x.shape[2:]
    values = numpy.empty((*x.shape[:2], *output_size), x.dtype)
    indices = numpy.empty(values.shape, numpy.int64)
    flat_index = numpy.arange(math.prod(lengths)).reshape(lengths)
    bounds = [list(enumerate(_bounds(length, size))) for length, size in zip(lengths, output_size, strict=True)]
    for cell in itertools.product(*bounds):
        place = tuple(index for index, _ in cell)
        window = tuple(slice(start, end) for _, (start, end) in cell)
        elements = x[(..., *window)].reshape(*x.shape[:2], -1)
        best = _argmax(elements)
        values[(..., *place)] = numpy.take_along_axis(elements, best[..., None], -1)[..., 0]
        indices[(..., *place)] = flat_index[window].reshape(-1)[best]
    return values, indices


def _argmax(elements: Array) -> Array:
    """The first largest element along the last axis; the last NaN wins over all."""
    best = numpy.asarray(elements.argmax(-1))
    if elements.dtype.kind in "iu":
        return best
    missing = elements != elements
    last = elements.shape[-1] - 1 - missing[..., ::-1].argmax(-1)
    return numpy.where(missing.any(-1), last, best)
