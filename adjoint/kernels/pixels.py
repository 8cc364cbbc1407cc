"""Channels rearranged into pixels, and back, and among themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    """`(..., C r², H, W)` as `(..., C, H r, W r)` (Shi et al., 2016), on memory of its own."""
    r = upscale_factor
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, height, width = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = self.reshape(math.prod(batch), channels // (r * r), r, r, height, width)
    return split.transpose(0, 1, 4, 2, 5, 3).copy().reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    """The inverse: `(..., C, H r, W r)` as `(..., C r², H, W)`, on memory of its own."""
    r = downscale_factor
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = self.shape
    for name, size, at in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({at})={size} is not divisible by {r}"
            )
    split = self.reshape(math.prod(batch), channels, height // r, r, width // r, r)
    return split.transpose(0, 1, 3, 5, 2, 4).copy().reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(self: Array, groups: int) -> Array:
    """The channels (dimension 1) of `groups` groups interleaved, on memory of its own."""
    if self.ndim <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    channels = self.shape[1]
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = self.reshape(self.shape[0], groups, channels // groups, math.prod(self.shape[2:]))
    return split.swapaxes(1, 2).copy().reshape(self.shape)
