"""Batch normalization in training, compiled: one call reads a channel of all samples from memory once, for statistics and result.

The forms of `kernels.nn.normalization`, which says what their arguments are.
"""

from __future__ import annotations

import math
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
    broadcast,
    f64,
    fma,
    i32,
    lanes,
    load,
    loops,
    maximum,
    minimum,
    prefetch,
    reduce_add,
    sqrt,
    store,
    type_of,
    vector,
    where,
)
from ....codegen.llvm.launch import launch
from ...memory.copying import contiguous

STRETCH = 1 << 12
"""About how many elements are added up in the type of the input; the sums of such stretches are combined in float64."""

AHEAD_VECTORS = 32
"""How many vectors before they are needed numbers are asked for when they are first read."""

SHORTEST_PLANE = 16
"""Smaller planes of a channel are not walked one by one."""


@loops(explicit=True, plain=True)
def normalize(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    means: Pointer[T],
    inverses: Pointer[T],
    batch: Int,
    channels: Int,
    size: Int,
    samples: Int,
    length: Int,
    eps: f64,
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """Channels `start` to `stop` less their means, over their deviations, times `weight` plus `bias`; and those of each.

    A channel has a plane of `size` numbers in each sample. `moments_of` says what a stretch is.
    """
    step = channels * size
    for c in range(start, stop):
        mean, variance = moments_of(x + c * size, batch, step, size, samples, length, W)
        inverse = f64(1) / sqrt(variance + eps)
        means[c] = T(mean)
        inverses[c] = T(inverse)
        factor = inverse * f64(weight[c])
        for n in range(batch):
            at = n * step + c * size
            write_scaled(out + at, x + at, size, T(factor), T(f64(bias[c]) - mean * factor), W)


@loops(explicit=True, plain=True)
def moments_of(x: Pointer[T], batch: Int, step: Int, size: Int, samples: Int, length: Int, W: Static) -> Any:
    """The mean and the variance of `batch` rows of `size` numbers, `step` apart, in float64.

    A stretch is `length` numbers in each of `samples` rows: it stays in the first-level cache, its squares are summed about its
    own mean (Chan, Golub and LeVeque, 1979).
    """
    mean, squares, seen = f64(0), f64(0), f64(0)
    for first in range((batch + samples - 1) // samples):
        n = first * samples
        many = minimum(samples, batch - n)
        for piece in range((size + length - 1) // length):
            k = piece * length
            count = minimum(length, size - k)
            rows = x + (n * step + k)
            number = f64(many * count)
            own = f64(reduce_add(sum_of(rows, many, step, count, W))) / number
            around = f64(reduce_add(squares_of(rows, many, step, count, T(own), W)))
            distance = own - mean
            seen += number
            mean += distance * number / seen
            squares += around + distance * distance * number * (seen - number) / seen
    return mean, squares / seen


@loops(explicit=True, plain=True)
def write_scaled(out: Pointer[T], x: Pointer[T], size: Int, factor: T, added: T, W: Static) -> None:
    """A row of `size` numbers times `factor`, plus `added`."""
    scale, shift = broadcast(factor, W), broadcast(added, W)
    for k in range(0, size - W + 1, W):
        store(out + k, fma(load(x + k, W), scale, shift))
    if size % W != 0:
        k = size - size % W
        inside = lanes(i32, W) < i32(size - k)
        store(out + k, fma(load(x + k, W, inside), scale, shift), inside)


@loops(explicit=True, plain=True)
def sum_of(rows: Pointer[T], many: Int, step: Int, count: Int, W: Static) -> Any:
    """The sum of so `many` rows of `count` numbers, as a vector."""
    first, second = vector(T, W)(0), vector(T, W)(0)
    for n in range(many):
        row = rows + n * step
        for k in range(0, count - 2 * W + 1, 2 * W):
            prefetch(row + (k + AHEAD_VECTORS * W))
            prefetch(row + (k + (AHEAD_VECTORS + 1) * W))
            first = first + load(row + k, W)
            second = second + load(row + (k + W), W)
        for k in range(count - count % (2 * W), count, W):
            first = first + load(row + k, W, lanes(i32, W) < i32(minimum(count - k, W)))
    return first + second


@loops(explicit=True, plain=True)
def squares_of(rows: Pointer[T], many: Int, step: Int, count: Int, center: T, W: Static) -> Any:
    """The sum of the squares of their distances from `center`."""
    first, second = vector(T, W)(0), vector(T, W)(0)
    middle = broadcast(center, W)
    for n in range(many):
        row = rows + n * step
        for k in range(0, count - 2 * W + 1, 2 * W):
            one, other = load(row + k, W) - middle, load(row + (k + W), W) - middle
            first = fma(one, one, first)
            second = fma(other, other, second)
        for k in range(count - count % (2 * W), count, W):
            inside = lanes(i32, W) < i32(minimum(count - k, W))
            one = where(inside, load(row + k, W, inside) - middle, vector(T, W)(0))
            first = fma(one, one, first)
    return first + second


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
    batch: Int,
    channels: Int,
    size: Int,
    samples: Int,
    wanted: Int,
    start: Int,
    stop: Int,
    W: Static,
) -> None:
    """For channels `start` to `stop` sums of `grad`, and of its products with the normalized `x`.

    If it is `wanted`, also the gradient of `x`.
    """
    for c in range(start, stop):
        total, along = f64(0), f64(0)
        for first in range((batch + samples - 1) // samples):
            n = first * samples
            at = (n * channels + c) * size
            many = minimum(samples, batch - n)
            own, with_x = products_of(grad + at, x + at, many, channels * size, size, means[c], W)
            total += f64(own)
            along += f64(with_x)
        inverse = f64(inverses[c])
        along *= inverse
        totals[c] = T(total)
        alongs[c] = T(along)
        if wanted != 0:
            count = f64(maximum(batch * size, 1))
            factor = inverse * f64(weight[c])
            slope = along * inverse / count
            added = T((f64(means[c]) * slope - total / count) * factor)
            for n in range(batch):
                at = (n * channels + c) * size
                write_combined(out + at, grad + at, x + at, size, T(factor), T(-slope * factor), added, W)


@loops(explicit=True, plain=True)
def products_of(grad: Pointer[T], x: Pointer[T], many: Int, step: Int, size: Int, center: T, W: Static) -> Any:
    """Sums over `many` rows of `size` numbers, `step` apart: of `grad`, and of its products with `x` less `center`."""
    zero, middle = vector(T, W)(0), broadcast(center, W)
    sums, products, more, others = zero, zero, zero, zero
    for n in range(many):
        at = n * step
        for k in range(at, at + size - 2 * W + 1, 2 * W):
            given = load(grad + k, W)
            sums = sums + given
            products = fma(given, load(x + k, W) - middle, products)
            given = load(grad + (k + W), W)
            more = more + given
            others = fma(given, load(x + (k + W), W) - middle, others)
        for k in range(at + size - size % (2 * W), at + size, W):
            inside = lanes(i32, W) < i32(minimum(at + size - k, W))
            given = load(grad + k, W, inside)
            sums = sums + given
            products = where(inside, fma(given, load(x + k, W, inside) - middle, products), products)
    return reduce_add(sums + more), reduce_add(products + others)


@loops(explicit=True, plain=True)
def write_combined(
    out: Pointer[T], grad: Pointer[T], x: Pointer[T], size: Int, factor: T, slope: T, added: T, W: Static
) -> None:
    """A row of `size` numbers: `grad` times `factor`, plus `x` times `slope`, plus `added`."""
    scale, tilt, shift = broadcast(factor, W), broadcast(slope, W), broadcast(added, W)
    for k in range(0, size - W + 1, W):
        store(out + k, fma(load(grad + k, W), scale, fma(load(x + k, W), tilt, shift)))
    if size % W != 0:
        k = size - size % W
        inside = lanes(i32, W) < i32(size % W)
        given, value = load(grad + k, W, inside), load(x + k, W, inside)
        store(out + k, fma(given, scale, fma(value, tilt, shift)), inside)


def sizes_of(x: ndarray) -> tuple[int, int, int]:
    """How many samples and channels there are, and how large a plane of a channel is."""
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def fits(x: ndarray, *parameters: ndarray | None) -> bool:
    """Whether the kernels walk such an array."""
    return (
        x.dtype.char in "fd"
        and x.dtype.isnative
        and x.ndim > 2
        and x.flags.c_contiguous
        and math.prod(x.shape[2:]) >= SHORTEST_PLANE
        and x.size > 0
        and all(item is None or (item.dtype == x.dtype and item.flags.c_contiguous) for item in parameters)
    )


def batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
) -> Any:
    """Each channel less its mean, over its standard deviation, times `weight` plus `bias`; mean and inverse deviation."""
    if not training or not fits(input, weight, bias):
        return NotImplemented
    dtype = input.dtype
    batch, channels, size = sizes_of(input)
    factors = numpy.ones(channels, dtype) if weight is None else weight
    added = numpy.zeros(channels, dtype) if bias is None else bias
    result, mean, invstd = numpy.empty(input.shape, dtype), numpy.empty(channels, dtype), numpy.empty(channels, dtype)
    kernel = normalize.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    launch(
        kernel, channels, 4 * batch * size * dtype.itemsize, address(result), address(input), address(factors),
        address(added), address(mean), address(invstd), batch, channels, size, max(1, STRETCH // size),
        min(size, STRETCH), float(eps),
    )  # fmt: skip
    return result, mean, invstd


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
    """The gradients of `input`, `weight` and `bias`."""
    if not training or not fits(input, weight, mean, invstd) or grad.dtype != input.dtype:
        return NotImplemented
    dtype = input.dtype
    batch, channels, size = sizes_of(input)
    grad = contiguous(grad)
    factors = numpy.ones(channels, dtype) if weight is None else weight
    total, along = numpy.empty(channels, dtype), numpy.empty(channels, dtype)
    result = numpy.empty(input.shape, dtype) if needs[0] else total
    kernel = normalize_backward.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    launch(
        kernel, channels, 5 * batch * size * dtype.itemsize, address(result), address(total), address(along),
        address(grad), address(input), address(factors), address(mean), address(invstd), batch, channels, size,
        max(1, STRETCH // size), int(needs[0]),
    )  # fmt: skip
    return result if needs[0] else None, along if needs[1] else None, total if needs[2] else None
