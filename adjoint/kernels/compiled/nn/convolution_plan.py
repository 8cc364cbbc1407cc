"""The data of compiled convolutions that does not depend on their arrays: blocks of the work, and tables for the loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ....codegen.llvm.external import apart
from ....codegen.llvm.kernels import *
from ...memory.copying import contiguous
from ...runtime.costs import FIRST_CACHE, ON_ONE_THREAD, SECOND_CACHE
from .convolution_correlation import SUMS, accumulate, add_up, correlate
from .convolution_geometry import Axes, Block, Geometry, cut, disjoint, divided, single_time, spaced
from .convolution_kernels import BLOCK, PACKING, PART, PRODUCTS, convolve, interleave, multiply, pack, pack_weights

Sizes = tuple[int, ...]

_FOR_EACH_THREAD = ((4, 1.0), (2, 1.05), (1, 1.15))
"""The maximum number of blocks per thread, and the factor by which blocks take longer because threads wait for one another."""

_PACKING = 6
"""The time to pack a vector, in products of vectors."""


class Table:
    """Numbers that a kernel reads: their address and the array that keeps them alive."""

    __slots__ = ("address", "numbers")

    def __init__(self, numbers: Any) -> None:
        self.numbers = unchanged(numpy.array(numbers, numpy.int64))
        self.address = address(self.numbers)


class Work(NamedTuple):
    """A convolution, without the layout of its numbers."""

    axes: Axes
    batch: int
    groups: int
    ins: int
    outs: int
    itemsize: int
    threads: int

    @property
    def taps(self) -> int:
        """The number of elements of the kernel."""
        return math.prod(sum(map(len, axis.taps)) for axis in self.axes)

    @property
    def places(self) -> Sizes:
        """The number of positions of each output phase."""
        return tuple(axis.places for axis in self.axes)

    @property
    def products(self) -> int:
        """The number of multiplications."""
        return self.batch * self.groups * self.ins * self.outs * self.taps * math.prod(self.places)

    @property
    def width(self) -> int:
        """The number of numbers in a vector."""
        return HOST.vector_bytes // self.itemsize

    @property
    def in_place(self) -> bool:
        """Whether each row of the source can be read in place, because kernels of one element need no padding."""
        last = self.axes[2]
        one_row = self.axes[0].target == self.axes[1].target == 1
        same = last.source == last.target == last.places and last.origin == 0
        return self.taps == 1 and one_row and same and last.places >= 1 << 8

    def layouts(self, more: int) -> Iterator[tuple[Work, list[Block], float]]:
        """Return the ways to pack rows and cut blocks. Large blocks waste few lanes, but threads wait longer."""
        first, second, last = self.axes
        for work in (self, self._replace(axes=(first, second, disjoint(last)))) if last.reach else (self,):
            found = 0
            for each, cost in _FOR_EACH_THREAD:
                blocks = work.blocks(more, False, each)
                if len(blocks) != found:
                    found = len(blocks)
                    yield work, blocks, cost

    def blocks(self, more: int, single: bool, each: int = 4) -> list[Block]:
        """Return at least `each` parts of the work for a thread. A position needs `more` numbers of memory."""
        whole = Geometry(self.axes, self.ins, 1, self.places, self.width)
        group_bytes = (whole.packed_size + more * whole.vectors * self.width) * self.itemsize
        threads = 1 if self.products < 4 * ON_ONE_THREAD else self.threads
        wanted = 1 if threads == 1 else each * threads
        # Half of the second cache is for weights and results. A number of a group takes part in only a few products.
        block_bytes = SECOND_CACHE // 2 if self.groups == 1 else FIRST_CACHE
        return cut(self.axes, self.batch, self.groups, group_bytes, block_bytes, wanted, threads, single)

    def fastest(
        self, more: int, ways: Sequence[bool], time: Callable[[_Layout, bool, Sizes], float]
    ) -> tuple[Work, list[Block], bool]:
        """Return the layout, and the one of these `ways`, whose `time` for a position is least, if work is large."""
        if self.products < ON_ONE_THREAD:  # a comparison would take longer
            return self, self.blocks(more, False), False
        best: tuple[float, Work, list[Block], bool] = (math.inf, self, [], False)
        for choice, blocks, cost in self.layouts(more):
            layout = _Layout(choice, blocks)
            for way in ways:
                found = cost * choice.time(blocks, partial(time, layout, way))
                best = min(best, (found, choice, blocks, way), key=lambda each: each[0])
        return best[1:]

    def time(self, blocks: list[Block], times: Callable[[Sizes], float]) -> float:
        """Return the time per position of the thread with the most work, given the `times` of blocks of some sizes."""
        taken = {sizes: times(sizes) for sizes in {block.sizes for block in blocks}}
        threads = min(self.threads, len(blocks))
        shares = divided(len(blocks), threads)
        longest = max(sum(taken[block.sizes] for block in blocks[start:stop]) for start, stop in shares)
        return threads * longest / sum(math.prod(block.sizes) for block in blocks)

    def ranges(self, blocks: list[Block]) -> int:
        """Return the number of ranges into which the blocks are divided for threads."""
        return min(len(blocks), 4 * self.threads if self.threads > 1 else 1)


def _tile(rows: int, choices: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the first of the fastest register tiles for `rows` channels. Tiles of one channel wait for memory."""
    return min(choices, key=lambda tile: -(-rows // tile[0]) * max(tile[0], 2))


class Arrays:
    """The table entries for the arrays of a convolution."""

    in_place = False
    result_shape: Sizes

    def __init__(self, work: Work) -> None:
        self.work = work
        self.source_sizes = tuple(axis.source for axis in work.axes)
        self.target_sizes = tuple(axis.target for axis in work.axes)
        self.source_steps = Table(_row_major(work.groups * work.ins, self.source_sizes))
        self.target_steps = Table(_row_major(work.groups * work.outs, self.target_sizes))

    def _spatial(self, array: ndarray, sizes: Sizes, steps: Table) -> tuple[ndarray, Table]:
        """Return an array with contiguous rows (and planes, if read in place), and its strides."""
        if array.flags.c_contiguous:
            return array, steps
        array = array.reshape(*array.shape[:2], *sizes)
        step = array.itemsize
        if array.strides[4] == step and not (self.in_place and array.strides[1] != sizes[2] * step):
            return array, Table([stride // step for stride in array.strides[:-1]])
        return contiguous(array), steps

    def source(self, array: ndarray) -> tuple[ndarray, Table]:
        """Return the convolved array and its strides."""
        return self._spatial(array, self.source_sizes, self.source_steps)

    def target(self, array: ndarray) -> tuple[ndarray, Table]:
        """Return an array of the shape of the result, and its strides."""
        return self._spatial(array, self.target_sizes, self.target_steps)


class _Layout(Arrays):
    """The layout in which a convolution's source is packed, block by block."""

    def __init__(self, work: Work, blocks: list[Block]) -> None:
        super().__init__(work)
        self.blocks = blocks
        samples, groups, *places = blocks[0].sizes  # no other block is larger
        self.geometry = Geometry(work.axes, groups * work.ins, samples, tuple(places), work.width)
        self.ranges = work.ranges(blocks)

    @property
    def packed_vectors(self) -> int:
        """Return the number of vectors that are written to pack one channel of a block."""
        geometry = self.geometry
        rows = len(geometry.phases) * geometry.samples * math.prod(geometry.grid)
        return rows * -(-geometry.pitch // self.work.width)

    def packing(self, phases: Table) -> list[int]:
        """Return the sizes for `pack`."""
        geometry = self.geometry
        return PACKING.pack(
            phases=len(geometry.phases), samples=geometry.samples, grid=geometry.grid, pitch=geometry.pitch,
            channel_pitch=geometry.channel_pitch, slack=geometry.slack, step=[axis.step for axis in self.work.axes],
            table=phases.address,
        )  # fmt: skip

    def record(self, block: Block, place: int = 0, sizes: Sizes = (0, 0, 0), part: int = 0) -> list[int]:
        """Return the record of a block."""
        axes = self.work.axes
        start = [axis.origin + place * axis.step for axis, place in zip(axes, block.first, strict=True)]
        return _record(block, start, [axis.source for axis in axes], place, sizes, part)


class ProductPlan(_Layout):
    """The plan of a convolution or its transpose. `weight_strides`: of groups, output channels and input channels."""

    weight_strides: Sizes

    def __init__(self, work: Work, dtype: numpy.dtype[Any]) -> None:
        many = HOST.vector_bytes == 64  # AVX-512 has twice as many registers
        choices = [(8, 3), (6, 4), (4, 6), (1, 8)] if many else [(4, 3), (6, 2), (1, 6)]
        self.tile = rows, columns = _tile(work.outs, choices)
        self.spread = tuple(axis.spread for axis in work.axes)
        self.phased = math.prod(self.spread) > 1
        self.in_place = work.in_place and all(
            block.after[2] - block.first[2] >= work.width for block in work.blocks(0, True)
        )
        more = math.prod(self.spread) * work.outs if self.phased else 0
        found = (work, work.blocks(0, True), True) if self.in_place else work.fastest(more, (False, True), self._time)
        self.whole = found[2]
        super().__init__(*found[:2])
        work, geometry = self.work, self.geometry
        self.type, self.outs, self.ins, self.groups = type_of(dtype), work.outs, work.ins, work.groups
        self.channels = work.groups * work.outs
        self.pack = None if self.in_place else apart(pack, T=self.type, W=work.width, STEP=_small(work.axes[2].step))
        self.parts = {sizes: self._part(sizes) for sizes in {block.sizes for block in self.blocks}}
        channel_pitch = self.source_sizes[2] if self.in_place else geometry.channel_pitch
        self._offsets = [Table(geometry.offsets(phase, work.ins, channel_pitch)) for phase in range(geometry.spreads)]
        self._taps = [Table(geometry.taps(phase)[0]) for phase in range(geometry.spreads)]
        depths = [len(offsets.numbers) for offsets in self._offsets]
        padded = work.groups * -(-work.outs // rows) * rows
        begins = [padded * sum(depths[:phase]) for phase in range(len(depths))]
        self.weights_size = _lines(padded * sum(depths))
        self.products = Table([
            number
            for depth, begin, offsets in zip(depths, begins, self._offsets, strict=True)
            for number in (depth, begin, offsets.address)
        ])  # fmt: skip
        self.taps = Table([taps.address for taps in self._taps])
        self.records = Table([self._record(block) for block in self.blocks])
        self._phases = Table(geometry.phases)
        largest = self.parts[self.blocks[0].sizes]
        self.packed_size = 0 if self.in_place else _lines(geometry.packed_size + work.width)
        sums = geometry.spreads * int(largest.numbers[PART.places["phase_pitch"]]) + work.width if self.phased else 0
        self.scratch_pitch = self.packed_size + _lines(sums)
        weights_first = max(depths) * self.channels * dtype.itemsize > SECOND_CACHE
        self.sizes = Table(PRODUCTS.pack(
            blocks=len(self.blocks), ranges=self.ranges, pitch=self.scratch_pitch, packed_size=self.packed_size,
            ins=work.ins, outs=work.outs, group_pitch=work.ins * channel_pitch, phases=geometry.spreads,
            weights_first=weights_first, packing=self.packing(self._phases), result=[*self.result_strides, *self.spread],
        ))  # fmt: skip
        self.weight_blocks = padded // rows
        self.weight_block_bytes = sum(depths) * rows * dtype.itemsize
        self.nothing = unchanged(numpy.zeros(self.channels, dtype))
        moved = work.batch * (
            work.groups * work.ins * math.prod(self.source_sizes) + self.channels * math.prod(self.target_sizes)
        )
        self.range_bytes = (work.products // 4 + moved * dtype.itemsize) // self.ranges
        given = {"T": self.type, "W": work.width}
        spread = apart(interleave, **given, SPREAD=_small(self.spread[2])) if self.phased else None
        by_tiles = apart(multiply, **given, ROWS=rows, COLUMNS=columns)
        self.kernel = convolve.compiled(T=self.type, PACK=self.pack, MULTIPLY=by_tiles, INTERLEAVE=spread)
        self.weight_kernel = pack_weights.compiled(T=self.type, ROWS=rows)
        self.of_weights = self.products.numbers, self.taps.numbers, geometry.spreads, self.outs, self.ins
        self.constants = self.sizes.numbers, self.records.numbers, self.products.numbers

    def _time(self, layout: _Layout, whole: bool, sizes: Sizes) -> float:
        """Return the time that a block takes, in products of vectors."""
        work, (rows, columns) = layout.work, self.tile
        samples, groups, *places = sizes
        vectors = layout.geometry.vectors_along((samples, *places), (0, 0, 0, 0), whole)
        tiles, left = vectors.tiles(rows, columns)
        products = (tiles * rows * columns + left * single_time(rows)) * -(-work.outs // rows) * work.taps * work.ins
        storing = 2 * len(vectors.pieces) * work.outs * math.prod(self.spread)  # a piece takes two products
        return groups * (_PACKING * work.ins * layout.packed_vectors + products + storing)

    @property
    def result_strides(self) -> Sizes:
        """Return the strides of samples, channels, planes and rows."""
        return _row_major(self.channels, self.target_sizes)

    def _part(self, sizes: Sizes) -> Table:
        """Return the common data of blocks of one size: their vectors, and the positions of the vectors in the result."""
        samples, groups, planes, rows, columns = sizes
        strides, channel_stride = self.result_strides, self.result_strides[1]
        if self.phased:
            channel_stride = samples * planes * rows * columns
            strides = (columns, 0, rows * samples * columns, samples * columns)
        vectors = self.geometry.vectors_along((samples, planes, rows, columns), strides, self.whole)
        tiles, left = vectors.tiles(*self.tile)
        vectors = vectors.filled(tiles * self.tile[1])
        starts, index, pieces = Table(vectors.starts), Table(vectors.index), Table(vectors.pieces)
        phase_pitch = groups * self.outs * channel_stride
        part = Table(PART.pack(
            tiles=tiles, starts=starts.address, index=index.address, channel_stride=channel_stride,
            phase_pitch=phase_pitch, rows=rows, columns=columns, left=left, pieces=pieces.address,
        ))  # fmt: skip
        self._kept = (*getattr(self, "_kept", ()), starts, index, pieces)
        return part

    def _record(self, block: Block) -> list[int]:
        strides = self.result_strides
        begin = [place * spread for place, spread in zip(block.first, self.spread, strict=True)]
        end = [
            min(place * spread, size)
            for place, spread, size in zip(block.after, self.spread, self.target_sizes, strict=True)
        ]
        place = block.sample * strides[0] + block.group * self.outs * strides[1]
        place += sum(first * step for first, step in zip(begin, (*strides[2:], 1), strict=True))
        sizes = tuple([stop - start for start, stop in zip(begin, end, strict=True)])
        return self.record(block, place, sizes, self.parts[block.sizes].address)


class CorrelationPlan(_Layout):
    """The plan of the gradient of the weight, which is a sum over positions of gradients times inputs."""

    def __init__(self, work: Work, dtype: numpy.dtype[Any]) -> None:
        many = HOST.vector_bytes == 64
        self.tile = _tile(work.outs, [(4, 6), (1, 9)] if many else [(4, 3), (1, 5)])
        self.in_place = work.in_place and all(block.sizes[2:] == work.places for block in work.blocks(0, True))
        found = (work, work.blocks(0, True)) if self.in_place else work.fastest(work.outs, [False], self._time)[:2]
        super().__init__(*found)
        work, geometry, width = self.work, self.geometry, self.work.width
        self.type = type_of(dtype)
        self.pack = None if self.in_place else apart(pack, T=self.type, W=width, STEP=_small(work.axes[2].step))
        self._phases, self._no_phases = Table(geometry.phases), Table([0, 0, 0])
        self.pitches = (
            (self.source_sizes[2], self.target_sizes[2])
            if self.in_place
            else (geometry.channel_pitch, spaced(geometry.vectors * width, width))
        )
        vectors, tail = divmod(self.target_sizes[2], width) if self.in_place else (geometry.vectors, 0)
        self.offsets = Table(geometry.offsets(0, work.ins, self.pitches[0], self.tile[1]))
        samples, groups, *places = self.blocks[0].sizes
        rows_between = geometry.grid[1] if places[0] > 1 else places[1]
        self.dealing = Table(PACKING.pack(
            phases=1, samples=samples, grid=(places[0], rows_between), pitch=geometry.pitch,
            channel_pitch=self.pitches[1], slack=4 * width, step=(1, 1, 1), table=self._no_phases.address,
        ))  # fmt: skip
        of_gradients = [_record(block, block.first, block.after) for block in self.blocks]
        self.records = Table([self.record(block) for block in self.blocks] + of_gradients)
        depth = work.ins * work.taps
        self.size = work.groups * work.outs * depth
        self.totals_size = _lines(self.ranges * self.size)
        self.sum_vectors, self.sum_bytes = -(-self.size // width), self.ranges * width * dtype.itemsize
        packed = 0 if self.in_place else _lines(geometry.packed_size + width)
        gradients = groups * work.outs * self.pitches[1] + places[0] * rows_between * geometry.row_pitch + 5 * width
        self.scratch_pitch = packed + (0 if self.in_place else _lines(gradients))
        self.sizes = Table(SUMS.pack(
            blocks=len(self.blocks), ranges=self.ranges, pitch=self.scratch_pitch, packed_size=packed, ins=work.ins,
            outs=work.outs, group_pitch=work.ins * self.pitches[0], size=self.size, vectors=vectors, tail=tail,
            grad_pitch=self.pitches[1], depth=depth, packing=self.packing(self._phases),
        ))  # fmt: skip
        moved = (
            work.batch
            * work.groups
            * (work.ins * math.prod(self.source_sizes) + work.outs * math.prod(self.target_sizes))
        )
        self.range_bytes = (work.products // 4 + moved * dtype.itemsize) // self.ranges
        given, (rows, columns) = {"T": self.type, "W": width}, self.tile
        deal = None if self.in_place else apart(pack, **given, STEP=1)
        stretch = FIRST_CACHE // (rows * HOST.vector_bytes)
        by_tiles = apart(correlate, **given, ROWS=rows, COLUMNS=columns, STRETCH=stretch)
        self.kernel = accumulate.compiled(**given, PACK=self.pack, DEAL=deal, CORRELATE=by_tiles)
        self.sum_kernel = add_up.compiled(**given)

    def _time(self, layout: _Layout, _whole: bool, sizes: Sizes) -> float:
        """Return the time of the largest block with this number of groups, in products of vectors."""
        work, vectors = layout.work, layout.geometry.vectors
        packing = _PACKING * (work.ins * layout.packed_vectors + work.outs * vectors)
        return sizes[1] * (packing + vectors * work.taps * work.ins * work.outs)


def _record(
    block: Block, start: Sequence[int], stop: Sequence[int], place: int = 0, sizes: Sizes = (0, 0, 0), part: int = 0
) -> list[int]:
    planes, rows, columns = sizes
    return BLOCK.pack(
        sample=block.sample, samples=block.samples, group=block.group, groups=block.groups, start=start, stop=stop,
        place=place, planes=planes, rows=rows, columns=columns, part=part,
    )  # fmt: skip


def _row_major(channels: int, sizes: Sizes) -> Sizes:
    """Return the strides of samples, channels, planes and rows, in elements."""
    steps = [math.prod(sizes[position:]) for position in range(3)]
    return (channels * steps[0], *steps)


def _lines(size: int) -> int:
    """Return a count of numbers, rounded up to whole cache lines."""
    return -(-size // 16) * 16


def _small(step: int) -> int:
    """Return a step for which loops are compiled, or 0."""
    return step if step < 3 else 0
