"""Normalization over a batch, a layer or groups of channels, and the gradients of input, weight and bias.

Statistics are computed in two passes over what is in cache, the mean and then the squared distances from it; in float32 for
half types. Results are (output, mean, inverse standard deviation); gradients are None where `needs` says that nobody asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import asarray, count_nonzero, ndarray

from ...codegen.acceleration import LARGE, accelerated
from ...codegen.row_functions import row_dot, row_sum
from ...codegen.rows import SMALL, ChannelProgram, row_program
from ...codegen.tracing import PerChannel, PerColumn, PerRow, channel, column, row, xp
from ..runtime.floating import check_floating, compute_dtype, unwarned, widen
from ..runtime.layout import has_channels_last, row_major
from ..runtime.parallel import parallel_rows

Array = numpy.ndarray[Any, Any]
Triple = tuple[ndarray, ndarray, ndarray]
Gradients = tuple[ndarray | None, ndarray | None, ndarray | None]
Needs = Sequence[bool]

_TILE_BYTES = 1 << 22  # of a tile of groups
_FIRST = 64  # samples whose mean is near that of all


def _with_large(
    results: Triple, input: ndarray, shape: Sequence[int], axes: tuple[int, ...], again: Callable[[ndarray], Triple]
) -> Triple:
    """`results`, but where the squares of finite numbers have overflowed those of the numbers divided by the largest of them.

    `shape` and `axes` say what is normalized together; `again` normalizes, for nothing to be added to variances.
    """
    result, mean, rstd = results
    if count_nonzero(rstd > 0) == rstd.size:
        return results
    with unwarned():
        size = numpy.abs(widen(input)).reshape(shape).max(axes, keepdims=True, initial=0)
        large = ~(rstd > 0).reshape(size.shape) & numpy.isfinite(size)
        if not large.any():
            return results
        size = numpy.where(large, size, size.dtype.type(1))
        whole = tuple(shape)
        found, means, inverses = again((widen(input).reshape(whole) / size).reshape(input.shape).astype(input.dtype))
        numpy.copyto(result, found, where=numpy.broadcast_to(large, whole).reshape(input.shape))
        where, size = large.reshape(rstd.shape), size.reshape(rstd.shape)
        numpy.copyto(mean, means.reshape(mean.shape) * size, where=where)
        numpy.copyto(rstd, inverses.reshape(rstd.shape) / size, where=where)
    return results


# ---------------------------------------------------------------------------------------------------------------------
# Over the last dimensions


@row_program()
def layer_norm_rows(x: Array, weight: PerColumn | None, bias: PerColumn | None, eps: float) -> Any:
    """The row less its mean, over its standard deviation, times `weight` plus `bias`; mean and inverse deviation."""
    mean = row.mean(x)
    centred = x - mean
    rstd = xp.rsqrt(row.mean(centred * centred) + eps)
    result = centred * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result, mean, rstd


@row_program()
def layer_norm_backward_rows(
    grad: Array,
    x: Array,
    mean: PerRow,
    rstd: PerRow,
    weight: PerColumn | None,
    inputs: bool,
    weights: bool,
    biases: bool,
) -> Any:
    """The gradients of the input, the weight and the bias, as far as they are asked for."""
    normalized = (x - mean) * rstd
    to_input = None
    if inputs:
        scaled = grad if weight is None else grad * weight
        along = row.mean(scaled * normalized)
        to_input = (scaled - row.mean(scaled) - normalized * along) * rstd
    to_weight = column.sum(grad * normalized) if weights else None
    return to_input, to_weight, column.sum(grad) if biases else None


def layer_norm(
    input: ndarray, normalized_shape: tuple[int, ...], weight: ndarray | None, bias: ndarray | None, eps: float
) -> Triple:
    """The last dimensions less their mean, over their standard deviation, times `weight` plus `bias`.

    Mean and inverse deviation keep the normalized dimensions, with length 1.
    """
    check_floating("LayerNormKernelImpl", input)
    kept = (*input.shape[: input.ndim - len(normalized_shape)], *(1,) * len(normalized_shape))
    rows = input.reshape(math.prod(kept), math.prod(normalized_shape))
    result, mean, rstd = _with_large(
        layer_norm_rows.run((rows, weight, bias), 1, (eps,)),
        rows,
        rows.shape,
        (1,),
        lambda scaled: layer_norm_rows.run((scaled, weight, bias), 1, (0.0,)),
    )
    return result.reshape(input.shape), mean.reshape(kept), rstd.reshape(kept)


def layer_norm_gradients(
    grad: ndarray,
    input: ndarray,
    normalized_shape: tuple[int, ...],
    weight: ndarray | None,
    mean: ndarray,
    rstd: ndarray,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `rstd` are those that `layer_norm` returned.

    J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization" (2016).
    """
    shape = mean.size, math.prod(normalized_shape)
    arrays = grad.reshape(shape), input.reshape(shape), mean, rstd, weight
    to_input, to_weight, to_bias = layer_norm_backward_rows.run(arrays, 1, [bool(need) for need in needs])
    parameter = input.dtype if weight is None else weight.dtype
    return (
        None if to_input is None else to_input.reshape(input.shape),
        None if to_weight is None else to_weight.reshape(normalized_shape).astype(parameter, copy=False),
        None if to_bias is None else to_bias.reshape(normalized_shape).astype(parameter, copy=False),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Over channels: where they are rows (planes of images), and where they are columns (samples of numbers, and images whose
# channels lie together in memory)


@row_program()
def moments_rows(x: Array) -> Any:
    """The mean, and the sum of the squared distances from it."""
    mean = row.mean(x)
    centred = x - mean
    return mean, row.sum(centred * centred)


@row_program()
def moments_columns(x: Array, pivot: PerColumn) -> Any:
    """The sum of the distances from a number near the mean, and that of their squares."""
    distance = x - pivot
    return column.sum(distance), column.sum(distance * distance)


@ChannelProgram
def affine(x: Array, scale: PerChannel, shift: PerChannel) -> Any:
    """`x * scale + shift`."""
    return x * scale + shift


@ChannelProgram
def products(grad: Array, x: Array, mean: PerChannel, scale: PerChannel | None) -> Any:
    """The sum of `grad`, that of its products with the distances from the mean, and `grad * scale`."""
    return channel.sum(grad), channel.sum(grad * (x - mean)), None if scale is None else grad * scale


@ChannelProgram
def combined(grad: Array, x: Array, factor: PerChannel, slope: PerChannel, shift: PerChannel) -> Any:
    """`grad * factor + x * slope + shift`."""
    return grad * factor + (x * slope + shift)


@row_program()
def channel_norm_rows(x: Array, weight: PerRow | None, bias: PerRow | None, eps: float) -> Any:
    """The row less its mean, over its standard deviation, times `weight` plus `bias`; mean and inverse deviation."""
    mean = row.mean(x)
    centred = x - mean
    rstd = xp.rsqrt(row.mean(centred * centred) + eps)
    result = centred * (rstd if weight is None else rstd * weight)
    return (result if bias is None else result + bias), mean, rstd


@row_program()
def channel_norm_backward_rows(grad: Array, x: Array, mean: PerRow, rstd: PerRow, weight: PerRow | None) -> Any:
    """The gradient of the input, and for each row the sum of `grad` and that of its products with the normalized row."""
    centred = x - mean
    total, along = row.sum(grad), row.sum(grad * centred) * rstd
    scale = rstd if weight is None else rstd * weight
    slope = along * rstd / row.length(x)
    return (grad - total / row.length(x) - centred * slope) * scale, total, along


class _Channels:
    """An array of shape (batch, channels, ...) as one of two dimensions, with each channel in columns or in some rows."""

    def __init__(self, x: ndarray) -> None:
        self.shape = x.shape
        self.last = has_channels_last(x)
        self.are_columns = self.last or x.ndim == 2
        self.count = x.size // max(x.shape[1], 1)

    def flat(self, x: ndarray) -> ndarray:
        """An array of the same shape, in two dimensions."""
        if self.are_columns:
            return (numpy.moveaxis(x, 1, -1) if self.last else x).reshape(-1, self.shape[1])
        return x.reshape(self.shape[0] * self.shape[1], math.prod(self.shape[2:]))

    def restored(self, flat: ndarray) -> ndarray:
        """An array of two dimensions in the shape of the first one."""
        if not self.last:
            return flat.reshape(self.shape)
        batch, channels, *places = self.shape
        return numpy.moveaxis(flat.reshape(batch, *places, channels), -1, 1)

    @property
    def are_whole_rows(self) -> bool:
        """Whether each channel is one row, or is better made one: a copy of a small array costs less than a second program."""
        return (not self.are_columns and self.shape[0] == 1) or self.count * self.shape[1] <= SMALL

    def rows(self, x: ndarray) -> ndarray:
        """An array of the same shape with each channel in one row."""
        return x.swapaxes(0, 1).reshape(self.shape[1], -1)

    def from_rows(self, rows: ndarray) -> ndarray:
        """An array with each channel in one row in the shape, and the order in memory, of the first one."""
        batch, channels, *places = self.shape
        result = rows.reshape(channels, batch, *places).swapaxes(0, 1)
        return self.restored(numpy.ascontiguousarray(numpy.moveaxis(result, 1, -1))) if self.last else row_major(result)

    def moments(self, x: ndarray) -> tuple[ndarray, ndarray]:
        """The mean and the (biased) variance of each channel."""
        if self.are_columns:
            flat = self.flat(x)
            pivot = numpy.add.reduce(widen(flat[:_FIRST]), 0) / len(flat[:_FIRST])
            sums, squares = moments_columns.run((flat, pivot), 1)
            distance = sums / self.count
            return pivot + distance, numpy.maximum(squares / self.count - distance * distance, 0)
        means, squares = (item.reshape(self.shape[:2]) for item in moments_rows.run((self.flat(x),), 1))
        if len(means) == 1:
            return means[0], squares[0] / self.count
        mean = numpy.add.reduce(means, 0) / len(means)
        between = numpy.add.reduce(numpy.square(means - mean), 0) / len(means)
        return mean, numpy.add.reduce(squares, 0) / self.count + between

    def products(
        self, grad: ndarray, x: ndarray, mean: ndarray, scale: ndarray | None
    ) -> tuple[ndarray, ndarray, ndarray | None]:
        """For each channel the sum of `grad`, and of its products with the distances of `x` from the mean; `grad * scale`."""
        total, along, scaled = self._run(products, [grad, x], [mean, scale])
        if not self.are_columns:
            total, along = (numpy.add.reduce(item.reshape(self.shape[:2]), 0) for item in (total, along))
        return total, along, None if scaled is None else self.restored(scaled)

    def run(self, program: ChannelProgram, arrays: list[ndarray], numbers: list[ndarray]) -> ndarray:
        """Run the program on arrays, and on numbers for each channel, or sample and channel."""
        return self.restored(self._run(program, arrays, numbers))

    def _run(self, program: ChannelProgram, arrays: list[ndarray], numbers: Sequence[ndarray | None]) -> Any:
        if self.are_columns:
            return program.columns.run([*map(self.flat, arrays), *numbers], 1)
        by_plane = [None if number is None else numpy.broadcast_to(number, self.shape[:2]) for number in numbers]
        return program.rows.run([*map(self.flat, arrays), *by_plane], 1)


def _inverse_deviation(variance: ndarray, eps: float) -> ndarray:
    total = variance + variance.dtype.type(eps)
    numpy.sqrt(total, out=total)
    return numpy.reciprocal(total, out=total)


def unbiased_variance(invstd: ndarray, eps: float, count: int) -> ndarray:
    """The variance that the running one is moved to: of `count` elements, with one degree of freedom taken off."""
    with unwarned():
        variance = 1.0 / numpy.square(invstd.astype(numpy.float64)) - eps
        return (numpy.maximum(variance, 0) * (count / max(count - 1, 1))).astype(invstd.dtype)


def move(running: ndarray, towards: ndarray, momentum: float) -> None:
    """Move running statistics, in place, by `momentum` towards those of a batch."""
    with unwarned():
        running[...] = momentum * towards + (1 - momentum) * running


# ---------------------------------------------------------------------------------------------------------------------
# Over the batch: channels are dimension 1


def batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
) -> Triple:
    """Each channel less its mean, over its standard deviation, times `weight` plus `bias`.

    In training mean and deviation are those of the batch, over all dimensions but channels; they are returned, for
    backward. Otherwise they are the running ones, and what is returned for them is empty.
    """
    results = _batch_norm(input, weight, bias, running_mean, running_var, training, eps)
    if not training:
        return results
    axes = (0, *range(2, input.ndim))
    return _with_large(
        results, input, input.shape, axes, lambda scaled: _batch_norm(scaled, weight, bias, None, None, True, 0.0)
    )


@accelerated("nn.batch_norm.batch_norm", elements=LARGE)
def _batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
) -> Triple:
    check_floating("batch_norm", input)
    x = input if has_channels_last(input) else row_major(input)
    channels = _Channels(x)
    if training and channels.are_whole_rows:
        result, mean, invstd = channel_norm_rows.run((channels.rows(x), weight, bias), 1, (eps,))
        return channels.from_rows(result), mean.reshape(-1), invstd.reshape(-1)
    if training:
        mean, variance = channels.moments(x)
        invstd = _inverse_deviation(variance, eps)
        saved = mean, invstd
    else:
        mean, invstd = _running(running_mean, running_var, eps)
        saved = numpy.empty(0, mean.dtype), numpy.empty(0, mean.dtype)
    scale = invstd if weight is None else invstd * widen(weight)
    shift = -mean * scale
    if bias is not None:
        shift += widen(bias)
    return channels.run(affine, [x], [scale, shift]), *saved


