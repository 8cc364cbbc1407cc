"""Normalization over a batch, a layer or groups of channels, and the gradients of input, weight and bias.

Statistics are computed in two passes over data in the cache: first the mean, and then the squared distances from the
mean. Half types are computed in float32. Results are (output, mean, inverse standard deviation). Gradients that `needs`
does not request are None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import asarray, count_nonzero, ndarray

from ...codegen.acceleration import SHAPES
from ...codegen.plans import Memory, Plan, compiled, empty, replayed
from ...codegen.pointwise import pointwise
from ...codegen.recording import recordable
from ...codegen.rows import Refusing, row_program
from ...codegen.tracing import PerColumn, PerPart, PerRow, column, part, row, xp
from ..memory.copying import rounded, widen
from ..reduce import moments
from ..runtime.costs import MOVED, THREADED
from ..runtime.floating import Array, check_floating, compute_dtype, unwarned
from ..runtime.layout import has_channels_last, row_major

Triple = tuple[ndarray, ndarray, ndarray]
Gradients = tuple[ndarray | None, ndarray | None, ndarray | None]
Sums = tuple[ndarray | None, ndarray, ndarray]
Needs = Sequence[bool]


def _refusing(name: str) -> Refusing:
    """Return the check that raises PyTorch's error, with the name of its kernel, for dtypes that are not floating-point."""
    return lambda x, _: check_floating(name, x)


def _with_large(
    results: Triple, input: ndarray, shape: Sequence[int], axes: tuple[int, ...], again: Callable[[ndarray], Triple]
) -> Triple:
    """Replace the results whose squares have overflowed although the numbers are finite.

    The numbers are first divided by the largest number. `shape` and `axes` define the elements that are normalized
    together. `again` normalizes without adding `eps` to variances.
    """
    result, mean, rstd = results
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


def _are_normal(rstd: ndarray) -> bool:
    """Return whether all inverse deviations are positive numbers, which means that no variance has overflowed."""
    if SHAPES.recorder is not None:
        return bool(SHAPES.recorder.expect(True, "nn.plane_norm.are_positive", rstd))
    return not rstd.size or rstd.item(rstd.argmin()) > 0


# --- over the last dimensions ---------------------------------------------------------------------------------


@row_program(_refusing("LayerNormKernelImpl"))
def layer_norm_rows(x: Array, weight: PerColumn | None, bias: PerColumn | None, eps: float) -> Any:
    """Return the row minus its mean, divided by its standard deviation, times `weight`, plus `bias`.

    Return its mean and inverse deviation too.
    """
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
    grad: Array, x: Array, mean: PerRow, rstd: PerRow, weight: PerColumn | None, inputs: bool, weights: bool,
    biases: bool,
) -> Any:  # fmt: skip
    """Return the requested gradients of the input, the weight and the bias."""
    normalized = (x - mean) * rstd
    to_input = None
    if inputs:
        scaled = grad if weight is None else grad * weight
        along = row.mean(scaled * normalized)
        to_input = (scaled - row.mean(scaled) - normalized * along) * rstd
    to_weight = column.sum(grad * normalized) if weights else None
    return to_input, to_weight, column.sum(grad) if biases else None


@replayed
def layer_norm(
    input: ndarray, normalized_shape: tuple[int, ...], weight: ndarray | None, bias: ndarray | None, eps: float
) -> Triple:
    """Return `layer_norm_rows` of the joined last dimensions. The mean and the inverse deviation keep them with length 1."""
    rows = _as_rows(input, len(normalized_shape))
    result, mean, rstd = layer_norm_rows.run((rows, weight, bias), -1, (eps,))
    if not _are_normal(rstd):
        again = lambda scaled: layer_norm_rows.run((scaled, weight, bias), -1, (0.0,))
        _with_large((result, mean, rstd), rows, rows.shape, (rows.ndim - 1,), again)
    if rows is input:
        return result, mean, rstd
    kept = (*mean.shape, *(1,) * (input.ndim - rows.ndim))
    return result.reshape(input.shape), mean.reshape(kept), rstd.reshape(kept)


