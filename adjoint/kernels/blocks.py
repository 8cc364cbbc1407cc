"""Sliding blocks of images as columns, and columns added up to images again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from .precision import type_name

Array = numpy.ndarray[Any, Any]
Pair = tuple[int, int]


def im2col(self: Array, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Array:
    """`(N, C, H, W)` as `(N, C * kh * kw, blocks)`: each column holds what one block covers."""
    _check_sizes(kernel_size, dilation, padding, stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    _check_type("im2col_out_cpu", self)
    image = self if self.ndim == 4 else self[None]
    size: Pair = image.shape[-2:]
    counts = _counts(size, kernel_size, dilation, padding, stride)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    padded = numpy.pad(image, ((0, 0), (0, 0), *((width, width) for width in padding))) if any(padding) else image
    columns = numpy.empty((*image.shape[:2], *kernel_size, *counts), self.dtype)
    for row, column, place in _places(kernel_size, dilation, stride, counts):
        columns[:, :, row, column] = padded[(..., *place)]
    result = columns.reshape(image.shape[0], image.shape[1] * kernel_size[0] * kernel_size[1], counts[0] * counts[1])
    return result if self.ndim == 4 else result[0]


def col2im(self: Array, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Array:
    """`(N, C * kh * kw, blocks)` as `(N, C, H, W)`: each element is the sum of those of all blocks that cover it."""
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
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    if blocks != counts[0] * counts[1]:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={blocks}."
        )
    parts = columns.reshape(batch, channels, *kernel_size, *counts)
    padded = numpy.zeros((batch, channels, *(n + 2 * p for n, p in zip(output_size, padding, strict=True))), self.dtype)
    for row, column, place in _places(kernel_size, dilation, stride, counts):
        padded[(..., *place)] += parts[:, :, row, column]
    inner = tuple(slice(p, p + n) for n, p in zip(output_size, padding, strict=True))
    result = numpy.ascontiguousarray(padded[(..., *inner)])
    return result if self.ndim == 3 else result[0]


def _counts(size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Pair:
    """How many blocks there are along each dimension."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel_size, dilation, padding, stride, strict=True)
    )


def _places(
    kernel_size: Pair, dilation: Pair, stride: Pair, counts: Pair
) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
    """Each element of a block, and where it is in the padded image for all blocks."""
    for row in range(kernel_size[0]):
        for column in range(kernel_size[1]):
            starts = (row * dilation[0], column * dilation[1])
            rows, columns = (
                slice(start, start + step * (count - 1) + 1, step)
                for start, step, count in zip(starts, stride, counts, strict=True)
            )
            yield row, column, (rows, columns)


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
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(array.dtype)}'")
