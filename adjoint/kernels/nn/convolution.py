"""Convolutions over any number of spatial dimensions, by gathering patches and one matrix product per batch tile.

Arrays are (batch, channels, spatial...), weights (out channels, channels / groups, kernel...). Patches are gathered in
the layout whose contiguous runs are longer: channels first, with runs along the last spatial dimension; or channels
last, with runs over channels and the last kernel dimension. Batches are worked through in tiles, whose patches go to
memory that is used again.

Shapes and types are taken to fit.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.plans import Memory, Plan, planned
from ..memory.storage import restrided
from ..runtime.floating import widen
from ..runtime.parallel import SCRATCH_BYTES, parallel_rows, scratch
from .depthwise import depthwise_forward, depthwise_input_grad, depthwise_weight_grad

Sizes = tuple[int, ...]


@planned("nn.convolution.conv_forward")
def conv_forward(
    input: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Plan:
    """The convolution of `input` with `weight`, plus `bias` (one number per out channel)."""
    sizes = _output_sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation)
    memory = Memory((len(input), len(weight), *sizes), input.dtype)

    def run(input: ndarray, weight: ndarray, bias: ndarray | None, *_: Any) -> ndarray:
        wide = widen(input)
        result = numpy.empty(memory.shape, wide.dtype)
        if result.size:
            added = None if bias is None else widen(bias)
            _forward(wide, widen(weight), added, result, stride, padding, dilation, groups)
        return result.astype(input.dtype, copy=False)

    return Plan([memory], run=run)


def _output_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )


def _forward(
    x: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    result: ndarray,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> None:
    batch, channels = x.shape[:2]
    out_channels, sizes = result.shape[1], result.shape[2:]
    kernel = weight.shape[2:]
    column = None if bias is None else bias.reshape(-1, 1)
    flat = result.reshape(batch, out_channels, -1)
    if groups == channels > 1 and groups == out_channels:
        depthwise_forward(x, weight, bias, result, stride, padding, dilation)
        return
    pointwise = math.prod(kernel) == 1 and not any(padding)
    if pointwise:
        x = x[(..., *(slice(None, None, s) for s in stride))]  # type: ignore[arg-type]
    last = not pointwise and _channels_last(channels, kernel, sizes, stride, dilation, groups)
    matrix = _weight_matrix(weight, groups, last)
    tile = _tile_batch(batch, groups * matrix.shape[-1] * flat.shape[2] * x.itemsize)
    for start in range(0, batch, tile):
        part = x[start : start + tile]
        out = flat[start : start + tile]
        if last:
            patches = _patches_last(part, kernel, sizes, stride, padding, dilation)
            _multiply_last(patches.reshape(len(part) * flat.shape[2], -1), matrix, bias, out)
            continue
        if pointwise:
            patches = part.reshape(len(part), channels, -1)
        else:
            patches = _patches_first(part, kernel, sizes, stride, padding, dilation)
            patches = patches.reshape(len(part), -1, flat.shape[2])
        if groups > 1:
            patches = patches.reshape(len(part), groups, -1, flat.shape[2])
            numpy.matmul(matrix, patches, out=out.reshape(len(part), groups, -1, flat.shape[2]))
        else:
            numpy.matmul(matrix, patches, out=out)
        if column is not None:
            out += column


def _multiply_last(patches: ndarray, matrix: ndarray, bias: ndarray | None, out: ndarray) -> None:
    """One product for all places of all samples; its channels come last, so adding the bias turns it around."""
    product = scratch("product", (len(patches), len(matrix)), out.dtype)
    numpy.matmul(patches, matrix.T, out=product)
    batch, out_channels, places = out.shape
    turned = product.reshape(batch, places, out_channels).transpose(0, 2, 1)
    if bias is None:
        parallel_rows(lambda i, j: numpy.copyto(out[i:j], turned[i:j]), batch, out.strides[0])
    else:
        column = bias.reshape(-1, 1)
        parallel_rows(lambda i, j: numpy.add(turned[i:j], column, out=out[i:j]), batch, out.strides[0])


def _channels_last(channels: int, kernel: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes, groups: int) -> bool:
    """Whether runs of channels are longer than runs along the last spatial dimension."""
    run_first = sizes[-1] if stride[-1] == 1 else 1
    run_last = channels * (kernel[-1] if dilation[-1] == 1 else 1)
    return groups == 1 and channels > 1 and run_last > run_first


def _weight_matrix(weight: ndarray, groups: int, last: bool) -> ndarray:
    """(out, channels x kernel), or (out, kernel x channels); with groups (groups, out, channels x kernel)."""
    if last:
        weight = numpy.moveaxis(weight, 1, -1)
    matrix = weight.reshape(len(weight), -1)
    return matrix.reshape(groups, -1, matrix.shape[1]) if groups > 1 else matrix


def _tile_batch(batch: int, bytes_each: int) -> int:
    return max(1, min(batch, SCRATCH_BYTES // max(bytes_each, 1)))


def _padded(x: ndarray, padding: Sizes, last: bool) -> ndarray:
    """`x` with zeros around it, channels last if asked for."""
    if last:
        x = numpy.moveaxis(x, 1, -1)
    spatial = slice(1, -1) if last else slice(2, None)
    if not any(padding):
        return numpy.ascontiguousarray(x) if last else x
    shape = list(x.shape)
    shape[spatial] = [size + 2 * p for size, p in zip(x.shape[spatial], padding, strict=True)]
    padded = scratch("padded", tuple(shape), x.dtype)
    padded.fill(0)
    inside = tuple(slice(p, p + size) for size, p in zip(x.shape[spatial], padding, strict=True))
    padded[(slice(None), *inside) if last else (..., *inside)] = x  # type: ignore[index]
    return padded


def _patches_first(x: ndarray, kernel: Sizes, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> ndarray:
    """Patches as (batch, channels, kernel..., spatial...)."""
    padded = _padded(x, padding, last=False)
    shape = (*padded.shape[:2], *kernel, *sizes)
    steps = padded.strides[2:]
    strides = (
        *padded.strides[:2],
        *(step * d for step, d in zip(steps, dilation, strict=True)),
        *(step * s for step, s in zip(steps, stride, strict=True)),
    )
    return _copy(restrided(padded, shape, strides))


def _patches_last(x: ndarray, kernel: Sizes, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> ndarray:
    """Patches as (batch, spatial..., kernel..., channels)."""
    padded = _padded(x, padding, last=True)
    steps = padded.strides[1:-1]
    shape = (len(x), *sizes, *kernel, padded.shape[-1])
    strides = (
        padded.strides[0],
        *(step * s for step, s in zip(steps, stride, strict=True)),
        *(step * d for step, d in zip(steps, dilation, strict=True)),
        padded.strides[-1],
    )
    return _copy(restrided(padded, shape, strides))


def _copy(view: ndarray) -> ndarray:
    patches = scratch("patches", view.shape, view.dtype)
    parallel_rows(
        lambda start, stop: numpy.copyto(patches[start:stop], view[start:stop]), len(view), patches.strides[0]
    )
    return patches


def _window(offset: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes) -> tuple[slice, ...]:
    """Where, in the padded input, one kernel element meets each output place."""
    return tuple(
        slice(o * d, o * d + (size - 1) * s + 1, s)
        for o, size, s, d in zip(offset, sizes, stride, dilation, strict=True)
    )


# ---------------------------------------------------------------------------------------------------------------------
# The transposes


@planned("nn.convolution.conv_input_grad")
def conv_input_grad(
    grad: ndarray,
    weight: ndarray,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Plan:
    """The gradient of the input of a convolution, of shape `input_shape`, given that of its result."""
    return Plan([Memory(tuple(input_shape), grad.dtype)], run=_input_grad)


def _input_grad(
    grad: ndarray,
    weight: ndarray,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> ndarray:
    wide, kernel = widen(grad), widen(weight)
    if 0 in grad.shape or 0 in weight.shape:
        return numpy.zeros(input_shape, grad.dtype)
    if groups == input_shape[1] > 1 and groups == len(weight) and any(s != 1 for s in stride):
        result = numpy.empty(input_shape, wide.dtype)
        depthwise_input_grad(wide, kernel, result, stride, padding, dilation)
        return result.astype(grad.dtype, copy=False)
    around = tuple(d * (k - 1) - p for k, p, d in zip(weight.shape[2:], padding, dilation, strict=True))
    if all(s == 1 for s in stride) and all(p >= 0 for p in around) and len(weight) <= 4 * input_shape[1]:
        # The transpose of a convolution without stride is one, with the kernel turned around.
        turned = _transposed_weight(kernel, groups)
        result = numpy.empty(input_shape, wide.dtype)
        _forward(wide, turned, None, result, stride, around, dilation, groups)
    else:
        result = _scatter_patches(wide, kernel, input_shape, stride, padding, dilation, groups)
    return result.astype(grad.dtype, copy=False)


def _transposed_weight(weight: ndarray, groups: int) -> ndarray:
    """The weight with its kernel reversed and its channels exchanged, in each group."""
    turned = weight[(..., *(slice(None, None, -1),) * (weight.ndim - 2))]  # type: ignore[arg-type]
    grouped = turned.reshape(groups, -1, *turned.shape[1:]).swapaxes(1, 2)
    return grouped.reshape(-1, *grouped.shape[2:])


def _scatter_patches(
    grad: ndarray,
    weight: ndarray,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> ndarray:
    """The gradient of all patches by a matrix product, added up where patches overlap."""
    batch, channels = input_shape[:2]
    kernel, sizes = weight.shape[2:], grad.shape[2:]
    last = groups == 1 and channels >= 8
    matrix = _weight_matrix(weight, groups, last)
    padded_sizes = tuple(size + 2 * p for size, p in zip(input_shape[2:], padding, strict=True))
    inside = tuple(slice(p, p + size) for size, p in zip(input_shape[2:], padding, strict=True))
    result = numpy.empty(input_shape, grad.dtype)
    places = math.prod(sizes)
    flat = grad.reshape(batch, groups, -1, places) if groups > 1 else grad.reshape(batch, -1, places)
    tile = _tile_batch(batch, channels * math.prod(kernel) * places * grad.itemsize)
    for start in range(0, batch, tile):
        part = flat[start : start + tile]
        count = len(part)
        if last:
            patches = scratch("patches", (count, places, matrix.shape[1]), grad.dtype)
            numpy.matmul(part.transpose(0, 2, 1), matrix, out=patches)
            patches = patches.reshape(count, *sizes, *kernel, channels)
            total = scratch("padded", (count, *padded_sizes, channels), grad.dtype)
        else:
            patches = numpy.matmul(matrix.swapaxes(-1, -2), part).reshape(count, channels, *kernel, *sizes)
            total = scratch("padded", (count, channels, *padded_sizes), grad.dtype)
        total.fill(0)
        for offset in itertools.product(*map(range, kernel)):
            window = _window(offset, sizes, stride, dilation)
            if last:
                total[(slice(None), *window)] += patches[(slice(None),) * (1 + len(sizes)) + offset]
            else:
                total[(..., *window)] += patches[(slice(None), slice(None), *offset)]  # type: ignore[arg-type]
        if last:
            result[start : start + tile] = numpy.moveaxis(total[(slice(None), *inside)], -1, 1)
        else:
            result[start : start + tile] = total[(..., *inside)]  # type: ignore[arg-type]
    return result


@planned("nn.convolution.conv_weight_grad")
def conv_weight_grad(
    grad: ndarray,
    input: ndarray,
    weight_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Plan:
    """The gradient of the weight of a convolution, of shape `weight_shape`, given that of its result."""
    return Plan([Memory(tuple(weight_shape), grad.dtype)], run=_weight_grad)


def _weight_grad(
    grad: ndarray,
    input: ndarray,
    weight_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> ndarray:
    wide, x = widen(grad), widen(input)
    kernel, sizes = weight_shape[2:], grad.shape[2:]
    if 0 in grad.shape or 0 in weight_shape:
        return numpy.zeros(weight_shape, grad.dtype)
    batch, channels = x.shape[:2]
    out_channels, places = grad.shape[1], math.prod(sizes)
    if groups == channels > 1 and groups == out_channels:
        return depthwise_weight_grad(wide, x, weight_shape, stride, padding, dilation).astype(grad.dtype, copy=False)
    last = _channels_last(channels, kernel, sizes, stride, dilation, groups)
    # Where samples are small, one long product per tile: (out, batch x places) times (batch x places, patch).
    merged = places < 512
    total: Any = 0
    tile = _tile_batch(batch, channels * math.prod(kernel) * places * x.itemsize)
    for start in range(0, batch, tile):
        part = wide[start : start + tile]
        count = len(part)
        left: Any = part.reshape(count, groups, -1, places)
        if merged:
            left = left.transpose(1, 2, 0, 3).reshape(groups, -1, count * places)
        if last:
            patches = _patches_last(x[start : start + tile], kernel, sizes, stride, padding, dilation)
            right = patches.reshape(*(1, count * places) if merged else (count, 1, places), -1)
        elif merged:
            padded = _padded(x[start : start + tile], padding, last=False).swapaxes(0, 1)
            patches = _channel_patches(padded, kernel, sizes, stride, dilation)
            right = patches.reshape(groups, -1, count * places).transpose(0, 2, 1)
        else:
            patches = _patches_first(x[start : start + tile], kernel, sizes, stride, padding, dilation)
            right = patches.reshape(count, groups, -1, places).transpose(0, 1, 3, 2)
        product = numpy.matmul(left, right)
        total = total + (product if merged else numpy.add.reduce(product, 0))
    if last:
        turned = total.reshape(out_channels, *kernel, channels)
        result = numpy.ascontiguousarray(numpy.moveaxis(turned, -1, 1))
    else:
        result = total.reshape(weight_shape)
    return result.astype(grad.dtype, copy=False)


def _channel_patches(padded: ndarray, kernel: Sizes, sizes: Sizes, stride: Sizes, dilation: Sizes) -> ndarray:
    """Patches of (channels, batch, spatial...) as (channels, kernel..., batch, spatial...)."""
    steps = padded.strides[2:]
    shape = (len(padded), *kernel, padded.shape[1], *sizes)
    strides = (
        padded.strides[0],
        *(step * d for step, d in zip(steps, dilation, strict=True)),
        padded.strides[1],
        *(step * s for step, s in zip(steps, stride, strict=True)),
    )
    return _copy(restrided(padded, shape, strides))


@planned("nn.convolution.transposed")
def transposed(
    input: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    output_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Plan:
    """The transposed convolution: what `conv_input_grad` computes, plus `bias`."""

    def run(input: ndarray, weight: ndarray, bias: ndarray | None, *_: Any) -> ndarray:
        result = _input_grad(widen(input), widen(weight), output_shape, stride, padding, dilation, groups)
        if bias is not None:
            result += widen(bias).reshape(-1, *(1,) * (result.ndim - 2))
        return result.astype(input.dtype, copy=False)

    return Plan([Memory(tuple(output_shape), input.dtype)], run=run)
