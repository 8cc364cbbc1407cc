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
from .convolution_geometry import Axes, Geometry, cut, forward_axis, input_axis, spaced

Sizes = tuple[int, ...]

_BYTES_PER_PRODUCT = 1 / 16
"""Work in bytes of memory that take as long as one multiplication, for deciding on threads."""

_FIRST_CACHE = 1 << 15
"""How many bytes of gradients stay in a core's first-level cache."""


def _tile(rows: int, choices: list[tuple[int, int]]) -> tuple[int, int]:
    """The register tile, channels times vectors or taps, that takes least time for `rows` channels; the first one of equals.

    A tile of one channel waits for memory half of the time.
    """
    return min(choices, key=lambda tile: -(-rows // tile[0]) * max(tile[0], 2))


class _Plan:
    """All that a convolution of given sizes needs to know besides its arrays."""

    def __init__(
        self,
        axes: Axes,
        batch: int,
        groups: int,
        ins: int,
        outs: int,
        dtype: numpy.dtype[Any],
        threads: int,
        gradient: bool,
    ) -> None:
        self.axes, self.groups, self.ins, self.outs = axes, groups, ins, outs
        self.batch, self.channels = batch, groups * outs
        self.type, self.width = type_of(dtype), HOST.vector_bytes // dtype.itemsize
        many = HOST.vector_bytes == 64  # AVX-512 has twice as many registers
        if gradient:
            self.tile = _tile(outs, [(4, 6), (1, 9)] if many else [(3, 3), (1, 5)])
        else:
            self.tile = _tile(outs, [(8, 3), (6, 4), (4, 6), (1, 8)] if many else [(4, 3), (6, 2), (1, 6)])
        width, (rows, columns) = self.width, self.tile
        places = tuple(axis.places for axis in axes)
        taps = math.prod(sum(map(len, axis.taps)) for axis in axes)
        products = batch * groups * ins * outs * taps * math.prod(places)
        whole = Geometry(axes, groups * ins, 1, places, width)
        sample_bytes = (whole.packed_size + whole.spreads * self.channels * whole.vectors * width) * dtype.itemsize
        wanted = 1 if products < 1 << 22 or threads == 1 else 4 * threads
        self.blocks = blocks = cut(axes, batch, sample_bytes, wanted)
        self.work = int(products * _BYTES_PER_PRODUCT) // blocks.count + 1
        block = tuple(blocks.places if number == blocks.dimension else length for number, length in enumerate(places))
        self.geometry = geometry = Geometry(axes, groups * ins, blocks.samples, block, width)
        spreads = range(geometry.spreads)
        self.out_pitch = spaced(-(-geometry.vectors // columns) * columns * width, width)
        self.phase_pitch = (self.channels + rows) * self.out_pitch
        self.taps = [geometry.taps(phase)[0] for phase in spreads]
        self.offsets = [geometry.offsets(phase, ins, columns) for phase in spreads]
        self.depths = [ins * len(taps) for taps in self.taps]
        self.group_pitch = ins * geometry.channel_pitch
        self.spreads = [axis.spread for axis in axes]
        self.pack = kernels.pack.compiled(T=self.type, W=width, STEP=axes[2].step if axes[2].step < 3 else 0)
        self.spots = [self._spot(number) for number in range(blocks.count)]

    def _spot(self, number: int) -> tuple[int, int, Sizes, Sizes]:
        """Of a block of the work: first sample, how many, first place and the place after the last in each dimension."""
        blocks = self.blocks
        sample, part = (number * blocks.samples, 0) if blocks.parts == 1 else divmod(number, blocks.parts)
        first, after = [0, 0, 0], [axis.places for axis in self.axes]
        first[blocks.dimension] = part * blocks.places
        after[blocks.dimension] = min(first[blocks.dimension] + blocks.places, after[blocks.dimension])
        return sample, min(blocks.samples, self.batch - sample), tuple(first), tuple(after)

    @functools.cached_property
    def origins(self) -> list[Sizes]:
        """Where in the source each block begins."""
        return [
            tuple(axis.origin + place * axis.step for axis, place in zip(self.axes, first, strict=True))
            for _, _, first, _ in self.spots
        ]

    def packing(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        """The arguments of `pack` that are the same for all blocks."""
        geometry = self.geometry
        return (
            *(axis.source for axis in self.axes), address(geometry.phase_table), len(geometry.phases), geometry.samples,
            self.groups * self.ins, *strides, *(axis.step for axis in self.axes), *geometry.grid, geometry.pitch,
            geometry.channel_pitch,
        )  # fmt: skip


@functools.lru_cache(128)
def _plan(
    axes: Axes,
    batch: int,
    groups: int,
    ins: int,
    outs: int,
    dtype: numpy.dtype[Any],
    threads: int,
    gradient: bool = False,
) -> _Plan:
    return _Plan(axes, batch, groups, ins, outs, dtype, threads, gradient)


def _axes(
    make: Any, input: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, output: Sizes
) -> Axes:
    axes = [make(1, 1, 1, 0, 1, 1)] * (3 - len(input))
    axes += [make(*sizes) for sizes in zip(input, kernel, stride, padding, dilation, output, strict=True)]
    return tuple(axes)  # type: ignore[return-value]


def _strides(array: ndarray) -> tuple[int, ...]:
    """Those of samples, channels, planes and rows, in elements."""
    steps = [step // array.itemsize for step in array.strides]
    return (*steps[:2], *[0] * (5 - array.ndim), *steps[2:-1])


def _in_rows(array: ndarray) -> ndarray:
    """The array, with rows that lie in one piece."""
    return array if array.strides[-1] == array.itemsize and array.dtype.isnative else numpy.ascontiguousarray(array)


def _memory(name: str, size: int, dtype: numpy.dtype[Any]) -> tuple[int, ndarray]:
    """The address of scratch memory at the beginning of a cache line, and the array that keeps it."""
    array = scratch(name, (size + 8 * 64,), dtype)
    return -(-address(array) // 64) * 64, array


def _weights(plan: _Plan, weight: ndarray, strides: tuple[int, int, int]) -> list[ndarray]:
    """The weights of each output phase, blocked for the tiles."""
    rows, _ = plan.tile
    pack = kernels.pack_weights.compiled(T=plan.type, ROWS=rows)
    packed = []
    for taps in plan.taps:
        blocked = numpy.empty(plan.groups * -(-plan.outs // rows) * rows * plan.ins * len(taps), weight.dtype)
        pack(address(blocked), address(weight), address(taps), len(taps), plan.groups, plan.outs, plan.ins, *strides)
        packed.append(blocked)
    return packed


def _convolve(
    plan: _Plan, x: ndarray, weight: ndarray, strides: tuple[int, int, int], bias: ndarray | None, result: ndarray
) -> None:
    """Write the sums over taps and input channels, plus `bias`, to `result`."""
    geometry, spreads, size = plan.geometry, plan.spreads, x.itemsize
    weights = _weights(plan, weight, strides)
    added = numpy.zeros(plan.channels + plan.tile[0], x.dtype)
    if bias is not None:
        added[: len(bias)] = bias
    multiply = kernels.multiply.compiled(T=plan.type, W=plan.width, ROWS=plan.tile[0], COLUMNS=plan.tile[1])
    unpack = kernels.unpack.compiled(T=plan.type, W=plan.width, SPREAD=spreads[2] if spreads[2] < 3 else 0)
    packing, target = plan.packing(_strides(x)), _strides(result)
    layout = (
        *spreads, geometry.grid[1], geometry.pitch, geometry.row_pitch, plan.out_pitch, plan.phase_pitch
    )  # fmt: skip

    def work(start: int, stop: int) -> None:
        packed, _kept = _memory("packed", geometry.packed_size, x.dtype)
        sums, _kept_too = _memory("sums", geometry.spreads * plan.phase_pitch, x.dtype)
        for number in range(start, stop):
            sample, samples, first, after = plan.spots[number]
            plan.pack(packed, address(x) + sample * x.strides[0], samples, *plan.origins[number], *packing)
            for phase, blocked in enumerate(weights):
                multiply(
                    sums + phase * plan.phase_pitch * size, packed, address(blocked), address(added),
                    address(plan.offsets[phase]), plan.depths[phase], geometry.vectors,
                    plan.groups, plan.outs, plan.group_pitch, plan.out_pitch,
                )  # fmt: skip
            begin = [place * spread for place, spread in zip(first, spreads, strict=True)]
            sizes = [
                min(place * spread, axis.target) - before
                for place, spread, axis, before in zip(after, spreads, plan.axes, begin, strict=True)
            ]
            to = sample * target[0] + begin[0] * target[2] + begin[1] * target[3] + begin[2]
            unpack(address(result) + to * size, sums, samples, plan.channels, *target, *sizes, *layout)

    parallel_rows(work, plan.blocks.count, plan.work, tile_rows=1)


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
    geometry, (rows, columns) = plan.geometry, plan.tile
    stretch = _FIRST_CACHE // (rows * HOST.vector_bytes)
    correlate = kernels.correlate.compiled(T=plan.type, W=plan.width, ROWS=rows, COLUMNS=columns, STRETCH=stretch)
    deal = kernels.pack.compiled(T=plan.type, W=plan.width, STEP=1)
    packing = plan.packing(_strides(x))
    single = numpy.zeros(3, numpy.int64)
    dealing = (
        address(single), 1, geometry.samples, groups * outs, *_strides(wide), 1, 1, 1,
        geometry.block[0], geometry.grid[1] if geometry.block[0] > 1 else geometry.block[1], geometry.pitch, plan.out_pitch,
    )  # fmt: skip
    count = plan.blocks.count
    slabs = min(count, 2 * threads) if threads > 1 else 1
    each = -(-count // slabs)
    totals = numpy.zeros((slabs, math.prod(weight_shape)), x.dtype)
    size = (groups * outs + rows) * plan.out_pitch + geometry.grid[1] * geometry.row_pitch

    def work(start: int, stop: int) -> None:
        packed, _kept = _memory("packed", geometry.packed_size, x.dtype)
        gradients, _kept_too = _memory("sums", size, x.dtype)
        for slab in range(start, stop):
            for number in range(slab * each, min((slab + 1) * each, count)):
                sample, samples, first, after = plan.spots[number]
                plan.pack(packed, address(x) + sample * x.strides[0], samples, *plan.origins[number], *packing)
                deal(gradients, address(wide) + sample * wide.strides[0], samples, *first, *after, *dealing)
                correlate(
                    address(totals) + slab * totals.strides[0], packed, gradients, address(plan.offsets[0]),
                    plan.depths[0], geometry.vectors, groups, outs, plan.group_pitch, plan.out_pitch,
                )  # fmt: skip

    parallel_rows(work, slabs, plan.work * count // slabs, tile_rows=1)
    total = numpy.add.reduce(totals, 0) if slabs > 1 else totals[0]
    if not numpy.isfinite(total).all():
        return NotImplemented  # an infinity met the zeros between rows
    return total.reshape(weight_shape).astype(grad.dtype, copy=False)
