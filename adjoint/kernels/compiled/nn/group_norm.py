"""Normalization over groups of channels, compiled: one call reads a group from memory once, for statistics and result.

The forms of `kernels.nn.normalization`, which says what their arguments are.
"""

from __future__ import annotations

from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    address,
    f64,
    loops,
    maximum,
    sqrt,
    type_of,
)
from ....codegen.llvm.launch import launch
from ...memory.copying import contiguous
from .batch_norm import STRETCH, fits, moments_of, products_of, sizes_of, write_combined, write_scaled


@loops(explicit=True, plain=True)
def normalize(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    means: Pointer[T],
    inverses: Pointer[T],
    groups: Int,
    each: Int,
    size: Int,
    length: Int,
    eps: f64,
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """The groups `start` to `stop` of all samples less their means, over their deviations, times `weight` plus `bias`.

    A group is `each` channels of `size` numbers; a stretch of `moments_of` has `length` of them.
    """
    for g in range(start, stop):
        at = g * each * size
        mean, variance = moments_of(x + at, 1, 0, each * size, 1, length, W)
        inverse = f64(1) / sqrt(variance + eps)
        means[g] = T(mean)
        inverses[g] = T(inverse)
        channel = g % groups * each
        for c in range(channel, channel + each):
            factor = inverse * f64(weight[c])
            write_scaled(out + at, x + at, size, T(factor), T(f64(bias[c]) - mean * factor), W)
            at += size


@loops(explicit=True, plain=True)
def normalize_backward(
    out: Pointer[T],
    totals: Pointer[T],
    alongs: Pointer[T],
    grad: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    means: Pointer[T],
    inverses: Pointer[T],
    groups: Int,
    each: Int,
    size: Int,
    wanted: Int,
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """For each channel of the groups `start` to `stop` the sums of `grad`, and of its products with the normalized `x`.

    If it is `wanted`, also the gradient of `x`.
    """
    for g in range(start, stop):
        mean, inverse = f64(means[g]), f64(inverses[g])
        channel = g % groups * each
        offset, slope = f64(0), f64(0)
        for c in range(each):
            place = g * each + c
            total, along = products_of(grad + place * size, x + place * size, 1, 0, size, means[g], W)
            factor = f64(weight[channel + c])
            offset += f64(total) * factor
            slope += f64(along) * factor
            totals[place] = total
            alongs[place] = T(f64(along) * inverse)
        if wanted != 0:
            count = f64(maximum(each * size, 1))
            slope *= inverse * inverse * inverse / count
            added = T(mean * slope - offset * inverse / count)
            for c in range(each):
                at = (g * each + c) * size
                scale = T(inverse * f64(weight[channel + c]))
                write_combined(out + at, grad + at, x + at, size, scale, T(-slope), added, W)


def group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Any:
    """Each group of channels of each sample less its mean, over its deviation, times `weight` plus `bias`; these of each."""
    input = contiguous(input)
    if not fits(input, weight, bias):
        return NotImplemented
    dtype = input.dtype
    batch, channels, size = sizes_of(input)
    each = channels // groups
    factors = numpy.ones(channels, dtype) if weight is None else weight
    added = numpy.zeros(channels, dtype) if bias is None else bias
    result, mean, rstd = (
        numpy.empty(input.shape, dtype),
        numpy.empty((batch, groups), dtype),
        numpy.empty((batch, groups), dtype),
    )
    kernel = normalize.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    launch(
        kernel, batch * groups, 4 * each * size * dtype.itemsize, address(result), address(input), address(factors),
        address(added), address(mean), address(rstd), groups, each, size, min(each * size, STRETCH), float(eps),
    )  # fmt: skip
    return result, mean, rstd


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
    """The gradients of `input`, `weight` and `bias`."""
    input = contiguous(input)
    if not fits(input, weight, mean, rstd) or grad.dtype != input.dtype:
        return NotImplemented
    dtype = input.dtype
    batch, channels, size = sizes_of(input)
    each = channels // groups
    grad = contiguous(grad)
    factors = numpy.ones(channels, dtype) if weight is None else weight
    total, along = numpy.empty((batch, channels), dtype), numpy.empty((batch, channels), dtype)
    result = numpy.empty(input.shape, dtype) if needs[0] else total
    kernel = normalize_backward.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    launch(
        kernel, batch * groups, 5 * each * size * dtype.itemsize, address(result), address(total), address(along),
        address(grad), address(input), address(factors), address(mean), address(rstd), groups, each, size, int(needs[0]),
    )  # fmt: skip
    return (
        result if needs[0] else None,
        numpy.add.reduce(along, 0) if needs[1] else None,
        numpy.add.reduce(total, 0) if needs[2] else None,
    )