def _as_rows(x: ndarray, dims: int) -> ndarray:
    """Return the array with its last `dims` dimensions joined to a single dimension."""
    if dims == 1:
        return x
    leading = x.shape[: x.ndim - dims]
    return x.reshape(*leading, math.prod(x.shape[len(leading) :]))


@replayed
def layer_norm_gradients(
    grad: ndarray, input: ndarray, normalized_shape: tuple[int, ...], weight: ndarray | None, mean: ndarray,
    rstd: ndarray, eps: float, needs: Needs,
) -> Gradients:  # fmt: skip
    """Return the gradients of `input`, `weight` and `bias`; `mean` and `rstd` are results of `layer_norm`.

    J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization" (2016).
    """
    dims = len(normalized_shape)
    arrays = _as_rows(grad, dims), _as_rows(input, dims), mean, rstd, weight
    to_input, to_weight, to_bias = layer_norm_backward_rows.run(arrays, -1, needs)
    parameter = input.dtype if weight is None else weight.dtype
    return (
        None if to_input is None else to_input.reshape(input.shape),
        None if to_weight is None else to_weight.reshape(normalized_shape).astype(parameter, copy=False),
        None if to_bias is None else to_bias.reshape(normalized_shape).astype(parameter, copy=False),
    )


# --- over the batch: channels are dimension 1 -----------------------------------------------------------------


@row_program(_refusing("batch_norm"))
def channel_norm_rows(x: Array, weight: PerPart | None, bias: PerPart | None, eps: float) -> Any:
    """Return `layer_norm_rows` with a weight and a bias for each part of a row."""
    mean = row.mean(x)
    centred = x - mean
    rstd = xp.rsqrt(row.mean(centred * centred) + eps)
    result = centred * (rstd if weight is None else rstd * weight)
    return (result if bias is None else result + bias), mean, rstd


@row_program()
def channel_norm_backward_rows(
    grad: Array, x: Array, mean: PerRow, rstd: PerRow, weight: PerPart | None, inputs: bool, training: bool
) -> Any:
    """Return the gradient of the input and, for each part of a row, the sums of `grad` times the normalized row and of `grad`."""
    centred = x - mean
    total, along = part.sum(grad), part.sum(grad * centred) * rstd
    to_input = None
    if inputs:
        to_input = grad if weight is None else grad * weight
        if training:
            offset = part.total(total if weight is None else total * weight) / row.length(x)
            slope = part.total(along if weight is None else along * weight) * rstd / row.length(x)
            to_input = to_input - offset - centred * slope
        to_input = to_input * rstd
    return to_input, along, total


@pointwise("batch_norm")
def _affine(x: Array, scale: Array, shift: Array) -> Any:
    return x * scale + shift


class _Channels:
    """The conversion of an array (batch, channels, ...) to two dimensions. One dimension has a channel per index."""

    def __init__(self, x: ndarray) -> None:
        self.shape = x.shape
        self.last = has_channels_last(x)
        self.are_columns = self.last or x.ndim == 2
        self.dim = 0 if self.are_columns else 1
        """The dimension along which a channel extends."""
        self.memory = Memory(x.shape, x.dtype, (0, *range(2, x.ndim), 1) if self.last else None)
        """The description of an array with the same shape, dtype and memory order."""

    def flat(self, x: ndarray) -> ndarray:
        """Return an array of the original shape in two dimensions."""
        if self.are_columns:
            return (numpy.moveaxis(x, 1, -1) if self.last else row_major(x)).reshape(-1, self.shape[1])
        return x.swapaxes(0, 1).reshape(self.shape[1], -1)

    def restored(self, flat: ndarray) -> ndarray:
        """Return an array with two dimensions in the original shape and memory order."""
        batch, channels, *places = self.shape
        if self.last:
            return numpy.moveaxis(flat.reshape(batch, *places, channels), -1, 1)
        if self.are_columns or batch == 1:
            return flat.reshape(self.shape)
        return row_major(flat.reshape(channels, batch, *places).swapaxes(0, 1))


