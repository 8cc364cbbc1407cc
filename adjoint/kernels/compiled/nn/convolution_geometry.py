"""The geometry of a convolution: its input in blocked layout, the positions of its output, and tables between them.

Rows of an image are packed with a little padding between them, so a whole image is one long row. The input for a tap of
the kernel is then the same row, shifted by the same number of elements for all positions. Vectors run along this row
regardless of the ends of image rows. Values that are computed between rows are not written to the result. With a
stride, the input is divided into phases, which are its positions modulo the stride. A tap uses one phase. The gradient
of the input has phases of its output instead, each of which has its own taps.

There are always three spatial dimensions. Missing dimensions come first and have length 1.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass

import numpy
from numpy import ndarray

from ...._runtime.first_use import computed_once

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """A convolution along one dimension.

    Position `i` of output phase `r` is element `i * spread + r` of the target. Its tap `(t, phase, shift)` meets the
    source at `origin + phases[phase] + (i + shift) * step`.
    """

    source: int
    target: int
    places: int
    spread: int
    step: int
    origin: int
    phases: Sizes
    taps: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def reach(self) -> int:
        """The distance that the taps of a position reach beyond it."""
        return max((shift for taps in self.taps for _, _, shift in taps), default=0)


Axes = tuple[Axis, Axis, Axis]


@functools.lru_cache(512)
def forward_axis(size: int, kernel: int, stride: int, padding: int, dilation: int, output: int) -> Axis:
    """Return the axis of the convolution itself, from the input to the output."""
    phases = sorted({t * dilation % stride for t in range(kernel)})
    taps = [(t, phases.index(t * dilation % stride), t * dilation // stride) for t in range(kernel)]
    return Axis(size, output, output, 1, stride, -padding, tuple(phases), (tuple(taps),))


@functools.lru_cache(512)
def input_axis(size: int, kernel: int, stride: int, padding: int, dilation: int, output: int) -> Axis:
    """Return the axis of the transposed convolution, from the gradient of the output to the gradient of the input."""
    met = [
        [
            (t, (phase + padding - t * dilation) // stride)
            for t in range(kernel)
            if not (phase + padding - t * dilation) % stride
        ]
        for phase in range(stride)
    ]
    first = min((shift for taps in met for _, shift in taps), default=0)
    taps = tuple(tuple((t, 0, shift - first) for t, shift in each) for each in met)
    return Axis(output, size, -(-size // stride), stride, 1, first, (0,), taps)


@functools.lru_cache(512)
def disjoint(axis: Axis) -> Axis:
    """Return the same axis with a phase for each distance of a tap, for rows without padding between them."""
    met = sorted({axis.phases[phase] + shift * axis.step for taps in axis.taps for _, phase, shift in taps})
    taps = tuple(
        tuple((t, met.index(axis.phases[phase] + shift * axis.step), 0) for t, phase, shift in taps)
        for taps in axis.taps
    )
    return dataclasses.replace(axis, phases=tuple(met), taps=taps)


class Geometry:
    """The blocked layout of a convolution: (channels, phases, planes, rows, samples, columns)."""

    def __init__(self, axes: Axes, channels: int, samples: int, block: Sizes, width: int) -> None:
        self.axes, self.block, self.samples, self.width = axes, block, samples, width
        last = axes[2]
        depth, height = (places + axis.reach for places, axis in zip(block[:2], axes[:2], strict=True))
        shared = _shared(axes[1], width) if depth > 1 and block[1] == axes[1].places else 0
        height -= shared
        self.pitch = block[2] + last.reach - (_shared(last, width) if block[2] == last.places else 0)
        self.row_pitch = samples * self.pitch
        self.grid = (depth, height)
        self.phases = list(itertools.product(*(axis.phases for axis in axes)))
        self.phase_pitch = depth * height * self.row_pitch
        self.channel_pitch = spaced(len(self.phases) * self.phase_pitch, width)
        self.spreads = math.prod(axis.spread for axis in axes)
        span = ((block[0] - 1) * height + block[1]) * self.row_pitch - self.pitch + block[2]
        self.vectors = -(-span // width)
        """The number of vectors for the positions of a block."""
        self.slack = 4 * width + shared * self.row_pitch
        self.packed_size = channels * self.channel_pitch + self.slack

    def taps(self, phase: int) -> tuple[ndarray, ndarray]:
        """Return the taps of an output phase: the elements of the kernel, and their distances from a position."""
        elements, offsets = [], []
        kernel = [sum(map(len, axis.taps)) for axis in self.axes]
        for d, h, w in itertools.product(*(a.taps[p] for a, p in zip(self.axes, self._phase(phase), strict=True))):
            elements.append((d[0] * kernel[1] + h[0]) * kernel[2] + w[0])
            number = (d[1] * len(self.axes[1].phases) + h[1]) * len(self.axes[2].phases) + w[1]
            offsets.append(number * self.phase_pitch + (d[2] * self.grid[1] + h[2]) * self.row_pitch + w[2])
        return numpy.array(elements, numpy.int64), numpy.array(offsets, numpy.int64)

    def _phase(self, phase: int) -> Sizes:
        _, height, width = (axis.spread for axis in self.axes)
        return phase // (height * width), phase // width % height, phase % width

    def offsets(self, phase: int, channels: int, channel_pitch: int, tile: int = 1) -> ndarray:
        """Return the distances of the taps of all channels from a position, padded to a multiple of `tile`."""
        _, offsets = self.taps(phase)
        table = (numpy.arange(channels)[:, None] * channel_pitch + offsets).reshape(-1)
        return numpy.pad(table, (0, -len(table) % tile), "edge") if len(table) else table

    def vectors_along(self, sizes: Sizes, strides: Sizes, whole: bool) -> Vectors:
        """Return the vectors of positions of a block: their starts, and the lanes that belong to a result with their positions.

        `sizes`: the numbers of samples, planes, rows and columns of this block in the result. `strides`: the strides of
        the result. Vectors continue beyond the ends of rows, or end with rows if `whole`.
        """
        samples, planes, rows, columns = sizes
        width = self.width
        z, y, n = (each.reshape(-1, 1) for each in numpy.indices((planes, rows, samples)))
        first = ((z * self.grid[1] + y) * self.samples + n) * self.pitch
        offset = n * strides[0] + z * strides[2] + y * strides[3]
        if whole:
            column = numpy.arange(0, columns, width)
            if columns > width:  # the last one begins earlier and computes some numbers a second time
                column = numpy.minimum(column, columns - width)
            starts = (first + column).reshape(-1)
            lengths = numpy.broadcast_to(numpy.minimum(columns - column, width), (len(first), len(column))).reshape(-1)
            pieces = numpy.stack([0 * lengths, lengths, (offset + column).reshape(-1)], 1)
            return Vectors(starts, numpy.arange(len(starts) + 1), pieces)
        count = -(-(int(first[-1, 0]) + columns) // width)
        # The maximum number of vectors over which rows extend.
        turns = numpy.arange((columns + width - 2) // width + 1)
        starts = numpy.maximum(first, (first // width + turns) * width)
        stops = numpy.minimum((starts // width + 1) * width, first + columns)
        places = offset - first + starts // width * width
        found = starts < stops
        starts, lengths, places = starts[found], (stops - starts)[found], places[found]
        index = numpy.searchsorted(starts, numpy.arange(count + 1) * width)
        lanes = starts % width
        return Vectors(numpy.arange(count) * width, index, numpy.stack([lanes, lanes + lengths, places], 1))


@dataclass(frozen=True)
class Vectors:
    """The starts of vectors, the indices of their first pieces, and the pieces: first lane, end, and place of lane 0."""

    starts: ndarray
    index: ndarray
    pieces: ndarray

    def tiles(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the numbers of whole tiles and of remaining vectors, which form a tile if that is faster."""
        tiles, left = divmod(len(self.starts), columns)
        return (tiles, left) if left * single_time(rows) <= rows * columns else (tiles + 1, 0)

    def filled(self, count: int) -> Vectors:
        """Return at least `count` vectors. Additional vectors repeat the last vector without pieces."""
        more = max(count - len(self.starts), 0)
        return Vectors(numpy.pad(self.starts, (0, more), "edge"), numpy.pad(self.index, (0, more), "edge"), self.pieces)


