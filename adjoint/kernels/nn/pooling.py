"""Pooling over any number of spatial dimensions: the maximum or the mean of windows with given or adapted sizes.

Arrays are (batch, channels, spatial...), or without batch. Windows are boxes, so means are computed one dimension at a
time. Indices refer to the flattened spatial dimensions. Unpooling is the partial inverse of maximum pooling: it writes
values among zeros, at the positions where they were the largest. In fractional max pooling, the positions of windows
are random, in two or three dimensions (Graham, 2014).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.plans import Memory, Plan, compiled, zeros
from ...codegen.recording import recordable
from ..index.places import out_of_bounds
from ..index.scatter import combine, gather
from ..memory.copying import rounded, widen
from ..reduce import reduction
from ..runtime.costs import STEPS, THREADED
from ..runtime.floating import (
    HALVES,
    INT64,
    Array,
    check_floating,
    compute_dtype,
    is_floating,
    is_inexact,
    refuse,
    type_name,
)
from ..runtime.layout import has_channels_last, row_major
from ..runtime.parallel import parallel_rows
from .windows import Along, Bounds, check_gradient, divided, divided_elements, window_sizes, windows_of

Sizes = tuple[int, ...]
Pair = tuple[ndarray, ndarray]


# --- the maximum ----------------------------------------------------------------------------------------------


@compiled("nn.pooling.max_pool")
def max_pool(
    input: ndarray, dims: int, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil_mode: bool = False, indexed: bool = True,
) -> Plan:  # fmt: skip
    """Return the largest element of each window and its index. The result is the first largest element, or the last NaN.

    There is one size for each of the `dims` spatial dimensions, or one for all. An empty stride means the kernel size.
    Unless `indexed`, the indices may be None.
    """
    windows = windows_of(f"max_pool{dims}d", input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    if input.dtype.kind in "cb":
        raise refuse(f"max_pool{dims}d", input)

    values, indices = (_like(input, dims, windows.sizes, dtype) for dtype in (input.dtype, INT64))

    def run(input: ndarray, *_: Any) -> tuple[ndarray, Any]:
        found = _largest(input, windows.sizes, windows.elements, indexed)
        if windows.empty is not None:
            found[0][..., windows.empty] = -numpy.inf if is_floating(input.dtype) else numpy.iinfo(input.dtype).min
        return _in_order_of(values, found[0]), _in_order_of(indices, found[1])

    results = values, indices if indexed else None
    return Plan(results, run=run, compiled=(input, windows, results))


def _like(input: ndarray, dims: int, sizes: Sizes, dtype: numpy.dtype[Any]) -> Memory:
    """Return an array for a result. Its channels are last in memory if the channels of `input` are."""
    shape, batch = input.shape[: input.ndim - dims] + sizes, input.ndim - dims - 1
    if batch:
        last = has_channels_last(input)
    else:
        last = dims == 3 and not input.flags.c_contiguous and numpy.moveaxis(input, 0, -1).flags.c_contiguous
    return Memory(shape, dtype, (*range(batch), *range(batch + 1, input.ndim), batch) if last else None)


def _in_order_of(memory: Memory, result: Any) -> Any:
    """Return `result`, which is row-major or None, in the order of `memory`."""
    if memory.order is None or result is None:
        return result
    lain = memory.empty()
    lain[...] = result
    return lain


@recordable
@compiled("nn.adaptive_pooling.adaptive_max_pool")
def adaptive_max_pool(input: ndarray, output_size: Sizes) -> Plan:
    """Return the largest element, and its index, of windows that divide the input into `output_size`."""
    dims = len(output_size)
    spatial = input.shape[-dims:]
    if not is_floating(input.dtype):
        raise refuse("adaptive_max_pool3d_cpu" if dims == 3 else "adaptive_max_pool2d", input)
    elements = divided_elements(spatial, output_size)
    shape = (*input.shape[: input.ndim - dims], *output_size)
    results = values, indices = tuple(
        _like(input, dims, output_size, dtype) if dims == 2 else Memory(shape, dtype) for dtype in (input.dtype, INT64)
    )

    def run(input: ndarray, *_: Any) -> Pair:
        found = _largest(input, output_size, elements)
        return _in_order_of(values, found[0]), _in_order_of(indices, found[1])

    compiled = elements.size and values.order is None
    return Plan(results, run=run, compiled=(input, elements, results) if compiled else NotImplemented)


def _largest(input: ndarray, sizes: Sizes, elements: ndarray, indexed: bool = True) -> tuple[ndarray, Any]:
    """Return the largest element of each window, and its index if `indexed`. `elements` contains flat positions in each plane."""
    shape = (*input.shape[: -len(sizes)], *sizes)
    planes = input.reshape(math.prod(shape[: -len(sizes)]), math.prod(input.shape[-len(sizes) :]))
    values = numpy.empty((len(planes), elements.shape[1]), input.dtype)
    indices = numpy.empty(values.shape, INT64) if indexed else None

    def find(start: int, stop: int) -> None:
        rows = widen(planes[start:stop]).take(elements, 1)
        if indices is None:
            values[start:stop] = functools.reduce(numpy.maximum, rows.swapaxes(0, 1))
            return
        chosen, values[start:stop] = _first_largest(rows.swapaxes(1, 2))
        indices[start:stop] = elements.T.reshape(-1).take(chosen + _steps(*elements.shape[::-1]))

    parallel_rows(find, len(planes), planes.shape[1] * planes.itemsize + 32 * elements.size)
    return values.reshape(shape), None if indices is None else indices.reshape(shape)


def _first_largest(x: ndarray) -> Pair:
    """Return the index of the largest element of each row (the first maximum, or the last NaN), and the element."""
    length = x.shape[-1]
    if length and x.size >= STEPS * length**2:  # the elements of many short rows, one after another
        values, places = x[..., 0].copy(), numpy.zeros(x.shape[:-1], INT64)
        for place in range(1, length):
            element = x[..., place]
            larger = (element > values) | (element != element)
            numpy.copyto(values, element, where=larger)
            numpy.copyto(places, place, where=larger)
        return places, values
    places = x.argmax(-1)
    starts = _steps(places.size, length).reshape(places.shape)
    values = x.take(places + starts)
    if values.size and values.item(values.argmax()) != values.item(values.argmax()):
        last = length - 1 - (x != x)[..., ::-1].argmax(-1)
        places = numpy.where(values != values, last, places)
    return places, values


@functools.lru_cache(256)
def _steps(count: int, step: int) -> ndarray:
    """Return the positions at which rows of `step` elements begin."""
    return numpy.arange(0, count * step, step)


def max_pool_backward(grad: ndarray, indices: ndarray, input_shape: Sizes, dims: int) -> ndarray:
    """Return zeros of `input_shape`, to which `grad` is added at `indices` into the flattened `dims` spatial dimensions."""
    if grad.shape != indices.shape:
        raise RuntimeError(f"Expected a tensor of shape {list(indices.shape)} but got: {list(grad.shape)}")
    result = zeros(input_shape, grad.dtype)
    planes, places = _in_planes(result, indices, dims)
    combine(planes, planes.shape, 1, places, grad.reshape(places.shape), numpy.add)
    return result


def _in_planes(x: ndarray, indices: ndarray, dims: int) -> Pair:
    """Return an array and indices into its flattened `dims` spatial dimensions as (planes, places)."""
    planes, size = math.prod(x.shape[:-dims]), math.prod(x.shape[-dims:])
    wrong = out_of_bounds(indices, size)
    if wrong is not None:
        raise RuntimeError(f"max_pool: index {wrong} is out of bounds for {size} elements")
    return x.reshape(planes, size), indices.reshape(planes, math.prod(indices.shape[-dims:]))


def max_pooling(dims: int) -> Callable[..., Pair]:
    """Return the kernel of the operator that finds the maxima of windows of `dims` dimensions."""

    @recordable
    def kernel(
        self: ndarray, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> Pair:
        return max_pool(self, dims, kernel_size, stride, padding, dilation, ceil_mode)

    return kernel


def max_scattering(name: str, dims: int) -> Callable[..., ndarray]:
    """Return the kernel `name`, the gradient of an operator that finds maxima and indices. Only the shape of `self` is used."""

    @recordable
    def kernel(grad: ndarray, self: ndarray, indices: ndarray) -> ndarray:
        if name.startswith("adaptive"):
            check_gradient(name, grad.shape)
        check_floating(name.replace("_with_indices", ""), grad)
        return max_pool_backward(grad, indices, self.shape, dims)

    return kernel


def at_indices(self: ndarray, indices: ndarray, dims: int) -> ndarray:
    """Return the elements at indices into the flattened `dims` spatial dimensions, the transpose of `max_pool_backward`."""
    planes, places = _in_planes(self, indices, dims)
    return gather(planes, 1, places).reshape(indices.shape)


# --- the mean -------------------------------------------------------------------------------------------------


@compiled("nn.pooling.avg_pool")
def avg_pool(
    input: ndarray, dims: int, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Plan:  # fmt: skip
    """Return the sum of each window divided by its number of elements, or by `divisor_override`.

    Elements of the padding, which are zeros, count unless `count_include_pad` is false.
    """
    windows = windows_of(f"avg_pool{dims}d", input.shape, kernel_size, stride, padding, (1,), ceil_mode)
    if input.dtype.char not in "fdlq" and (dims == 3 or not is_floating(input.dtype)):
        raise refuse("avg_pool3d_out_frame" if dims == 3 else f"avg_pool{dims}d", input)
    shape = (*input.shape[: input.ndim - dims], *windows.sizes)
    memory = _like(input, 2, windows.sizes, input.dtype) if dims == 2 else Memory(shape, input.dtype)
    divide = numpy.true_divide if is_inexact(input.dtype) else _truncated_division
    sums = _summing([along.bounds() for along in windows.dims], windows.lengths)
    divisors = divisor(windows.dims, count_include_pad, divisor_override).astype(compute_dtype(input.dtype))

    def run(input: ndarray, *_: Any) -> ndarray:
        return _in_order_of(memory, row_major(rounded(divide(sums(widen(input)), divisors), input.dtype)))

    return Plan([memory], run=run, compiled=(input, windows, divisors, memory))


def _summing(bounds: Sequence[Bounds], lengths: Sizes, transposed: bool = False) -> Callable[[ndarray], ndarray]:
    """Return the function that sums windows of the last dimensions or, if `transposed`, the windows that contain an element."""
    tables = []
    for (starts, stops), length in zip(bounds, lengths, strict=True):
        if transposed:
            places = numpy.arange(length)
            starts, stops, length = (
                stops.searchsorted(places, "right"),
                starts.searchsorted(places, "right"),
                len(starts),
            )
        places = numpy.arange(length)[:, None]
        inside = (starts <= places) & (places < stops) if length * len(starts) <= THREADED else None
        tables.append((starts, stops, inside))

    def sums(x: ndarray) -> ndarray:
        for axis, (starts, stops, inside) in enumerate(tables, x.ndim - len(tables)):
            x = x.swapaxes(axis, -1)
            found = None if inside is None else x @ inside.astype(x.dtype)
            if found is None or not numpy.isfinite(found).all():  # infinities affect only their own windows
                ends = numpy.stack([starts, stops], 1).reshape(-1)
                padded = numpy.concatenate([x, numpy.zeros_like(x[..., :1])], -1)
                found = numpy.where(starts < stops, numpy.add.reduceat(padded, ends, -1)[..., ::2], x.dtype.type(0))
            x = found.swapaxes(axis, -1)
        return x

    return sums


def _truncated_division(total: ndarray, divisor: ndarray) -> ndarray:
    return numpy.asarray(numpy.sign(total) * numpy.sign(divisor) * (numpy.abs(total) // numpy.abs(divisor)))


@functools.lru_cache(256)
def divisor(windows: tuple[Along, ...], count_include_pad: bool, divisor_override: int | None) -> ndarray:
    """Return the divisor of the sum of each window, or an array without dimensions if all divisors are equal."""
    if divisor_override is not None:
        return asarray(divisor_override)
    total = numpy.ones(())
    for w in windows:
        starts = numpy.arange(w.count) * w.stride - w.padding
        stops = numpy.minimum(starts + w.kernel, w.length + w.padding)
        if not count_include_pad:
            starts, stops = numpy.maximum(starts, 0), numpy.minimum(stops, w.length)
        total = numpy.multiply.outer(total, stops - starts)
    return total.reshape(-1)[:1].reshape(()) if total.size and (total == total.reshape(-1)[0]).all() else total


@compiled("nn.adaptive_pooling.means")
def avg_pool_backward(
    grad: ndarray, input_shape: Sizes, dims: int, kernel_size: Sizes, stride: Sizes, padding: Sizes,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Plan:  # fmt: skip
    """Return the gradient of the input of `avg_pool`: each mean shares its gradient among the elements of its window."""
    windows = windows_of(f"avg_pool{dims}d", input_shape, kernel_size, stride, padding, (1,), ceil_mode)
    bounds = [along.bounds() for along in windows.dims]
    sums = _summing(bounds, windows.lengths, transposed=True)
    divisors = divisor(windows.dims, count_include_pad, divisor_override).astype(compute_dtype(grad.dtype))

    def run(grad: ndarray, *_: Any) -> ndarray:
        return row_major(rounded(sums(widen(grad) / divisors), grad.dtype))

    memory = Memory(tuple(input_shape), grad.dtype)
    return Plan([memory], run=run, compiled=(grad, bounds, divisors, memory, True))


def avg_pooling(dims: int) -> tuple[Callable[..., ndarray], Callable[..., ndarray]]:
    """Return the kernels of the operator that averages windows of `dims` dimensions, and of its gradient."""

    @recordable
    def forward(self: ndarray, *windows: Any) -> ndarray:
        return avg_pool(self, dims, *windows)

    @recordable
    def backward(grad: ndarray, self: ndarray, *windows: Any) -> ndarray:
        if grad.dtype != INT64:
            check_floating("avg_pool3d_backward_out_frame" if dims == 3 else f"avg_pool{dims}d_backward", grad)
        return avg_pool_backward(grad, self.shape, dims, *windows)

    return forward, backward


def adaptive_averaging(dims: int) -> Callable[..., ndarray]:
    """Return the kernel of the gradient of `adaptive_avg_pool` of `dims` dimensions."""

    @recordable
    def kernel(grad: ndarray, self: ndarray) -> ndarray:
        check_gradient(f"adaptive_avg_pool{dims}d_backward", grad.shape)
        check_floating("adaptive_avg_pool3d_backward_cpu" if dims == 3 else f"adaptive_avg_pool{dims}d_backward", grad)
        return adaptive_avg_pool_backward(grad, self.shape, dims)

    return kernel


@recordable
@compiled("nn.adaptive_pooling.means")
def adaptive_avg_pool(input: ndarray, output_size: Sizes) -> Plan:
    """Return the mean of each window that divides the input into `output_size`, as in `adaptive_max_pool`."""
    dims = len(output_size)
    if not is_floating(input.dtype):
        raise refuse("adaptive_avg_pool3d_cpu" if dims == 3 else "adaptive_avg_pool2d", input)
    lengths, leading = input.shape[-dims:], input.shape[: input.ndim - dims]
    bounds, sizes = list(map(divided, lengths, output_size)), window_sizes(lengths, output_size)
    every = tuple(range(len(leading), input.ndim))
    memory = Memory((*leading, *output_size), input.dtype)
    if max(output_size) <= 1 <= min(output_size):
        mean = lambda input, _: rounded(reduction.mean(widen(input), every, True), input.dtype)
        return Plan([memory], run=mean, compiled=NotImplemented)
    sums = _summing(bounds, lengths)
    means = lambda input, _: row_major(rounded(sums(widen(input)) / sizes, input.dtype))
    return Plan([memory], run=means, compiled=(input, bounds, sizes, memory))


@compiled("nn.adaptive_pooling.means")
def adaptive_avg_pool_backward(grad: ndarray, input_shape: Sizes, dims: int) -> Plan:
    """Return the gradient of the input of `adaptive_avg_pool`."""
    lengths, counts = input_shape[-dims:], grad.shape[-dims:]
    bounds, sizes = list(map(divided, lengths, counts)), window_sizes(tuple(lengths), counts)
    single = math.prod(counts) == 1
    sums = (lambda x: numpy.broadcast_to(x, input_shape)) if single else _summing(bounds, lengths, transposed=True)
    shares = lambda grad, *_: numpy.array(sums(widen(grad) / sizes), grad.dtype, order="C")
    memory = Memory(tuple(input_shape), grad.dtype)
    return Plan([memory], run=shares, compiled=NotImplemented if single else (grad, bounds, sizes, memory, True))


def max_unpool(self: Array, indices: Array, output_size: tuple[int, ...]) -> Array:
    """Write `(N, C, *)` or `(C, *)` to flat indices of images. If several values have the same index, the last value remains."""
    dims = len(output_size)
    function = f"max_unpool{dims}d"
    if indices.dtype != numpy.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {type_name(indices.dtype)}")
    if self.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {self.ndim} "
            "dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    for dim in range(self.ndim - dims - (self.ndim == dims + 1), self.ndim):
        if dim > 0 and self.shape[dim] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got {list(self.shape)} with dimension {dim} being empty."
            )
    if self.dtype.kind != "f" and self.dtype not in HALVES:
        raise refuse(f"{function}", self)
    planes, area = math.prod(self.shape[:-dims]), math.prod(output_size)
    outside = (indices < 0) | (indices >= area)
    if outside.any():
        raise RuntimeError(
            f"Found an invalid max index: {indices[outside].flat[0]} (output volumes are of size "
            f"{'x'.join(map(str, output_size))})"
        )
    result = numpy.zeros((planes, area), self.dtype)
    count = math.prod(self.shape[-dims:])
    numpy.put_along_axis(result, indices.reshape(planes, count), self.reshape(planes, count), 1)
    return result.reshape(*self.shape[:-dims], *output_size)


_NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def fractional_max_pool(
    input: ndarray, kernel_size: tuple[int, ...], output_size: tuple[int, ...], random_samples: ndarray
) -> tuple[ndarray, ndarray]:
    """Return the largest element of each window, and its index in the flattened spatial dimensions.

    The result is the first largest element, or the last NaN.

    Args:
        input: (batch, channels, spatial...), or without the batch.
        random_samples: (batch, channels, dims), in [0, 1). They place the windows of each image. If there are two dimensions,
            the first number belongs to the last dimension.
    """
    dims = len(kernel_size)
    spatial, leading = input.shape[-dims:], input.shape[:-dims]
    function = "fractional_max_pool2d()" if dims == 2 else "fractional_max_pool3d_out()"
    for name, kernel, size, length in zip(_NAMES[dims], kernel_size, output_size, spatial, strict=True):
        if size + kernel - 1 > length:
            raise RuntimeError(f"{function}: pool {name} {kernel} too large relative to input {name} {length}")
    if not is_floating(input.dtype):
        raise refuse(f"fractional_max_pool{dims}d_out_frame", input)
    samples = random_samples[..., ::-1] if dims == 2 else random_samples
    planes, area = math.prod(leading), math.prod(spatial)
    samples = samples.reshape(planes, dims)
    corners = numpy.arange(planes).reshape(planes, *[1] * dims)
    for dim in range(dims):
        starts = _starts(samples[:, dim], spatial[dim], output_size[dim], kernel_size[dim])
        shape = [planes, *[1] * dims]
        shape[dim + 1] = output_size[dim]
        corners = corners * spatial[dim] + starts.reshape(shape)
    offsets = numpy.asarray(numpy.ravel_multi_index(tuple(numpy.indices(kernel_size).reshape(dims, -1)), spatial))
    pooled, indices = _largest_at(widen(input).ravel(), corners, offsets)  # contiguous
    indices -= (numpy.arange(planes) * area).reshape(planes, *[1] * dims)
    shape = [*leading, *output_size]
    return rounded(pooled.reshape(shape), input.dtype), indices.reshape(shape)


@compiled("nn.adaptive_pooling.largest_at")
def _largest_at(values: ndarray, corners: ndarray, offsets: ndarray) -> Plan:
    """Return the largest value at the offsets from each corner (the first maximum, or the last NaN), and its position."""

    def run(values: ndarray, corners: ndarray, offsets: ndarray) -> Pair:
        places, found = _first_largest(values.take(corners[..., None] + offsets))
        return found, corners + offsets.take(places)

    return Plan([Memory(corners.shape, values.dtype), Memory(corners.shape, INT64)], run=run)


def _starts(sample: ndarray, length: int, size: int, kernel: int) -> ndarray:
    """Return the starts of the windows along one dimension. The last window ends with the input.

    Every step is rounded to the dtype of `sample`, so that the windows are the same as in PyTorch.
    """
    last = length - kernel
    if size <= 1:
        return numpy.full((*sample.shape, size), last)
    number = sample.dtype.type
    step = number(last) / number(size - 1)
    shift = sample[..., None]
    steps = ((numpy.arange(size).astype(sample.dtype) + shift) * step).astype(numpy.int64)
    starts = steps - (shift * step).astype(numpy.int64)
    starts[..., -1] = last
    return starts
