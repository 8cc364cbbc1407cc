"""Convolutions compiled: the input is packed in blocks that stay in cache, patches are never held.

The forms of `kernels.nn.convolution`, which says what their arguments are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import address
from ....codegen.llvm.launch import launch
from ...runtime.floating import widen
from ...runtime.parallel import get_num_threads, scratch
from .convolution_geometry import Axis, forward_axis, input_axis
from .convolution_plan import CorrelationPlan, ProductPlan, Work

Sizes = tuple[int, ...]


@functools.lru_cache(256)
def _plan(
    make: Callable[..., Axis],
    kind: Callable[..., Any],
    shape: Sizes,
    kernel: Sizes,
    output: Sizes,
    geometry: tuple[Sizes, Sizes, Sizes, int],
    dtype: numpy.dtype[Any],
    threads: int,
) -> Any:
    """For an input of `shape` and a weight of shape `kernel`; `geometry` is stride, padding, dilation and groups."""
    stride, padding, dilation, groups = geometry
    input, taps = shape[2:], kernel[2:]
    if math.prod(taps) == math.prod(stride) == 1 and not any(padding):
        input, taps, output = (math.prod(input),), (1,), (math.prod(output),)
    axes = [make(1, 1, 1, 0, 1, 1)] * (3 - len(input))
    axes += [make(*sizes) for sizes in zip(input, taps, stride, padding, dilation, output, strict=False)]
    ins, outs = kernel[1], kernel[0] // groups
    if make is input_axis:
        ins, outs = outs, ins
    work = Work((axes[0], axes[1], axes[2]), shape[0], groups, ins, outs, dtype.itemsize, threads)
    return kind(work, dtype)


def _strides(array: ndarray) -> ndarray:
    """Those of samples, channels, planes and rows, in elements."""
    return numpy.array(array.strides[:-1]) // array.itemsize


def _convolve(
    plan: ProductPlan, x: ndarray, weight: ndarray, strides: Sizes, bias: ndarray | None, result: ndarray
) -> None:
    """Write the sums over taps and input channels, plus `bias`, to `result`."""
    x = plan.source(x)
    factors = scratch("weights", (plan.weights_size,), x.dtype)
    launch(
        plan.weight_kernel, plan.weight_blocks, plan.weight_block_bytes, address(factors), address(weight),
        plan.products.address, plan.taps.address, plan.geometry.spreads, plan.outs, plan.ins, *strides,
    )  # fmt: skip
    memory = scratch("packed", (plan.ranges * plan.scratch_pitch,), x.dtype)
    added = plan.nothing if bias is None else bias
    steps = _strides(x)
    launch(
        plan.kernel, plan.ranges, plan.range_bytes, address(result), address(x), address(factors), address(added),
        address(memory), plan.sizes.address, plan.records.address, plan.products.address, address(steps),
    )  # fmt: skip


def _fits(*arrays: ndarray) -> bool:
    first = arrays[0]
    return (
        first.dtype.char in "fd"
        and first.dtype.isnative
        and first.ndim <= 5
        and all(array.dtype == first.dtype and array.size for array in arrays)
    )


def conv_forward(
    input: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """The convolution of `input` with `weight`, plus `bias`."""
    wide, kernel = widen(input), numpy.ascontiguousarray(widen(weight))
    if not _fits(wide, kernel):
        return NotImplemented
    sizes = tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    )
    geometry = stride, padding, dilation, groups
    plan = _plan(forward_axis, ProductPlan, input.shape, weight.shape, sizes, geometry, wide.dtype, get_num_threads())
    result = numpy.empty((len(input), len(weight), *sizes), wide.dtype)
    added = None if bias is None else numpy.ascontiguousarray(widen(bias))
    taps = math.prod(weight.shape[2:])
    strides = plan.outs * plan.ins * taps, plan.ins * taps, taps
    _convolve(plan, wide, kernel, strides, added, result)
    return result.astype(input.dtype, copy=False)


def conv_input_grad(
    grad: ndarray,
    weight: ndarray,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """The gradient of the input of a convolution."""
    return transposed(grad, weight, None, input_shape, stride, padding, dilation, groups)


def transposed(
    input: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    output_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """The transposed convolution of `input` with `weight`, plus `bias`."""
    wide, kernel = widen(input), numpy.ascontiguousarray(widen(weight))
    if not _fits(wide, kernel) or 0 in output_shape:
        return NotImplemented
    geometry = stride, padding, dilation, groups
    plan = _plan(
        input_axis, ProductPlan, output_shape, weight.shape, input.shape[2:], geometry, wide.dtype, get_num_threads()
    )
    result = numpy.empty(output_shape, wide.dtype)
    added = None if bias is None else numpy.ascontiguousarray(widen(bias))
    taps = math.prod(weight.shape[2:])
    strides = plan.ins * plan.outs * taps, taps, plan.outs * taps
    _convolve(plan, wide, kernel, strides, added, result)
    return result.astype(input.dtype, copy=False)


def conv_weight_grad(
    grad: ndarray,
    input: ndarray,
    weight_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """The gradient of the weight of a convolution. Sums over parts of the batch are added in the order of the parts."""
    wide, x = widen(grad), widen(input)
    if not _fits(wide, x) or 0 in weight_shape:
        return NotImplemented
    geometry = stride, padding, dilation, groups
    plan: CorrelationPlan = _plan(
        forward_axis,
        CorrelationPlan,
        input.shape,
        tuple(weight_shape),
        grad.shape[2:],
        geometry,
        x.dtype,
        get_num_threads(),
    )
    wide, x = plan.target(wide), plan.source(x)
    totals = scratch("totals", (plan.ranges, plan.size), x.dtype)
    memory = scratch("packed", (plan.ranges * plan.scratch_pitch,), x.dtype)
    steps, grad_steps = _strides(x), _strides(wide)
    launch(
        plan.kernel, plan.ranges, plan.range_bytes, address(totals), address(wide), address(x), address(memory),
        plan.sizes.address, plan.records.address, plan.offsets.address, plan.dealing.address, address(steps),
        address(grad_steps),
    )  # fmt: skip
    result, found = numpy.empty(weight_shape, x.dtype), numpy.zeros(1, numpy.int64)
    launch(
        plan.sum_kernel, plan.sum_vectors, plan.sum_bytes, address(result), address(totals), address(found), plan.size,
        plan.ranges,
    )  # fmt: skip
    if found[0]:
        return NotImplemented  # an infinity met the zeros between rows
    return result.astype(grad.dtype, copy=False)
