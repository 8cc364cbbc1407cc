"""Normalization over a batch, the last dimensions or groups of channels, and the gradients.

Statistics are computed in float32 for half types. Variances are the biased ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from .precision import widen

Array = numpy.ndarray[Any, Any]
Three = tuple[Array, Array, Array]
Needs = tuple[bool, ...]

_sum: Any = numpy.add.reduce


def _statistics(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """`x` less its mean over `axes`, that mean, and the inverse standard deviation, with dimensions kept."""
    count = math.prod(x.shape[axis] for axis in axes)
    mean = _sum(x, axes, None, None, True)
    mean /= count
    centred = x - mean
    variance = _sum(numpy.square(centred), axes, None, None, True)
    variance /= count
    variance += eps
    return centred, mean, 1 / numpy.sqrt(variance)


def _scaled(normalized: Array, weight: Array | None, bias: Array | None, shape: tuple[int, ...]) -> Array:
    """`normalized * weight + bias`, in place."""
    if weight is not None:
        normalized *= widen(weight).reshape(shape)
    if bias is not None:
        normalized += widen(bias).reshape(shape)
    return normalized


def _centred_gradient(scaled: Array, normalized: Array, invstd: Array, axes: tuple[int, ...]) -> Array:
    """The gradient of what was normalized over `axes`, given that of the normalized values."""
    count = math.prod(scaled.shape[axis] for axis in axes)
    result = scaled - _sum(scaled, axes, None, None, True) / count
    result -= normalized * (_sum(scaled * normalized, axes, None, None, True) / count)
    result *= invstd
    return result


# --- over the batch -------------------------------------------------------------------------------------------


def _channel_axes(x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))


def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
) -> Three:
    """Each channel (dimension 1) normalized over all others; also the mean and the inverse standard deviation of each.

    In training these are the batch's own; otherwise the running ones are used and two empty arrays returned.
    """
    axes, shape = _channel_axes(input)
    x = widen(input)
    if training or running_mean is None or running_var is None:
        result, mean, invstd = _statistics(x, axes, eps)
        saved = mean.reshape(-1), invstd.reshape(-1)
    else:
        result = x - widen(running_mean).reshape(shape)
        invstd = 1 / numpy.sqrt(widen(running_var).reshape(shape) + eps)
        saved = (numpy.empty(0, x.dtype), numpy.empty(0, x.dtype))
    result *= invstd
    return _scaled(result, weight, bias, shape).astype(input.dtype, copy=False), *saved


def unbiased_variance(invstd: Array, eps: float, count: int) -> Array:
    """The unbiased variance of `count` values from their saved inverse standard deviation."""
    return (1 / (invstd * invstd) - eps) * (count / max(count - 1, 1))


def batch_norm_gradients(
    grad: Array,
    input: Array,
    weight: Array | None,
    mean: Array,
    invstd: Array,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
    needs: Needs,
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of input, weight and bias, where `needs` says so."""
    axes, shape = _channel_axes(input)
    if mean.size == 0 and running_mean is not None and running_var is not None:
        mean, invstd = widen(running_mean), 1 / numpy.sqrt(widen(running_var) + eps)
        training = False
    g, x, invstd = widen(grad), widen(input), invstd.reshape(shape)
    normalized = (x - mean.reshape(shape)) * invstd
    to_weight = _sum(g * normalized, axes, None) if needs[1] else None
    to_bias = _sum(g, axes, None) if needs[2] else None
    to_input = None
    if needs[0]:
        scaled = g if weight is None else g * widen(weight).reshape(shape)
        to_input = _centred_gradient(scaled, normalized, invstd, axes) if training else scaled * invstd
        to_input = to_input.astype(input.dtype, copy=False)
    return to_input, to_weight, to_bias


# --- over the last dimensions ---------------------------------------------------------------------------------


def layer_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> Three:
    """The last dimensions normalized together; also their mean and inverse standard deviation, dimensions kept."""
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    result, mean, invstd = _statistics(widen(input), axes, eps)
    result *= invstd
    return _scaled(result, weight, bias, normalized_shape).astype(input.dtype, copy=False), mean, invstd


def layer_norm_gradients(
    grad: Array,
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None,
    mean: Array,
    rstd: Array,
    eps: float,
    needs: Needs,
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of input, weight and bias, where `needs` says so."""
    lead = input.ndim - len(normalized_shape)
    axes, leading = tuple(range(lead, input.ndim)), tuple(range(lead))
    g, x = widen(grad), widen(input)
    normalized = (x - mean) * rstd
    to_weight = _sum(g * normalized, leading, None) if needs[1] else None
    to_bias = _sum(g, leading, None) if needs[2] else None
    to_input = None
    if needs[0]:
        scaled = g if weight is None else g * widen(weight)
        to_input = _centred_gradient(scaled, normalized, rstd, axes).astype(input.dtype, copy=False)
    return to_input, to_weight, to_bias


# --- over groups of channels ----------------------------------------------------------------------------------


def group_norm(input: Array, group: int, weight: Array | None, bias: Array | None, eps: float) -> Three:
    """Each of `group` groups of channels of each sample normalized together; also means and inverse standard deviations."""
    _, shape = _channel_axes(input)
    grouped = widen(input).reshape(input.shape[0], group, -1)
    result, mean, invstd = _statistics(grouped, (2,), eps)
    result *= invstd
    output = _scaled(result.reshape(input.shape), weight, bias, shape).astype(input.dtype, copy=False)
    return output, mean[..., 0], invstd[..., 0]


def group_norm_gradients(
    grad: Array, input: Array, weight: Array | None, group: int, mean: Array, rstd: Array, eps: float, needs: Needs
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of input, weight and bias, where `needs` says so."""
    axes, shape = _channel_axes(input)
    split = (input.shape[0], group, -1)
    g, invstd = widen(grad), rstd[..., None]
    normalized = (widen(input).reshape(split) - mean[..., None]) * invstd
    to_weight = _sum(g * normalized.reshape(input.shape), axes, None) if needs[1] else None
    to_bias = _sum(g, axes, None) if needs[2] else None
    to_input = None
    if needs[0]:
        scaled = (g if weight is None else g * widen(weight).reshape(shape)).reshape(split)
        to_input = _centred_gradient(scaled, normalized, invstd, (2,)).reshape(input.shape).astype(input.dtype, copy=False)
    return to_input, to_weight, to_bias
