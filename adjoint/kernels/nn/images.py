"""Rearrange images: blocks become columns, columns are added up to images, and channels become pixels."""

from __future__ import annotations

import math

import numpy

from ..runtime.floating import Array, refuse
from ..runtime.layout import row_major_copy
from .convolution import add_patches, output_sizes, patches

Pair = tuple[int, int]


def im2col(self: Array, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Array:
    """Return `(N, C, H, W)` as `(N, C * kh * kw, blocks)`. Each column contains the elements that one block covers."""
    _check_sizes(kernel_size, dilation, padding, stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    _check_type("im2col_out_cpu", self)
    image = self if self.ndim == 4 else self[None]
    size: Pair = image.shape[-2:]
    counts = output_sizes(size, kernel_size, stride, padding, dilation)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    columns = row_major_copy(patches(image, kernel_size, counts, stride, padding, dilation))
    result = columns.reshape(image.shape[0], image.shape[1] * kernel_size[0] * kernel_size[1], counts[0] * counts[1])
    return result if self.ndim == 4 else result[0]


def col2im(self: Array, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Array:
    """Return `(N, C * kh * kw, blocks)` as `(N, C, H, W)`: sums of the elements of all blocks that cover a pixel."""
    _check_sizes(kernel_size, dilation, padding, stride)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    _check_type("col2im_out_cpu", self)
    columns = self if self.ndim == 3 else self[None]
    batch, rows, blocks = columns.shape
    channels, rest = divmod(rows, kernel_size[0] * kernel_size[1])
    if rest:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel_size}."
        )
    counts = output_sizes(output_size, kernel_size, stride, padding, dilation)
    if blocks != counts[0] * counts[1]:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={blocks}."
        )
    if min(counts) < 1:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, calculated shape of the array of sliding blocks as {counts}, which is too small (non-positive)"
        )
    parts = columns.reshape(batch, channels, *kernel_size, *counts)
    result = numpy.zeros((batch, channels, *output_size), self.dtype)
    add_patches(result, parts, stride, padding, dilation)
    return result if self.ndim == 3 else result[0]


def _check_sizes(kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> None:
    for name, word, (height, width) in (
        ("kernel size", "kernel", kernel_size), ("dilation", "dilation", dilation), ("stride", "stride", stride),
    ):  # fmt: skip
        if height <= 0 or width <= 0:
            raise RuntimeError(
                f"{name} should be greater than zero, but got {word}_height: {height} {word}_width: {width}"
            )
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def _check_type(name: str, array: Array) -> None:
    if array.dtype.kind in "iu":
        raise refuse(f"{name}", array)


def _factor(name: str, self: Array, argument: str, factor: int) -> int:
    if self.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")
    return factor


def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    """Return a copy of `(..., C r², H, W)` as `(..., C, H r, W r)` (Shi et al., 2016)."""
    r = _factor("pixel_shuffle", self, "upscale_factor", upscale_factor)
    *batch, channels, height, width = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = self.reshape(math.prod(batch), channels // (r * r), r, r, height, width)
    return row_major_copy(split.transpose(0, 1, 4, 2, 5, 3)).reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    """Return a copy of `(..., C, H r, W r)` as `(..., C r², H, W)`, which is the inverse of `pixel_shuffle`."""
    r = _factor("pixel_unshuffle", self, "downscale_factor", downscale_factor)
    *batch, channels, height, width = self.shape
    for name, size, at in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({at})={size} is not divisible by {r}"
            )
    split = self.reshape(math.prod(batch), channels, height // r, r, width // r, r)
    return row_major_copy(split.transpose(0, 1, 3, 5, 2, 4)).reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(self: Array, groups: int) -> Array:
    """Return a copy with the channels (dimension 1) of `groups` groups interleaved."""
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
    return row_major_copy(split.swapaxes(1, 2)).reshape(self.shape)