def single_time(rows: int) -> int:
    """Return the time of a tap for one vector and `rows` channels, in products of vectors, each waiting for the last."""
    return max(rows + 1, 4)


def spaced(size: int, width: int) -> int:
    """Return a distance of at least `size` between channels that prevents conflicts in the cache."""
    vectors = -(-size // width)
    return (vectors + 1 - vectors % 2) * width


def _shared(axis: Axis, width: int) -> int:
    """Return the number of zeros that the end of a row may share with the beginning of the next row."""
    shared = min(axis.reach, width)
    for phase in axis.phases:
        first = axis.origin + phase
        before = -(first // axis.step)
        content = -((first - axis.source) // axis.step)
        shared = min(shared, before, axis.places + axis.reach - content)
    return max(shared, 0)


@dataclass(frozen=True)
class Block:
    """A part of the work: samples, groups, and, for each dimension, the first position and the position after the last."""

    sample: int
    samples: int
    group: int
    groups: int
    first: Sizes
    after: Sizes

    @computed_once
    def sizes(self) -> Sizes:
        """Return the numbers of samples, groups and positions."""
        return (self.samples, self.groups, *(stop - start for start, stop in zip(self.first, self.after, strict=True)))


def cut(
    axes: Axes, batch: int, groups: int, group_bytes: int, block_bytes: int, wanted: int, threads: int, single: bool
) -> list[Block]:
    """Return blocks of about `block_bytes`.

    If the work can be divided into enough blocks, there are at least `wanted` blocks, and each thread gets the same
    number.

    They consist of several samples (unless each must be `single`), of groups of one sample, or of positions of one
    group along its first dimension. `group_bytes`: the packed memory of one group of one sample. No block is larger
    than the first block.
    """
    places = tuple(axis.places for axis in axes)
    origin = (0, 0, 0)
    sample_bytes = groups * group_bytes
    if batch >= wanted and sample_bytes <= block_bytes:
        each = 1 if single else -(-batch // max(wanted, -(-batch * sample_bytes // block_bytes)))
        count = batch if single else min(batch, _multiple(-(-batch // each), threads))
        return [Block(n, after - n, 0, groups, origin, places) for n, after in divided(batch, count)]
    parts = max(-(-sample_bytes // block_bytes), -(-wanted // batch))
    if parts <= groups:
        return [Block(n, 1, g, after - g, origin, places) for n in range(batch) for g, after in divided(groups, parts)]
    dimension = next((number for number, axis in enumerate(axes) if axis.places > 1), 2)
    parts = min(_multiple(-(-parts // groups), threads // math.gcd(batch * groups, threads)), places[dimension])
    before, behind = places[:dimension], places[dimension + 1 :]
    zeros = (0,) * len(before), (0,) * len(behind)
    return [
        Block(n, 1, g, 1, (*zeros[0], start, *zeros[1]), (*before, after, *behind))
        for n, g, (start, after) in itertools.product(range(batch), range(groups), divided(places[dimension], parts))
    ]


def divided(count: int, parts: int) -> list[tuple[int, int]]:
    """Return ranges that together are `range(count)`, of almost equal lengths. None is longer than the first."""
    edges = [-(-part * count // parts) for part in range(parts + 1)]
    return list(itertools.pairwise(edges))


def _multiple(number: int, of: int) -> int:
    """Return the smallest multiple that is not less than this number."""
    return -(-number // of) * of
