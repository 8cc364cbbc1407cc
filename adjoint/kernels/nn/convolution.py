"""Convolutions over any number of spatial dimensions, as matrix products of the weight and patches of some samples at a time.

Arrays are (batch, channels, spatial...), weights (out channels, channels / groups, kernel...). The patches of an array
are a view (batch, channels, kernel..., spatial...) of the padded array. Shapes and types are not checked.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.plans import Memory, Plan, compiled, replayed
from ...codegen.recording import recordable
from ..memory.copying import rounded, widen
from ..memory.storage import restrided
from ..runtime.costs import TILE_BYTES
from ..runtime.layout import row_major
from ..runtime.parallel import parallel_rows

Sizes = tuple[int, ...]
Layout = tuple[Sizes, Sizes, Sizes, int]
"""The stride, the padding, the dilation and the number of groups."""


@compiled("nn.convolution.conv_forward")
def conv_forward(
    input: ndarray, weight: ndarray, bias: ndarray | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Plan:
    """Return the convolution plus `bias`. As in PyTorch, images without channels give images without channels."""
    sizes = output_sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation)
    memory = Memory((len(input), len(weight) if input.shape[1] else 0, *sizes), input.dtype)

    def run(input: ndarray, weight: ndarray, bias: ndarray | None, *_: Any) -> ndarray:
        wide = widen(input)
        result = numpy.empty(memory.shape, wide.dtype)
        if result.size:
            added = None if bias is None else widen(bias)
            _forward(wide, widen(weight), added, result, (stride, padding, dilation, groups))
        return rounded(result, input.dtype)

    return Plan([memory], run=run)


def output_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """Return the sizes of the result of a convolution."""
    return tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )


def _forward(x: ndarray, weight: ndarray, bias: ndarray | None, result: ndarray, layout: Layout) -> None:
    stride, padding, dilation, groups = layout
    matrix = _matrices(weight, groups)
    flat = result.reshape(len(x), groups, matrix.shape[1], -1)

    def convolve(start: int, stop: int) -> None:
        read = patches(x[start:stop], weight.shape[2:], result.shape[2:], stride, padding, dilation)
        out = flat[start:stop]
        numpy.matmul(matrix, read.reshape(len(out), groups, matrix.shape[2], -1), out=out)
        if bias is not None:
            out += bias.reshape(groups, -1, 1)

    parallel_rows(convolve, len(x), _patch_bytes(x, weight, result), tile_bytes=4 * TILE_BYTES)


def _matrices(weight: ndarray, groups: int) -> ndarray:
    """Return the weight as (groups, out channels of a group, elements of a patch)."""
    return weight.reshape(groups, len(weight) // groups, -1)


def _patch_bytes(x: ndarray, weight: ndarray, result: ndarray) -> int:
    """Return the number of bytes of the patches of a sample."""
    return x.shape[1] * math.prod(weight.shape[2:]) * math.prod(result.shape[2:]) * x.itemsize


def patches(x: ndarray, kernel: Sizes, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> ndarray:
    """Return the elements that the kernel covers at each position, (batch, channels, *kernel, *sizes), as a view if possible."""
    if any(padding):
        padded = numpy.zeros(_padded_shape(x.shape, padding), x.dtype)
        padded[_inside(x.shape[2:], padding)] = x
        x = padded
    steps = x.strides[2:]
    strides = (
        *x.strides[:2],
        *(step * d for step, d in zip(steps, dilation, strict=True)),
        *(step * s for step, s in zip(steps, stride, strict=True)),
    )
    return restrided(x, (*x.shape[:2], *kernel, *sizes), strides)


def _padded_shape(shape: Sizes, padding: Sizes) -> Sizes:
    return (*shape[:2], *[size + 2 * p for size, p in zip(shape[2:], padding, strict=True)])


def _inside(sizes: Sizes, padding: Sizes) -> Any:
    """Return the index of the elements of an array in the padded array."""
    return (..., *(slice(p, p + size) for size, p in zip(sizes, padding, strict=True)))


# --- the transposes -------------------------------------------------------------------------------------------


@replayed
def conv_input_grad(
    grad: ndarray, weight: ndarray, input_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> ndarray:
    """Return the gradient of the input of a convolution, of shape `input_shape`, from the gradient of its result."""
    if not grad.ndim == weight.ndim == len(input_shape):
        raise RuntimeError(f"Expected a gradient of {len(input_shape)} dimensions, but got {grad.ndim} dimensions")
    result: ndarray = transposed(grad, weight, None, tuple(input_shape), stride, padding, dilation, groups)
    return result


@compiled("nn.convolution.transposed")
def transposed(
    input: ndarray, weight: ndarray, bias: ndarray | None, output_shape: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> Plan:  # fmt: skip
    """Return the transposed convolution: the gradient of the input of a convolution, of shape `output_shape`, plus `bias`."""

    def run(input: ndarray, weight: ndarray, bias: ndarray | None, *_: Any) -> ndarray:
        wide = row_major(widen(input))
        result = numpy.zeros(output_shape, wide.dtype)
        if input.size and weight.size:
            _add_products(wide, widen(weight), result, (stride, padding, dilation, groups))
        if bias is not None:
            result += widen(bias).reshape(-1, *(1,) * (result.ndim - 2))
        return rounded(result, input.dtype)

    return Plan([Memory(tuple(output_shape), input.dtype)], run=run)


def _add_products(grad: ndarray, weight: ndarray, result: ndarray, layout: Layout) -> None:
    """Compute the gradients of all patches by a matrix product, and add them up where patches overlap."""
    stride, padding, dilation, groups = layout
    matrix = _matrices(weight, groups).swapaxes(1, 2)
    flat = grad.reshape(len(grad), groups, -1, math.prod(grad.shape[2:]))

    def spread(start: int, stop: int) -> None:
        inside = result[start:stop]
        parts = numpy.matmul(matrix, flat[start:stop])
        shape = (*inside.shape[:2], *weight.shape[2:], *grad.shape[2:])
        add_patches(inside, parts.reshape(shape), stride, padding, dilation)

    parallel_rows(spread, len(grad), _patch_bytes(result, weight, grad), tile_bytes=4 * TILE_BYTES)


def add_patches(result: ndarray, parts: ndarray, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    """Write the transpose of `patches`: each element is the sum of its values in all patches of `parts`."""
    dims = result.ndim - 2
    total = numpy.zeros(_padded_shape(result.shape, padding), result.dtype)
    windows = patches(total, parts.shape[2:-dims], parts.shape[-dims:], stride, (), dilation)
    for element in itertools.product(*map(range, parts.shape[2:-dims])):
        at: Any = slice(None), slice(None), *element
        numpy.add(windows[at], parts[at], out=windows[at])
    result[...] = total[_inside(result.shape[2:], padding)]


@recordable
@compiled("nn.convolution.conv_weight_grad")
def conv_weight_grad(
    grad: ndarray, input: ndarray, weight_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Plan:
    """Return the gradient of the weight of a convolution, of shape `weight_shape`, from the gradient of its result."""
    return Plan([Memory(tuple(weight_shape), grad.dtype)], run=_weight_grad)


def _weight_grad(grad: ndarray, input: ndarray, weight_shape: Sizes, *layout: Any) -> ndarray:
    """Return the sums over all positions of gradients times patches."""
    stride, padding, dilation, groups = layout
    wide, x = row_major(widen(grad)), widen(input)  # BLAS does not accept expanded arrays
    result = numpy.zeros(weight_shape, wide.dtype)
    total = _matrices(result, groups)
    tile = max(1, 4 * TILE_BYTES // max(1, _patch_bytes(x, result, wide)))
    for start in range(0, len(x) if result.size and grad.size else 0, tile):
        part = wide[start : start + tile]
        read = patches(x[start : start + tile], weight_shape[2:], grad.shape[2:], stride, padding, dilation)
        left = part.swapaxes(0, 1).reshape(groups, total.shape[1], -1)
        right = numpy.moveaxis(read, 0, len(weight_shape) - 1).reshape(groups, total.shape[2], -1)
        total += numpy.matmul(left, right.swapaxes(1, 2))
    return rounded(result, grad.dtype)
