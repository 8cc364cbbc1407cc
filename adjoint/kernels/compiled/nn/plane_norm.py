"""Normalize channels over a batch, or groups of channels, by row programs whose rows consist of channels.

For normalization over a batch, a row is one channel, whose planes in all samples are far apart. For normalization of a
sample, a row is a group of channels, and the channels are its consecutive parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from ....codegen.expression import ELEMENT, PART, ROW
from ...nn.normalization import channel_norm_backward_rows, channel_norm_rows

SHORTEST_PLANE = 16
"""The minimum size of a channel's planes for which the planes are traversed one by one."""


def normalized(x: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int | None, eps: float) -> Any:
    """Return the call that normalizes `groups` of channels of each sample or, without `groups`, each channel of all samples."""
    return _call(channel_norm_rows.in_parts, x, (x, weight, bias), (eps,), groups)


def gradients(
    grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, groups: int | None, of_input: bool
) -> Any:
    """Return the call that computes the sums for each channel and, if `of_input`, the gradient of `x`.

    With `groups`, each sample has its own sums.
    """
    return _call(channel_norm_backward_rows.in_parts, x, (grad, x, mean, rstd, weight), (of_input, True), groups)


def _call(
    program: Any, x: ndarray, arrays: Sequence[ndarray | None], scalars: Sequence[Any], groups: int | None
) -> Any:
    if x.dtype.char not in "fd" or not x.dtype.isnative or x.ndim < 3 or not x.size:
        return NotImplemented
    (batch, channels), plane = x.shape[:2], math.prod(x.shape[2:])
    if plane < SHORTEST_PLANE or channels % (groups or 1):
        return NotImplemented
    rows: tuple[int, ...] = (channels,) if groups is None else (batch, groups)
    parts = (1, batch, channels * plane, channels) if groups is None else (channels // groups, 1, 0, groups)
    sizes = {ELEMENT: x.size, ROW: math.prod(rows), PART: channels}
    for item, extent in zip(arrays, program.parameters.extents.values(), strict=True):
        if item is not None and (item.dtype != x.dtype or item.size != sizes[extent]):
            return NotImplemented
    shapes = {ELEMENT: x.shape, ROW: rows, PART: (*rows[:-1], channels)}
    return program.call_in_parts(arrays, scalars, shapes, plane, parts) or NotImplemented
