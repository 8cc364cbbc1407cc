"""Normalization of channels over a batch, or of groups of channels, as row programs whose rows consist of channels.

Over a batch a row is one channel, whose planes in all samples are far apart. In a sample a group of channels is a row of as
many parts, one behind another.

The plans of the forms in `kernels.nn.normalization`, which describes their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.expression import ELEMENT, PART, ROW
from ....codegen.plans import Memory, Plan
from ...nn.normalization import channel_norm_backward_rows, channel_norm_rows
from ...runtime.layout import has_channels_last

Sizes = tuple[int, ...]

SHORTEST_PLANE = 16
"""Smaller planes of a channel are not walked one by one."""


def batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
) -> Any:
    """The plan of `_batch_norm`: all samples of a channel are normalized together."""
    if not training or not fits(input, weight, bias) or has_channels_last(input):
        return NotImplemented
    names = "x weight bias running_mean running_var training eps".split()
    return _forward(names, input, weight, bias, eps, input.shape[1:2], _samples(input))


def group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Any:
    """The plan of `_group_norm`."""
    if not fits(input, weight, bias) or input.shape[1] % groups:
        return NotImplemented
    names = "x weight bias groups eps".split()
    return _forward(names, input, weight, bias, eps, (len(input), groups), _channels(input, groups))


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
    needs: tuple[bool, bool, bool],
) -> Any:
    """The plan of `batch_norm_gradients`."""
    if not training or not fits(input, weight, mean, invstd) or has_channels_last(input) or not alike(grad, input):
        return NotImplemented
    names = "grad x weight mean rstd running_mean running_var training eps needs".split()
    return _backward(names, grad, input, weight, mean, invstd, input.shape[1:2], _samples(input), needs)


def group_norm_gradients(
    grad: ndarray,
    input: ndarray,
    weight: ndarray | None,
    groups: int,
    mean: ndarray,
    rstd: ndarray,
    eps: float,
    needs: tuple[bool, bool, bool],
) -> Any:
    """The plan of `group_norm_gradients`."""
    if not fits(input, weight) or not alike(grad, input) or input.shape[1] % groups:
        return NotImplemented
    if not mean.dtype == rstd.dtype == input.dtype or not mean.shape == rstd.shape == (len(input), groups):
        return NotImplemented
    names = "grad x weight groups mean rstd eps needs".split()
    return _backward(names, grad, input, weight, mean, rstd, (len(input), groups), _channels(input, groups), needs)


def fits(x: ndarray, *parameters: ndarray | None) -> bool:
    """Whether the loops walk such an array, or a copy with its elements row by row."""
    return (
        x.dtype.char in "fd"
        and x.dtype.isnative
        and x.ndim > 2
        and math.prod(x.shape[2:]) >= SHORTEST_PLANE
        and x.size > 0
        and all(item is None or (item.dtype == x.dtype and item.size == x.shape[1]) for item in parameters)
    )


def alike(grad: ndarray, x: ndarray) -> bool:
    """Whether a gradient has the dtype and the shape of its array."""
    return grad.dtype == x.dtype and grad.shape == x.shape


def _samples(x: ndarray) -> Sizes:
    """The parts of rows that are channels: one, whose stretches are the samples."""
    return 1, len(x), math.prod(x.shape[1:]), x.shape[1]


def _channels(x: ndarray, groups: int) -> Sizes:
    """The parts of rows that are groups of channels."""
    return x.shape[1] // groups, 1, 0, groups


def _forward(names: list[str], x: ndarray, weight: Any, bias: Any, eps: float, statistics: Sizes, parts: Sizes) -> Any:
    shapes, size = {ELEMENT: x.shape, ROW: statistics}, math.prod(x.shape[2:])
    plan = channel_norm_rows.in_parts.plan_in_parts((x, weight, bias), (eps,), shapes, size, parts, names)
    return plan or NotImplemented


def _backward(
    names: list[str], grad: ndarray, x: ndarray, weight: Any, mean: ndarray, rstd: ndarray, statistics: Sizes, parts: Sizes,
    needs: Sequence[bool],
) -> Any:  # fmt: skip
    """The gradients of `x`, weight and bias. Each sample has its own sums for the groups, and these sums are added."""
    sums = (*statistics[:-1], x.shape[1])
    shapes, size = {ELEMENT: x.shape, ROW: statistics, PART: sums}, math.prod(x.shape[2:])
    program, arrays = channel_norm_backward_rows.in_parts, (grad, x, mean, rstd, weight)
    plan = program.plan_in_parts(arrays, (needs[0], True), shapes, size, parts, names)
    if plan is None:
        return NotImplemented
    samples = tuple(range(len(sums) - 1))
    if not samples and all(needs[1:]):
        return plan

    def run(*arguments: Any) -> Any:
        to_input, along, total = plan.run(*arguments)
        if samples:
            along, total = numpy.add.reduce(along, samples), numpy.add.reduce(total, samples)
        return to_input, along if needs[1] else None, total if needs[2] else None

    of_channels = Memory(x.shape[1:2], x.dtype)
    return Plan([plan.results[0], *[of_channels if needed else None for needed in needs[1:]]], run=run)