def unbiased_variance(invstd: ndarray, eps: float, count: int) -> ndarray:
    """Return the unbiased variance of `count` elements, which updates the running variance."""
    with unwarned():
        variance = 1.0 / numpy.square(invstd.astype(numpy.float64)) - eps
        return (numpy.maximum(variance, 0) * (count / max(count - 1, 1))).astype(invstd.dtype)


@replayed
def move(
    running_mean: ndarray, running_var: ndarray, mean: ndarray, invstd: ndarray, momentum: float, eps: float, count: int
) -> None:
    """Update running statistics in place with the statistics of a batch. `momentum` is the weight of the batch."""
    _move(running_mean, running_var, mean, invstd, momentum, eps, count)


@compiled("nn.plane_norm.move", least=MOVED, cost=10)
def _move(
    running_mean: ndarray, running_var: ndarray, mean: ndarray, invstd: ndarray, momentum: float, eps: float, count: int
) -> None:
    variance = unbiased_variance(invstd, eps, count)
    with unwarned():
        for running, towards in ((running_mean, mean), (running_var, variance)):
            running[...] = momentum * towards + (1 - momentum) * running


@replayed
def batch_norm(
    input: ndarray, weight: ndarray | None, bias: ndarray | None, running_mean: ndarray | None,
    running_var: ndarray | None, training: bool, eps: float,
) -> Triple:  # fmt: skip
    """Return each channel minus its mean, divided by its standard deviation, times `weight`, plus `bias`.

    In training, the mean and the deviation of the batch, over all dimensions except channels, are used and returned.
    Otherwise the running statistics are used, and empty arrays are returned.
    """
    results = _batch_norm(input, weight, bias, running_mean, running_var, training, eps)
    if not training or _are_normal(results[2]):
        return results
    axes = (0, *range(2, input.ndim))
    return _with_large(
        results, input, input.shape, axes, lambda scaled: _batch_norm(scaled, weight, bias, None, None, True, 0.0)
    )


@compiled("nn.plane_norm.normalized")
def _batch_norm(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, running_mean: ndarray | None, running_var: ndarray | None,
    training: bool, eps: float,
) -> Plan:  # fmt: skip
    channels = _Channels(x)
    by_rows = training and not (
        channels.are_columns and x.size > THREADED
    )  # the sums over all rows then read row by row
    if not by_rows:
        check_floating("batch_norm", x)

    def run(
        x: ndarray, weight: ndarray | None, bias: ndarray | None, running_mean: ndarray, running_var: ndarray, *_: Any
    ) -> Triple:
        if by_rows:
            result, mean, rstd = channel_norm_rows.run((channels.flat(x), weight, bias), channels.dim, (eps,))
            return channels.restored(result), mean.reshape(-1), rstd.reshape(-1)
        if training:
            variance, mean = moments.var_mean(widen(channels.flat(x)), 0, 0)
            rstd = _inverse_deviation(variance, eps)
        else:
            mean, rstd = _running(running_mean, running_var, eps)
        scale = rstd if weight is None else rstd * widen(weight)
        shift = -mean * scale if bias is None else widen(bias) - mean * scale
        if channels.are_columns:
            flat = _affine.expression.run((widen(channels.flat(x)), scale, shift), ())
            result = channels.restored(rounded(flat, x.dtype))
        else:
            factors = [item.reshape(-1, *(1,) * (x.ndim - 2)) for item in (scale, shift)]
            result = rounded(_affine.expression.run((widen(row_major(x)), *factors), ()), x.dtype)
        return (result, mean, rstd) if training else (result, empty((0,), mean.dtype), empty((0,), rstd.dtype))

    kept = x if training else asarray(running_mean)
    saved = Memory((x.shape[1] if training else 0,), compute_dtype(kept.dtype))
    compiled = (x, weight, bias, None, eps) if training and not channels.last else NotImplemented
    return Plan([channels.memory, saved, saved], run=recordable(run), compiled=compiled)


