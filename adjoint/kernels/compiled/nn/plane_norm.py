"""Normalization of channels over a batch, or of groups of channels, compiled: memory is read once for statistics and result.

What is normalized together is `blocks` times `many` planes of `size` numbers: over a batch one block of a channel's
planes in all samples, `step` apart; in a group of channels as many blocks as channels, of one plane each, one behind
another. A block has one weight, one bias, and one sum of each kind.

The plans of the forms in `kernels.nn.normalization`, which describes their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.calls import NativeCall, array_at, not_row_major, scalar_at
from ....codegen.llvm.language import *
from ....codegen.plans import Memory, Plan
from ...runtime.layout import has_channels_last

STRETCH = 1 << 12
"""The approximate number of elements that are added up in the type of the input.

The sums of such stretches are combined in float64.
"""

AHEAD_VECTORS = 32
"""The prefetch distance of the first read, in vectors."""

SHORTEST_PLANE = 16
"""Smaller planes of a channel are not walked one by one."""


PLANES = Struct("blocks many step size units samples length")
GRADIENTS = Struct("blocks many step size units samples wanted")


@loops(explicit=True, plain=True, noalias=False)
def normalize(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static) -> None:
    """Less their means, over their deviations, times the weight plus the bias of each block; means and inverse deviations."""
    layout = fields(table[0], PLANES)
    blocks, many, step, size, units = layout.blocks, layout.many, layout.step, layout.size, layout.units
    x, weight, bias = array_at(table, 0, T), array_at(table, 1, T), array_at(table, 2, T)
    out, means, inverses = array_at(table, 3, T), array_at(table, 4, T), array_at(table, 5, T)
    eps = scalar_at(table, 6, 0)
    for u in range(start, stop):
        at = u * blocks * size
        mean, variance = moments_of(x + at, many, step, blocks * size, layout.samples, layout.length, W)
        inverse = f64(1) / sqrt(variance + eps)
        means[u] = T(mean)
        inverses[u] = T(inverse)
        first = u % units * blocks
        for b in range(blocks):
            factor = inverse * f64(weight[first + b])
            added = T(f64(bias[first + b]) - mean * factor)
            for n in range(many):
                place = at + b * size + n * step
                write_scaled(out + place, x + place, size, T(factor), added, W)


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
            own = f64(reduce_add(sum_of(rows, many, step, count, T(0), False, W))) / number
            around = f64(reduce_add(sum_of(rows, many, step, count, T(own), True, W)))
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
def sum_of(rows: Pointer[T], many: Int, step: Int, count: Int, center: T, SQUARES: Static, W: Static) -> Any:
    """The sum of so many `rows` of `count` numbers, or of the squares of their distances from `center`, as a vector."""
    first, second = vector(T, W)(0), vector(T, W)(0)
    middle = broadcast(center, W)
    for n in range(many):
        row = rows + n * step
        for k in range(0, count - 2 * W + 1, 2 * W):
            if SQUARES:
                one, other = load(row + k, W) - middle, load(row + (k + W), W) - middle
                first = fma(one, one, first)
                second = fma(other, other, second)
            else:
                prefetch(row + (k + AHEAD_VECTORS * W))
                prefetch(row + (k + (AHEAD_VECTORS + 1) * W))
                first = first + load(row + k, W)
                second = second + load(row + (k + W), W)
        for k in range(count - count % (2 * W), count, W):
            inside = lanes(i32, W) < i32(minimum(count - k, W))
            one = load(row + k, W, inside)
            if SQUARES:
                one = where(inside, one - middle, vector(T, W)(0))
                first = fma(one, one, first)
            else:
                first = first + one
    return first + second


@loops(explicit=True, plain=True, noalias=False)
def normalize_backward(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static) -> None:
    """For each block sums of `grad`, and of its products with the normalized `x`; if it is wanted, also the gradient of `x`."""
    layout = fields(table[0], GRADIENTS)
    blocks, many, step, size, units = layout.blocks, layout.many, layout.step, layout.size, layout.units
    samples, wanted = layout.samples, layout.wanted
    grad, x, weight = array_at(table, 0, T), array_at(table, 1, T), array_at(table, 2, T)
    means, inverses = array_at(table, 3, T), array_at(table, 4, T)
    alongs, totals = array_at(table, 5 + wanted, T), array_at(table, 6 + wanted, T)
    for u in range(start, stop):
        at = u * blocks * size
        weights = weight + u % units * blocks
        mean, inverse = f64(means[u]), f64(inverses[u])
        offset, slope = f64(0), f64(0)
        for b in range(blocks):
            total, along = f64(0), f64(0)
            for first in range((many + samples - 1) // samples):
                n = first * samples
                place = at + b * size + n * step
                own, with_x = products_of(grad + place, x + place, minimum(samples, many - n), step, size, means[u], W)
                total += f64(own)
                along += f64(with_x)
            totals[u * blocks + b] = T(total)
            alongs[u * blocks + b] = T(along * inverse)
            offset += total * f64(weights[b])
            slope += along * f64(weights[b])
        if wanted != 0:
            out = array_at(table, 5, T)
            count = f64(maximum(blocks * many * size, 1))
            slope *= inverse * inverse * inverse / count
            added = T(mean * slope - offset * inverse / count)
            for b in range(blocks):
                scale = T(inverse * f64(weights[b]))
                for n in range(many):
                    place = at + b * size + n * step
                    write_combined(out + place, grad + place, x + place, size, scale, T(-slope), added, W)


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
    batch, channels = input.shape[:2]
    names = ["input", "weight", "bias", "running_mean", "running_var", "training", "eps"]
    return _forward(names, input, weight, bias, 1, batch, channels, (channels,))


def group_norm(input: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int, eps: float) -> Any:
    """The plan of `_group_norm`."""
    batch, channels = input.shape[:2]
    if not fits(input, weight, bias) or channels % groups:
        return NotImplemented
    names = ["input", "weight", "bias", "groups", "eps"]
    return _forward(names, input, weight, bias, channels // groups, 1, groups, (batch, groups))


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
    batch, channels = input.shape[:2]
    names = ["grad", "input", "weight", "mean", "inverse", "running_mean", "running_var", "training", "eps", "needs"]
    return _backward(names, grad, input, weight, 1, batch, channels, (channels,), needs)


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
    batch, channels = input.shape[:2]
    if not fits(input, weight) or not alike(grad, input) or channels % groups:
        return NotImplemented
    if not mean.dtype == rstd.dtype == input.dtype or not mean.shape == rstd.shape == (batch, groups):
        return NotImplemented
    names = ["grad", "input", "weight", "groups", "mean", "inverse", "eps", "needs"]
    return _backward(names, grad, input, weight, channels // groups, 1, groups, (batch, channels), needs)


def fits(x: ndarray, *parameters: ndarray | None) -> bool:
    """Whether the kernels walk such an array, or a copy with its elements row by row."""
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


def _forward(
    names: list[str],
    x: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    blocks: int,
    many: int,
    units: int,
    statistics: tuple[int, ...],
) -> Plan:
    size, channels, dtype = math.prod(x.shape[2:]), x.shape[1], x.dtype
    kernel = normalize.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    length = min(blocks * size, STRETCH)
    layout = PLANES.pack(
        blocks=blocks, many=many, step=channels * size, size=size, units=units,
        samples=max(1, STRETCH // (blocks * size)), length=length,
    )  # fmt: skip
    results = [Memory(x.shape, dtype), Memory(statistics, dtype), Memory(statistics, dtype)]
    return NativeCall(
        kernel, math.prod(statistics), 4 * blocks * many * size * dtype.itemsize, layout, names,
        ["input", "ones" if weight is None else "weight", "zeros_" if bias is None else "bias"], results, ["eps"],
        constants={"ones": numpy.ones(channels, dtype), "zeros_": numpy.zeros(channels, dtype)},
        copied=not_row_major(input=x, weight=weight, bias=bias),
    ).plan()  # fmt: skip


def _backward(
    names: list[str],
    grad: ndarray,
    x: ndarray,
    weight: ndarray | None,
    blocks: int,
    many: int,
    units: int,
    sums: tuple[int, ...],
    needs: tuple[bool, bool, bool],
) -> Plan:
    """The gradients of `x`, weight and bias. The sums of `grad` and of its products, one for a plane, have the shape `sums`."""
    size, channels, dtype = math.prod(x.shape[2:]), x.shape[1], x.dtype
    kernel = normalize_backward.compiled(T=type_of(dtype), W=HOST.vector_bytes // dtype.itemsize)
    layout = GRADIENTS.pack(
        blocks=blocks, many=many, step=channels * size, size=size, units=units,
        samples=max(1, STRETCH // size), wanted=needs[0],
    )  # fmt: skip
    of_planes, of_channels, of_input = Memory(sums, dtype), Memory((channels,), dtype), Memory(x.shape, dtype)
    planes = NativeCall(
        kernel, math.prod(sums) // blocks, 5 * blocks * many * size * dtype.itemsize, layout, names,
        ["grad", "input", "ones" if weight is None else "weight", "mean", "inverse"],
        [of_input if needs[0] else None, of_planes, of_planes],
        constants={"ones": numpy.ones(channels, dtype)}, copied=not_row_major(grad=grad, input=x, weight=weight),
    ).plan()  # fmt: skip
    if len(sums) == 1 and needs[1] and needs[2]:
        return planes
    samples = tuple(range(len(sums) - 1))

    def into(out: Sequence[ndarray | None], *arguments: Any) -> None:
        along, total = of_planes.empty(), of_planes.empty()
        planes.into((out[0], along, total), *arguments)
        for target, found in ((out[1], along), (out[2], total)):
            if target is not None:
                numpy.add.reduce(found, samples, None, target)  # type: ignore[call-overload]

    def run(*arguments: Any) -> Any:  # faster than to allocate and write into that
        to_input, along, total = planes.run(*arguments)
        return (
            to_input,
            numpy.add.reduce(along, samples) if needs[1] else None,
            numpy.add.reduce(total, samples) if needs[2] else None,
        )

    wanted = zip((of_input, of_channels, of_channels), needs, strict=True)
    return Plan([item if needed else None for item, needed in wanted], run=run, into=into)
