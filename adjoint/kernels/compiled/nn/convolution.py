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

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import address, type_of
from ....codegen.llvm.launch import PARALLEL_BYTES
from ....first_use import computed_once
from ...runtime.floating import widen
from ...runtime.parallel import get_num_threads, parallel_rows, scratch
from . import convolution_kernels as kernels
from .convolution_geometry import Axes, Axis, Block, Geometry, cut, forward_axis, input_axis, spaced

Sizes = tuple[int, ...]

_BYTES_PER_PRODUCT = 1 / 16
"""Work in bytes of memory that take as long as one multiplication, for deciding on threads."""

_FIRST_CACHE = 1 << 15
"""How many bytes of gradients stay in a core's first-level cache."""

_SECOND_CACHE = 1 << 19
"""More bytes of weights do not stay in a core's second-level cache beside the input."""


class _Table:
    """Numbers that a kernel reads: their address, and the array that keeps them."""

    __slots__ = ("address", "numbers")

    def __init__(self, numbers: Any) -> None:
        self.numbers = numpy.array(numbers, numpy.int64)
        self.address = address(self.numbers)


def _tile(rows: int, choices: list[tuple[int, int]]) -> tuple[int, int]:
    """The register tile, channels times vectors or taps, that takes least time for `rows` channels; the first one of equals.

    A tile of one channel waits for memory half of the time.
    """
    return min(choices, key=lambda tile: -(-rows // tile[0]) * max(tile[0], 2))


class _Part:
    """What blocks of one size have in common: where tiles of their places belong in the result."""

    def __init__(self, plan: _Plan, sizes: Sizes) -> None:
        geometry = plan.geometry
        samples, _, rows, columns = sizes
        strides, channel_stride = plan.result_strides, plan.result_strides[1]
        if plan.phased:
            channel_stride = math.prod(sizes)
            strides = (columns, 0, rows * samples * columns, samples * columns)
        tiles, pieces = geometry.pieces(plan.tile[1] * plan.width, sizes, strides)
        self.pieces = _Table(pieces)
        self.sizes = [
            _Table([tiles, depth, plan.groups, plan.outs, plan.group_pitch, channel_stride, plan.weights_first])
            for depth in plan.depths
        ]
        self.phase_pitch = plan.channels * channel_stride
        self.layout = (rows, columns, channel_stride, self.phase_pitch)
        source = plan.ins * plan.axes[2].source
        self.in_place = _Table(
            [tiles, plan.depths[0], plan.groups, plan.outs, source, channel_stride, plan.weights_first]
        )


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
        self._packing: tuple[Sizes, _Table] | None = None
        self.channels = groups * outs
        self.type, self.width = type_of(dtype), HOST.vector_bytes // dtype.itemsize
        many = HOST.vector_bytes == 64  # AVX-512 has twice as many registers
        if gradient:
            self.tile = _tile(outs, [(4, 6), (1, 9)] if many else [(3, 3), (1, 5)])
        else:
            self.tile = _tile(outs, [(8, 3), (6, 4), (4, 6), (1, 8)] if many else [(4, 3), (6, 2), (1, 6)])
        width, columns = self.width, self.tile[1]
        places = tuple(axis.places for axis in axes)
        taps = math.prod(sum(map(len, axis.taps)) for axis in axes)
        products = batch * groups * ins * outs * taps * math.prod(places)
        whole = Geometry(axes, groups * ins, 1, places, width)
        sample_bytes = (whole.packed_size + whole.spreads * self.channels * whole.vectors * width) * dtype.itemsize
        wanted = 1 if products < 1 << 22 or threads == 1 else 4 * threads
        # Whether inputs are read where they are: the rows of a kernel of one element need no padding.
        self.direct = taps == 1 and _lie_as_packed(axes) and places[2] >= 1 << 8
        if gradient:
            self.direct = self.direct and places[2] % width == 0 and outs % self.tile[0] == 0
        self.blocks = cut(axes, batch, sample_bytes, wanted, self.direct)
        self.work = int(products * _BYTES_PER_PRODUCT) // len(self.blocks) + 1
        largest = self.blocks[0].sizes
        self.geometry = geometry = Geometry(axes, groups * ins, largest[0], largest[1:], width)
        self.gradient_pitch = spaced(geometry.vectors * width, width)
        self.phases = _Table(geometry.phases)
        self.taps = [_Table(geometry.taps(phase)[0]) for phase in range(geometry.spreads)]
        self.offsets = [
            _Table(geometry.offsets(phase, ins, geometry.channel_pitch, columns)) for phase in range(geometry.spreads)
        ]
        self.offsets_in_place = _Table(geometry.offsets(0, ins, axes[2].source, columns))
        self.depths = [ins * len(taps.numbers) for taps in self.taps]
        self.group_pitch = ins * geometry.channel_pitch
        self.weights_first = max(self.depths) * self.channels * dtype.itemsize > _SECOND_CACHE
        self.spreads = tuple(axis.spread for axis in axes)
        self.phased = geometry.spreads > 1
        self.source_sizes = tuple(axis.source for axis in axes)
        self.target_sizes = tuple(axis.target for axis in axes)
        steps = [math.prod(self.target_sizes[position:]) for position in range(3)]
        self.result_strides = (self.channels * steps[0], *steps)
        self.places = [
            block.sample * self.result_strides[0]
            + sum(
                place * spread * step
                for place, spread, step in zip(block.first, self.spreads, (*steps[1:], 1), strict=True)
            )
            for block in self.blocks
        ]
        self.pack = kernels.pack.compiled(T=self.type, W=width, STEP=axes[2].step if axes[2].step < 3 else 0)
        self.spots = [
            _Table([
                block.samples,
                *(axis.origin + place * axis.step for axis, place in zip(axes, block.first, strict=True)),
                *(axis.source for axis in axes),
            ])
            for block in self.blocks
        ]  # fmt: skip

    @computed_once
    def parts(self) -> dict[Sizes, _Part]:
        """By the sizes of blocks."""
        return {sizes: _Part(self, sizes) for sizes in {block.sizes for block in self.blocks}}

    def packing(self, strides: Sizes) -> _Table:
        """The sizes that `pack` is told, for an array with these strides."""
        known = self._packing  # read once: another thread may replace it
        if known is not None and known[0] == strides:
            return known[1]
        geometry = self.geometry
        table = _Table([
            len(geometry.phases), geometry.samples, self.groups * self.ins, *geometry.grid, geometry.pitch,
            geometry.channel_pitch, geometry.slack, *(axis.step for axis in self.axes), *strides,
        ])  # fmt: skip
        self._packing = strides, table
        return table


def _lie_as_packed(axes: Axes) -> bool:
    """Whether the places of the source are those of the target, in one row."""
    last = axes[2]
    return axes[0].target == axes[1].target == 1 and last.source == last.target == last.places and last.origin == 0


@functools.lru_cache(256)
def _plan(
    make: Callable[..., Axis],
    gradient: bool,
    shape: Sizes,
    kernel: Sizes,
    output: Sizes,
    geometry: tuple[Sizes, Sizes, Sizes, int],
    code: str,
    threads: int,
) -> _Plan:
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
    return _Plan((axes[0], axes[1], axes[2]), shape[0], groups, ins, outs, numpy.dtype(code), threads, gradient)


def _spatial(array: ndarray, sizes: Sizes) -> ndarray:
    """The array as (batch, channels, depth, height, width), with rows that lie in one piece."""
    array = array.reshape(*array.shape[:2], *sizes)
    return array if array.strides[-1] == array.itemsize else numpy.ascontiguousarray(array)


def _strides(array: ndarray) -> Sizes:
    """Those of samples, channels, planes and rows, in elements."""
    return tuple(step // array.itemsize for step in array.strides[:-1])


def _memory(name: str, size: int, dtype: numpy.dtype[Any]) -> tuple[int, ndarray]:
    """The address of scratch memory at the beginning of a cache line, and the array that keeps it."""
    array = scratch(name, (size + 8 * 64,), dtype)
    return -(-address(array) // 64) * 64, array


def _weights(plan: _Plan, weight: ndarray, strides: Sizes) -> list[ndarray]:
    """The weights of each output phase, blocked for the tiles."""
    rows, _ = plan.tile
    pack = kernels.pack_weights.compiled(T=plan.type, ROWS=rows)
    packed = []
    for taps in plan.taps:
        blocked = numpy.empty(plan.groups * -(-plan.outs // rows) * rows * plan.ins * len(taps.numbers), weight.dtype)
        pack(
            address(blocked),
            address(weight),
            taps.address,
            len(taps.numbers),
            plan.groups,
            plan.outs,
            plan.ins,
            *strides,
        )
        packed.append(blocked)
    return packed


def _convolve(plan: _Plan, x: ndarray, weight: ndarray, strides: Sizes, bias: ndarray | None, result: ndarray) -> None:
    """Write the sums over taps and input channels, plus `bias`, to `result`."""
    geometry, spreads, size = plan.geometry, plan.spreads, x.itemsize
    weights = _weights(plan, weight, strides)
    added = numpy.zeros(plan.channels + plan.tile[0], x.dtype)
    if bias is not None:
        added[: len(bias)] = bias
    multiply = kernels.multiply.compiled(T=plan.type, W=plan.width, ROWS=plan.tile[0], COLUMNS=plan.tile[1])
    packing = plan.packing(_strides(x))
    source, target, offset, factors = address(x), address(result), address(added), list(map(address, weights))
    direct = len(x) - 1 if plan.direct and x.flags.c_contiguous else 0  # so many samples may be read beyond their end

    def work(start: int, stop: int) -> None:
        packed, _kept = _memory("packed", geometry.packed_size, x.dtype)
        for number in range(start, stop):
            block = plan.blocks[number]
            part = plan.parts[block.sizes]
            sums = to = target + plan.places[number] * size
            if block.sample < direct:
                multiply(
                    to, source + (block.sample * plan.ins * plan.groups * plan.axes[2].source + block.first[2]) * size,
                    factors[0], offset, plan.offsets_in_place.address, part.pieces.address, part.in_place.address,
                )  # fmt: skip
                continue
            begin = source + block.sample * x.strides[0]
            plan.pack(packed, begin, plan.phases.address, plan.spots[number].address, packing.address)
            if plan.phased:
                sums, _kept_too = _memory("sums", geometry.spreads * part.phase_pitch, x.dtype)
            for phase, factor in enumerate(factors):
                multiply(
                    sums + phase * part.phase_pitch * size, packed, factor, offset,
                    plan.offsets[phase].address, part.pieces.address, part.sizes[phase].address,
                )  # fmt: skip
            if plan.phased:
                interleave_block(block, part, to, sums)

    def interleave_block(block: Block, part: _Part, to: int, sums: int) -> None:
        begin = [place * spread for place, spread in zip(block.first, spreads, strict=True)]
        end = [
            min(place * spread, axis.target)
            for place, spread, axis in zip(block.after, spreads, plan.axes, strict=True)
        ]
        sizes = [stop - start for start, stop in zip(begin, end, strict=True)]
        layout = _Table([block.samples, plan.channels, *sizes, *spreads, *plan.result_strides, *part.layout])
        kernels.interleave.compiled(T=plan.type, W=plan.width, SPREAD=spreads[2] if spreads[2] < 3 else 0)(
            to, sums, layout.address
        )

    parallel_rows(work, len(plan.blocks), plan.work, tile_rows=1, parallel_bytes=PARALLEL_BYTES)


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
    plan = _plan(forward_axis, False, input.shape, weight.shape, sizes, geometry, wide.dtype.char, get_num_threads())
    result = numpy.empty((len(input), len(weight), *sizes), wide.dtype)
    added = None if bias is None else widen(bias)
    taps = math.prod(weight.shape[2:])
    strides = plan.outs * plan.ins * taps, plan.ins * taps, taps
    _convolve(plan, _spatial(wide, plan.source_sizes), kernel, strides, added, result)
    return result.astype(input.dtype, copy=False)


def _fits(*arrays: ndarray) -> bool:
    first = arrays[0]
    return (
        first.dtype.char in "fd"
        and first.dtype.isnative
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
    wide, kernel = widen(input), numpy.ascontiguousarray(widen(weight))
    if not _fits(wide, kernel) or 0 in output_shape:
        return NotImplemented
    geometry = stride, padding, dilation, groups
    plan = _plan(
        input_axis, False, output_shape, weight.shape, input.shape[2:], geometry, wide.dtype.char, get_num_threads()
    )
    result = numpy.empty(output_shape, wide.dtype)
    added = None if bias is None else widen(bias)
    taps = math.prod(weight.shape[2:])
    strides = plan.ins * plan.outs * taps, taps, plan.outs * taps
    _convolve(plan, _spatial(wide, plan.source_sizes), kernel, strides, added, result)
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
    threads, shape = get_num_threads(), tuple(weight_shape)
    convolution = stride, padding, dilation, groups
    plan = _plan(forward_axis, True, input.shape, shape, grad.shape[2:], convolution, x.dtype.char, threads)
    wide, x = _spatial(wide, plan.target_sizes), _spatial(x, plan.source_sizes)
    geometry, (rows, columns) = plan.geometry, plan.tile
    stretch = _FIRST_CACHE // (rows * HOST.vector_bytes)
    correlate = kernels.correlate.compiled(T=plan.type, W=plan.width, ROWS=rows, COLUMNS=columns, STRETCH=stretch)
    deal = kernels.pack.compiled(T=plan.type, W=plan.width, STEP=1)
    packing, single = plan.packing(_strides(x)), _Table([0, 0, 0])
    grid = geometry.grid[1] if geometry.block[0] > 1 else geometry.block[1]
    dealing = _Table([
        1, geometry.samples, plan.channels, geometry.block[0], grid, geometry.pitch, plan.gradient_pitch, 4 * plan.width,
        1, 1, 1, *_strides(wide),
    ])  # fmt: skip
    sizes = _Table([geometry.vectors, plan.depths[0], groups, plan.outs, plan.group_pitch, plan.gradient_pitch])
    length = plan.target_sizes[2]
    direct = plan.direct and x.flags.c_contiguous and wide.flags.c_contiguous and plan.blocks[0].after[2] == length
    if direct:
        sizes = _Table([length // plan.width, plan.ins, groups, plan.outs, plan.ins * length, length])
    count = len(plan.blocks)
    slabs = min(count, 2 * threads) if threads > 1 else 1
    each = -(-count // slabs)
    totals = numpy.zeros((slabs, math.prod(weight_shape)), x.dtype)
    source, given, sums = address(x), address(wide), address(totals)
    size = (plan.channels + rows) * plan.gradient_pitch + geometry.grid[1] * geometry.row_pitch + 4 * plan.width

    def work(start: int, stop: int) -> None:
        packed, _kept = _memory("packed", 0 if direct else geometry.packed_size, x.dtype)
        gradients, _kept_too = _memory("sums", size, x.dtype)
        for slab in range(start, stop):
            for number in range(slab * each, min((slab + 1) * each, count)):
                block = plan.blocks[number]
                inputs, outputs = source + block.sample * x.strides[0], given + block.sample * wide.strides[0]
                if direct:
                    correlate(
                        sums + slab * totals.strides[0], inputs, outputs, plan.offsets_in_place.address, sizes.address
                    )
                    continue
                spot = _Table([block.samples, *block.first, *block.after])
                plan.pack(packed, inputs, plan.phases.address, plan.spots[number].address, packing.address)
                deal(gradients, outputs, single.address, spot.address, dealing.address)
                correlate(sums + slab * totals.strides[0], packed, gradients, plan.offsets[0].address, sizes.address)

    parallel_rows(work, slabs, plan.work * count // slabs, tile_rows=1, parallel_bytes=PARALLEL_BYTES)
    total = numpy.add.reduce(totals, 0) if slabs > 1 else totals[0]
    if not numpy.isfinite(total).all():
        return NotImplemented  # an infinity met the zeros between rows
    return total.reshape(weight_shape).astype(grad.dtype, copy=False)