def _inverse_deviation(variance: ndarray, eps: float) -> ndarray:
    result: ndarray = 1 / numpy.sqrt(variance + variance.dtype.type(eps))
    return result


def _running(running_mean: Any, running_var: Any, eps: float) -> tuple[ndarray, ndarray]:
    return widen(running_mean), _inverse_deviation(widen(running_var), eps)


@replayed
def batch_norm_gradients(
    grad: ndarray, input: ndarray, weight: ndarray | None, mean: ndarray, invstd: ndarray, running_mean: ndarray | None,
    running_var: ndarray | None, training: bool, eps: float, needs: Needs,
) -> Gradients:  # fmt: skip
    """Return the gradients of `input`, `weight` and `bias`; `mean` and `invstd` are results of `batch_norm`.

    S. Ioffe and C. Szegedy, "Batch Normalization" (2015), section 3.
    """
    if not training:
        mean, invstd = _running(running_mean, running_var, eps)
    to_input, along, total = _batch_gradients(grad, input, weight, mean, invstd, training, needs[0])
    return _requested(to_input, along, total, input if weight is None else weight, needs)


@compiled("nn.plane_norm.over_samples", least=MOVED)
def _over_samples(sums: ndarray) -> ndarray:
    """Return the sums of rows, which are added one after another."""
    total: ndarray = numpy.add.reduce(sums, 0)
    return total


@compiled("nn.plane_norm.gradients")
def _batch_gradients(
    grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, training: bool, of_input: bool
) -> Plan:
    """Return the gradient of `x` and, for each channel, the sums of `grad` times the normalized channel and of `grad`."""
    channels = _Channels(x)
    samples = x.shape[:2]
    # Gradients with given statistics need no sums over whole channels, and can leave each sample where it is.
    by_sample = not training and not channels.are_columns and x.size > THREADED

    def run(grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, *_: Any) -> Sums:
        if by_sample:
            planes = [item.reshape(math.prod(samples), -1) for item in (grad, x)]
            factors = [
                None if item is None else numpy.broadcast_to(item, samples).reshape(-1) for item in (mean, rstd, weight)
            ]
            to_input, *sums = channel_norm_backward_rows.run((*planes, *factors), 1, (of_input, False))
            along, total = [_over_samples(item.reshape(samples)) for item in sums]
            return None if to_input is None else to_input.reshape(x.shape), along, total
        arrays = channels.flat(grad), channels.flat(x), mean, rstd, weight
        to_input, along, total = channel_norm_backward_rows.run(arrays, channels.dim, (of_input, training))
        return None if to_input is None else channels.restored(to_input), along.reshape(-1), total.reshape(-1)

    sums = Memory(x.shape[1:2], compute_dtype(x.dtype))
    compiled = (grad, x, weight, mean, rstd, None, of_input) if training and not channels.last else NotImplemented
    return Plan([channels.memory if of_input else None, sums, sums], run=recordable(run), compiled=compiled)


def _requested(to_input: ndarray | None, along: ndarray, total: ndarray, parameter: ndarray, needs: Needs) -> Gradients:
    """Return the requested gradients of input, weight and bias. Weight and bias gradients have the dtype of the parameters."""
    to_weight = along.astype(parameter.dtype, copy=False) if needs[1] else None
    return to_input, to_weight, total.astype(parameter.dtype, copy=False) if needs[2] else None


# --- over groups of channels ----------------------------------------------------------------------------------