def _running(running_mean: ndarray | None, running_var: ndarray | None, eps: float) -> tuple[ndarray, ndarray]:
    return widen(asarray(running_mean)), _inverse_deviation(widen(asarray(running_var)), eps)


@accelerated("nn.batch_norm.batch_norm_gradients", elements=LARGE)
def batch_norm_gradients(
    grad: ndarray,
    input: ndarray,
    weight: ndarray | None,
    mean: ndarray,
    invstd: ndarray,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `invstd` are those that `batch_norm` returned.

    S. Ioffe and C. Szegedy, "Batch Normalization" (2015), section 3.
    """
    if not training:
        mean, invstd = _running(running_mean, running_var, eps)
    x = input if has_channels_last(input) else row_major(input)
    channels = _Channels(x)
    if training and needs[0] and channels.are_whole_rows:
        arrays = channels.rows(grad), channels.rows(x), mean, invstd, weight
        rows, total, along = channel_norm_backward_rows.run(arrays, 1)
        parameter = input if weight is None else weight
        return _gradients(channels.from_rows(rows), total.reshape(-1), along.reshape(-1), parameter, needs)
    scale = invstd if weight is None else invstd * widen(weight)
    total, along, to_input = channels.products(grad, x, mean, scale if needs[0] and not training else None)
    along = along * invstd
    if needs[0] and training:  # (grad - offset - (x - mean) * slope) * scale
        count = max(channels.count, 1)
        slope = along * invstd / count
        numbers = [scale, -slope * scale, (mean * slope - total / count) * scale]
        to_input = channels.run(combined, [grad, x], numbers)
    return _gradients(to_input, total, along, input if weight is None else weight, needs)


def _gradients(to_input: ndarray | None, total: ndarray, along: ndarray, parameter: ndarray, needs: Needs) -> Gradients:
    """Those of input, weight and bias that are asked for; the last two in the dtype of the parameters."""
    to_weight = along.astype(parameter.dtype, copy=False) if needs[1] else None
    return to_input, to_weight, total.astype(parameter.dtype, copy=False) if needs[2] else None


# ---------------------------------------------------------------------------------------------------------------------
# Over groups of channels


def group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Triple:
    """Each group of channels of each sample less its mean, over its deviation, times `weight` plus `bias` by channel.

    Mean and inverse deviation are (batch, groups).
    """
    results = _group_norm(input, weight, bias, groups, eps)
    shape = len(input), groups, input.shape[1] // groups * math.prod(input.shape[2:])
    return _with_large(results, input, shape, (2,), lambda scaled: _group_norm(scaled, weight, bias, groups, 0.0))


@accelerated("nn.group_norm.group_norm", elements=LARGE)
def _group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Triple:
    check_floating("GroupNormKernelImpl", input)
    batch, channels = input.shape[:2]
    each, size = channels // groups, math.prod(input.shape[2:])
    rows = input.reshape(batch * groups, each * size)
    length, wide = rows.shape[1] or 1, compute_dtype(input.dtype)
    mean, rstd = numpy.empty((2, batch * groups, 1), wide)
    result = numpy.empty(rows.shape, input.dtype)
    factor, shift = (None if item is None else widen(item).reshape(groups, each, 1) for item in (weight, bias))

    def normalize(start: int, stop: int) -> None:
        x, of_rows = widen(rows[start:stop]), slice(start, stop)
        out = result[of_rows] if result.dtype == wide else x
        row_sum(x, mean[of_rows])
        mean[of_rows] /= length
        numpy.subtract(x, mean[of_rows], out=out)
        row_dot(out, out, rstd[of_rows])
        rstd[of_rows] = _inverse_deviation(rstd[of_rows] / length, eps)
        by_channel = out.reshape(stop - start, each, size)
        group = numpy.arange(start, stop) % groups
        scale = rstd[of_rows, None]
        numpy.multiply(by_channel, scale if factor is None else scale * factor[group], out=by_channel)
        if shift is not None:
            numpy.add(by_channel, shift[group], out=by_channel)
        if out is x:
            result[of_rows] = out

    with unwarned():
        parallel_rows(normalize, len(rows), length * wide.itemsize, tile_bytes=_TILE_BYTES)
    return result.reshape(input.shape), mean.reshape(batch, groups), rstd.reshape(batch, groups)


@accelerated("nn.group_norm.group_norm_gradients", elements=LARGE)
def group_norm_gradients(
    grad: ndarray,
    input: ndarray,
    weight: ndarray | None,
    groups: int,
    mean: ndarray,
    rstd: ndarray,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `rstd` are those that `group_norm` returned.

    Y. Wu and K. He, "Group Normalization" (2018).
    """
    batch, channels = input.shape[:2]
    size = math.prod(input.shape[2:])
    g, x = grad.reshape(batch * channels, size), input.reshape(batch * channels, size)
    each = channels // groups
    means, inverses = (numpy.repeat(item, each, 1) for item in (mean, rstd))
    total, along = (item.reshape(batch, channels) for item in products.rows.run((g, x, means, None), 1)[:2])
    along = along * inverses
    to_input = None
    if needs[0]:
        factor = numpy.ones(channels, mean.dtype) if weight is None else widen(weight)
        by_group = (batch, groups, each)
        offset = numpy.add.reduce((total * factor).reshape(by_group), 2) / (each * size or 1)
        slope = numpy.add.reduce((along * factor).reshape(by_group), 2) / (each * size or 1) * rstd * rstd
        slope, offset = numpy.repeat(slope, each, 1), numpy.repeat(offset * rstd, each, 1)
        arrays = g, x, inverses * factor, -slope, means * slope - offset
        to_input = combined.rows.run(arrays, 1).reshape(input.shape)
    parameter = input if weight is None else weight
    return _gradients(to_input, numpy.add.reduce(total, 0), numpy.add.reduce(along, 0), parameter, needs)


def has_infinity(x: ndarray) -> bool:
    """Whether one of the numbers is infinite."""
    return bool(count_nonzero(numpy.isinf(x)))
