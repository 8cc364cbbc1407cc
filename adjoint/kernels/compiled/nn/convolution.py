"""Convolutions compiled: the input is packed in blocks that stay in cache, patches are never held.

The forms of `kernels.nn.convolution`, which says what their arguments are.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import address, type_of
from ...runtime.floating import widen
from ...runtime.parallel import get_num_threads, parallel_rows, scratch
from . import convolution_kernels as kernels
from .convolution_geometry import Axis, Blocks, Geometry, cut, forward_axis, input_axis, spaced

Sizes = tuple[int, ...]
Axes = tuple[Axis, Axis, Axis]

_BYTES_PER_PRODUCT = 1 / 16
"""Work in bytes of memory that take as long as one multiplication, for deciding on threads."""


class _Tiles:
    """Register tiles of a type: how many output channels and vectors."""

    def __init__(self, dtype: numpy.dtype[Any], rows: int) -> None:
        self.type = type_of(dtype)
        self.width = HOST.vector_bytes // dtype.itemsize
        many = HOST.vector_bytes == 64  # AVX-512 has twice as many registers
        choices = [(8, 3), (6, 4), (4, 6), (1, 8)] if many else [(4, 3), (6, 2), (1, 6)]
        self.rows, self.columns = min(choices, key=lambda tile: (-(-rows // tile[0]) * tile[0] * (1 + 0.4 * (tile[0] == 1)), -tile[0]))

    @property
    def sizes(self) -> dict[str, Any]:
        """The static parameters of the kernels of tiles."""
        return {"T": self.type, "W": self.width, "ROWS": self.rows, "COLUMNS": self.columns}


@functools.lru_cache(64)
def _tiles(dtype: numpy.dtype[Any], rows: int) -> _Tiles:
    return _Tiles(dtype, rows)


class _Plan:
    """All that a convolution of given sizes needs to know besides its arrays."""

    def __init__(
        self, axes: Axes, batch: int, groups: int, ins: int, outs: int, dtype: numpy.dtype[Any], threads: int, gradient: bool
    ) -> None:
        self.axes, self.groups, self.ins, self.outs = axes, groups, ins, outs
        self.tiles = tiles = _tiles(dtype, outs)
        width, rows, columns = tiles.width, tiles.rows, tiles.columns
        taps = math.prod(sum(map(len, axis.taps)) for axis in axes)
        self.products = groups * ins * outs * taps * math.prod(axis.places for axis in axes)
        whole = Geometry(axes, groups * ins, 1, tuple(axis.places for axis in axes), width)
        places = whole.spreads * groups * outs * whole.span
        sample_bytes = (groups * ins * whole.channel_pitch + places) * dtype.itemsize
        wanted = 1 if self.products * batch < 1 << 22 or threads == 1 else 4 * threads
        self.blocks: Blocks = cut(axes, batch, sample_bytes, wanted)
        block = [axis.places for axis in axes]
        block[self.blocks.dimension] = self.blocks.places
        self.geometry = geometry = Geometry(axes, groups * ins, self.blocks.samples, tuple(block), width)
        self.starts = geometry.starts(columns, width)
        self.vectors = len(self.starts) if not gradient else geometry.samples * geometry.vectors
        self.out_pitch = spaced(len(self.starts) * width, width)
        self.phase_pitch = (groups * outs + rows) * self.out_pitch
        self.taps = [geometry.taps(phase)[0] for phase in range(geometry.spreads)]
        self.offsets = [geometry.offsets(phase, ins, columns) for phase in range(geometry.spreads)]
        self.group_pitch = ins * geometry.channel_pitch

    def spot(self, number: int, batch: int) -> tuple[int, int, list[int], list[int]]:
        """Of a block of the work: first sample, how many, first place and the place after the last in each dimension."""
        blocks = self.blocks
        sample, part = (number * blocks.samples, 0) if blocks.parts == 1 else divmod(number, blocks.parts)
        first, after = [0, 0, 0], [axis.places for axis in self.axes]
        first[blocks.dimension] = part * blocks.places
        after[blocks.dimension] = min(first[blocks.dimension] + blocks.places, after[blocks.dimension])
        return sample, min(blocks.samples, batch - sample), first, after


@functools.lru_cache(128)
def _plan(
    axes: Axes, batch: int, groups: int, ins: int, outs: int, dtype: numpy.dtype[Any], threads: int, gradient: bool = False
) -> _Plan:
    return _Plan(axes, batch, groups, ins, outs, dtype, threads, gradient)


def _axes(
    make: Any, input: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, output: Sizes
) -> Axes:
    axes = [make(1, 1, 1, 0, 1, 1)] * (3 - len(input))
    axes += [make(*sizes) for sizes in zip(input, kernel, stride, padding, dilation, output, strict=True)]
    return tuple(axes)  # type: ignore[return-value]


def _strides(array: ndarray) -> list[int]:
    """Those of samples, channels, planes and rows, in elements."""
    steps = [step // array.itemsize for step in array.strides]
    return [*steps[:2], *[0] * (5 - array.ndim), *steps[2:-1]]


def _in_rows(array: ndarray) -> ndarray:
    """The array, with rows that lie in one piece."""
    return array if array.strides[-1] == array.itemsize and array.dtype.isnative else numpy.ascontiguousarray(array)


def _pack(plan: _Plan, out: ndarray, x: ndarray, strides: list[int], sample: int, samples: int, first: list[int]) -> None:
    geometry, axes = plan.geometry, plan.axes
    step = axes[2].step
    kernels.pack.compiled(T=plan.tiles.type, W=plan.tiles.width, STEP=step if step < 3 else 0)(
        address(out), address(x) + sample * x.strides[0], address(geometry.phase_table), len(geometry.phases),
        samples, plan.groups * plan.ins, *strides,
        *(axis.origin + place * axis.step for axis, place in zip(axes, first, strict=True)),
        *(axis.source for axis in axes), *(axis.step for axis in axes),
        *geometry.grid, geometry.pitch, geometry.sample_pitch, geometry.channel_pitch,
    )  # fmt: skip


def _weights(plan: _Plan, weight: ndarray, strides: tuple[int, int, int]) -> list[ndarray]:
    """The weights of each output phase, blocked for the tiles."""
    rows = plan.tiles.rows
    pack = kernels.pack_weights.compiled(T=plan.tiles.type, ROWS=rows)
    packed = []
    for taps in plan.taps:
        blocked = numpy.empty(plan.groups * -(-plan.outs // rows) * rows * plan.ins * len(taps), weight.dtype)
        pack(
            address(blocked), address(weight), address(taps), len(taps), plan.groups, plan.outs, plan.ins, *strides
        )
        packed.append(blocked)
    return packed


def _convolve(
    plan: _Plan, x: ndarray, weight: ndarray, strides: tuple[int, int, int], bias: ndarray | None, result: ndarray
) -> None:
    """Write the sums over taps and input channels, plus `bias`, to `result`."""
    tiles, geometry, batch = plan.tiles, plan.geometry, len(x)
    weights = _weights(plan, weight, strides)
    added = numpy.zeros(plan.groups * plan.outs + tiles.rows, x.dtype)
    if bias is not None:
        added[: len(bias)] = bias
    spreads = [axis.spread for axis in plan.axes]
    multiply = kernels.multiply.compiled(**tiles.sizes)
    unpack = kernels.unpack.compiled(T=tiles.type, W=tiles.width, SPREAD=spreads[2] if spreads[2] < 3 else 0)
    source, target = _strides(x), _strides(result)

    def work(start: int, stop: int) -> None:
        packed = scratch("packed", (geometry.packed_size,), x.dtype)
        sums = scratch("sums", (geometry.spreads * plan.phase_pitch + 2 * tiles.width,), x.dtype)
        for number in range(start, stop):
            sample, samples, first, after = plan.spot(number, batch)
            _pack(plan, packed, x, source, sample, samples, first)
            vectors = plan.vectors if samples == geometry.samples else samples * geometry.vectors
            for phase, blocked in enumerate(weights):
                multiply(
                    address(sums) + phase * plan.phase_pitch * x.itemsize, address(packed), address(blocked), address(added),
                    address(plan.offsets[phase]), address(plan.starts), plan.ins * len(plan.taps[phase]), vectors,
                    plan.groups, plan.outs, plan.group_pitch, plan.out_pitch,
                )  # fmt: skip
            begin = [place * spread for place, spread in zip(first, spreads, strict=True)]
            end = [
                min(place * spread, axis.target)
                for place, spread, axis in zip(after, spreads, plan.axes, strict=True)
            ]
            to = sample * target[0] + begin[0] * target[2] + begin[1] * target[3] + begin[2]
            unpack(
                address(result) + to * x.itemsize, address(sums), samples, plan.groups * plan.outs, *target,
                *(stop - start for start, stop in zip(begin, end, strict=True)), *spreads,
                geometry.grid[1], geometry.pitch, geometry.span, plan.out_pitch, plan.phase_pitch,
            )  # fmt: skip

    count = plan.blocks.count
    parallel_rows(work, count, int(plan.products * batch * _BYTES_PER_PRODUCT) // count + 1, tile_rows=1)


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
    wide, kernel = _in_rows(widen(input)), numpy.ascontiguousarray(widen(weight))
    if not _fits(wide, kernel):
        return NotImplemented
    sizes = tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    )
    axes = _axes(forward_axis, input.shape[2:], weight.shape[2:], stride, padding, dilation, sizes)
    outs, ins, taps = len(weight) // groups, weight.shape[1], math.prod(weight.shape[2:])
    plan = _plan(axes, len(input), groups, ins, outs, wide.dtype, get_num_threads())
    result = numpy.empty((len(input), len(weight), *sizes), wide.dtype)
    added = None if bias is None else widen(bias)
    _convolve(plan, wide, kernel, (outs * ins * taps, ins * taps, taps), added, result)
    return result.astype(input.dtype, copy=False)


def _fits(*arrays: ndarray) -> bool:
    first = arrays[0]
    return (
        first.dtype.char in "fd"
        and first.ndim <= 5
        and all(array.dtype == first.dtype and array.size for array in arrays)
    )


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
    wide, kernel = _in_rows(widen(input)), numpy.ascontiguousarray(widen(weight))
    if not _fits(wide, kernel) or 0 in output_shape:
        return NotImplemented
    axes = _axes(input_axis, output_shape[2:], weight.shape[2:], stride, padding, dilation, input.shape[2:])
    ins, outs, taps = len(weight) // groups, weight.shape[1], math.prod(weight.shape[2:])
    plan = _plan(axes, len(input), groups, ins, outs, wide.dtype, get_num_threads())
    result = numpy.empty(output_shape, wide.dtype)
    added = None if bias is None else widen(bias)
    _convolve(plan, wide, kernel, (ins * outs * taps, taps, outs * taps), added, result)
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
    wide, x = _in_rows(widen(grad)), _in_rows(widen(input))
    if not _fits(wide, x) or 0 in weight_shape:
        return NotImplemented
    axes = _axes(forward_axis, input.shape[2:], weight_shape[2:], stride, padding, dilation, grad.shape[2:])
    outs, ins = weight_shape[0] // groups, weight_shape[1]
    batch, threads = len(x), get_num_threads()
    plan = _plan(axes, batch, groups, ins, outs, x.dtype, threads, True)
    tiles, geometry = plan.tiles, plan.geometry
    correlate = kernels.correlate.compiled(**tiles.sizes)
    deal = kernels.pack.compiled(T=tiles.type, W=tiles.width, STEP=1)
    source, given = _strides(x), _strides(wide)
    single = numpy.zeros(3, numpy.int64)
    slabs = min(plan.blocks.count, 2 * threads) if threads > 1 else 1
    totals = numpy.zeros((slabs, math.prod(weight_shape)), x.dtype)
    each = -(-plan.blocks.count // slabs)
    size = (groups * outs + tiles.rows) * plan.out_pitch + geometry.grid[1] * geometry.pitch + 4 * tiles.width

    def work(start: int, stop: int) -> None:
        packed = scratch("packed", (geometry.packed_size,), x.dtype)
        gradients = scratch("sums", (size,), x.dtype)
        for number in range(start * each, min(stop * each, plan.blocks.count)):
            sample, samples, first, after = plan.spot(number, batch)
            _pack(plan, packed, x, source, sample, samples, first)
            deal(
                address(gradients), address(wide) + sample * wide.strides[0], address(single), 1,
                samples, groups * outs, *given, *first, *after, 1, 1, 1,
                plan.geometry.block[0], geometry.grid[1] if axes[0].places > 1 else geometry.block[1],
                geometry.pitch, geometry.span, plan.out_pitch,
            )  # fmt: skip
            correlate(
                address(totals) + start * totals.strides[0], address(packed), address(gradients),
                address(plan.offsets[0]), address(plan.starts), ins * len(plan.taps[0]), samples * geometry.vectors,
                groups, outs, plan.group_pitch, plan.out_pitch,
            )  # fmt: skip

    parallel_rows(work, slabs, int(plan.products * batch * _BYTES_PER_PRODUCT) // slabs + 1, tile_rows=1)
    total = numpy.add.reduce(totals, 0) if slabs > 1 else totals[0]
    if not numpy.isfinite(total).all():
        return NotImplemented  # an infinity met the zeros between rows
    return total.reshape(weight_shape).astype(grad.dtype, copy=False)