@replayed
def group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Triple:
    """Return each normalized group of channels times `weight` plus `bias`, its mean and inverse deviation, (batch, groups)."""
    results = _group_norm(input, weight, bias, groups, eps)
    if _are_normal(results[2]):
        return results
    shape = len(input), groups, input.shape[1] // groups * math.prod(input.shape[2:])
    return _with_large(results, input, shape, (2,), lambda scaled: _group_norm(scaled, weight, bias, groups, 0.0))


@compiled("nn.plane_norm.normalized")
def _group_norm(x: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Plan:
    check_floating("GroupNormKernelImpl", x)
    batch, channels = x.shape[:2]
    size = math.prod(x.shape[2:])

    def run(x: ndarray, weight: ndarray | None, bias: ndarray | None, *_: Any) -> Triple:
        rows = x.reshape(batch * groups, channels // groups * size)
        result, mean, rstd = layer_norm_rows.run(
            (rows if weight is None and bias is None else widen(rows), None, None), 1, (eps,)
        )
        planes = result.reshape(batch, channels, size)
        if weight is not None:
            planes *= widen(weight)[:, None]
        if bias is not None:
            planes += widen(bias)[:, None]
        result = rounded(planes.reshape(x.shape), x.dtype)
        return result, mean.reshape(batch, groups), rstd.reshape(batch, groups)

    saved = Memory((batch, groups), compute_dtype(x.dtype))
    return Plan([Memory(x.shape, x.dtype), saved, saved], run=recordable(run))


@replayed
def group_norm_gradients(
    grad: ndarray, input: ndarray, weight: ndarray | None, groups: int, mean: ndarray, rstd: ndarray, eps: float,
    needs: Needs,
) -> Gradients:  # fmt: skip
    """Return the gradients of `input`, `weight` and `bias`; `mean` and `rstd` are results of `group_norm`.

    Y. Wu and K. He, "Group Normalization" (2018).
    """
    to_input, *sums = _group_gradients(grad, input, weight, mean, rstd, groups, needs[0])
    along, total = map(_over_samples, sums)
    return _requested(to_input, along, total, input if weight is None else weight, needs)


@compiled("nn.plane_norm.gradients")
def _group_gradients(
    grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, groups: int, of_input: bool
) -> Plan:
    """Return the gradient of `x` and, for each channel of each sample, the sums of `_batch_gradients`."""
    batch, channels = x.shape[:2]
    planes = batch * channels, math.prod(x.shape[2:])
    shape = batch, groups, channels // groups, planes[1]
    count = max(shape[2] * shape[3], 1)

    def run(grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, *_: Any) -> Sums:
        of_planes = [numpy.repeat(item, channels // groups, 1) for item in (mean, rstd)]
        arrays = grad.reshape(planes), x.reshape(planes), *of_planes, None
        _, along, total = channel_norm_backward_rows.run(arrays, 1, (False, True))
        along, total = along.reshape(batch, channels), total.reshape(batch, channels)
        if not of_input:
            return None, along, total
        factor = numpy.ones(channels, mean.dtype) if weight is None else widen(weight)
        offset, slope = ((item * factor).reshape(shape[:3]).sum(2)[:, :, None, None] / count for item in (total, along))
        centre, inverse = mean[:, :, None, None], rstd[:, :, None, None]
        scaled = (widen(grad).reshape(batch, channels, planes[1]) * factor[:, None]).reshape(shape)
        to_input = (scaled - offset - (widen(x).reshape(shape) - centre) * (slope * inverse)) * inverse
        return row_major(rounded(to_input.reshape(x.shape), x.dtype)), along, total

    sums = Memory((batch, channels), compute_dtype(x.dtype))
    return Plan([Memory(x.shape, x.dtype) if of_input else None, sums, sums], run=recordable(run))


def has_infinity(x: ndarray) -> bool:
    """Return whether one of the numbers is infinite."""
    return bool(count_nonzero(numpy.isinf(x)))
