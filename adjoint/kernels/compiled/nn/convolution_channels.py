"""Depthwise convolutions. Each number is a factor of only a few products, so the input is not packed."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from .convolution_geometry import Axis
from .convolution_kernels import store_first
from .convolution_plan import Arrays, Table, Work

ROWS = 4
"""The number of rows of the result that are computed together."""

_EACH_TAP, _BESIDES, _BESIDES_PACKED = 1.5, 3, 16
"""The times of a vector, in taps with packed rows: for each tap, for all else here, and for all else if rows are
packed."""


@loops(explicit=True, plain=True)
def convolve_channels(
    out: Pointer[T], x: Pointer[T], weight: Pointer[T], bias: Pointer[T], sizes: Pointer[i64],
    strides: Pointer[i64], start: Int, stop: Int, W: Static,
) -> None:  # fmt: skip
    """Convolve channels `start` to `stop` of all samples. Rows whose taps all lie inside the source are computed together."""
    channels, rows, columns, inner_start, inner_stop, row_taps, column_taps = [sizes[K] for K in unrolled(7)]
    for number in range(start, stop):
        channel = number % channels
        source = x + ((number // channels) * strides[0] + channel * strides[1])
        target = out + number * rows * columns
        factors = weight + channel * row_taps * column_taps
        y = i64(0)
        while y < rows:
            if y >= inner_start and y + ROWS <= inner_stop:
                convolve_rows(target, source, factors, bias[channel], sizes, strides[3], y, W, ROWS)
                y += ROWS
            else:
                convolve_rows(target, source, factors, bias[channel], sizes, strides[3], y, W, 1)
                y += 1


@loops(explicit=True, plain=True)
def convolve_rows(
    out: Pointer[T], x: Pointer[T], weight: Pointer[T], bias: T, sizes: Pointer[i64], row_stride: Int, y: Int,
    W: Static, COUNT: Static,
) -> None:  # fmt: skip
    """Compute `COUNT` rows of one channel of the result, starting from row `y`."""
    columns, row_taps, column_taps, step, source_rows, source_columns = [sizes[K] for K in (2, 5, 6, 7, 8, 9)]
    above, beside = as_pointer(sizes[10], i64), as_pointer(sizes[11], i64)
    for k in range(0, columns, W):
        sums = local(vector(T, W), COUNT)
        for M in unrolled(COUNT):
            sums[M] = broadcast(bias, W)
        for i in range(row_taps):
            row = y * step + above[i]
            stop = i32(source_columns) if row >= 0 and row < source_rows else i32(0)
            lines = [x + ((row + M * step) * row_stride + k) for M in unrolled(COUNT)]
            factors = weight + i * column_taps
            for j in range(column_taps):
                distance = beside[j]
                places = lanes(i32, W) + i32(k + distance)
                inside = (places >= 0) & (places < stop)
                factor = broadcast(factors[j], W)
                for M in unrolled(COUNT):
                    sums[M] = fma(factor, load(lines[M] + distance, W, inside), sums[M])
        for M in unrolled(COUNT):
            store_first(out + ((y + M) * columns + k), sums[M], columns - k, W)


class ChannelPlan(Arrays):
    """The plan of a convolution of each channel separately, in one or two dimensions, or of its transpose."""

    @staticmethod
    def takes(work: Work) -> bool:
        """Return whether rows have stride 1 and are computed faster one by one than packed, without empty lanes."""
        planes, rows, columns = work.axes
        alone = work.ins == work.outs == 1 and planes.source == planes.target == sum(map(len, planes.taps)) == 1
        here = -(-columns.places // work.width) * (
            rows.places + rows.reach / 4
        )  # rows at the edge are computed one by one
        packed = (columns.places + columns.reach) / work.width * rows.places
        faster = here * (_EACH_TAP * work.taps + _BESIDES) <= packed * (work.taps + _BESIDES_PACKED)
        return alone and faster and rows.spread == columns.spread == columns.step == 1

    def __init__(self, work: Work, dtype: numpy.dtype[Any]) -> None:
        super().__init__(work)
        _, rows, columns = work.axes
        self.kernel, self.channels = (
            convolve_channels.compiled(T=type_of(dtype), W=work.width),
            work.groups * work.batch,
        )
        self.above, self.beside = Table(_places(rows)), Table(_places(columns))
        distances = _places(rows)
        inner_start = max(0, -(min(distances) // rows.step))
        inner_stop = min(rows.places, (rows.source - 1 - max(distances)) // rows.step + 1)
        self.sizes = Table([
            work.groups, rows.places, columns.places, inner_start, inner_stop, len(rows.taps[0]), len(columns.taps[0]),
            rows.step, rows.source, columns.source, self.above.address, self.beside.address,
        ])  # fmt: skip
        self.nothing = unchanged(numpy.zeros(work.groups, dtype))
        moved = math.prod(self.source_sizes) + math.prod(self.target_sizes)
        self.channel_bytes = math.prod(self.target_sizes) * work.taps + moved * dtype.itemsize

    def run(self, x: ndarray, weight: ndarray, bias: ndarray | None, result: ndarray) -> None:
        """Write the sums over taps, plus `bias`."""
        x, steps = self.source(x)
        launch(
            self.kernel, self.channels, self.channel_bytes, result, x, weight, self.nothing if bias is None else bias,
            self.sizes.numbers, steps.numbers,
        )  # fmt: skip


def _places(axis: Axis) -> list[int]:
    """Return, for each filter element along an axis, its source position for the first position of the result."""
    (taps,) = axis.taps
    return [axis.origin + axis.phases[phase] + shift * axis.step for _, phase, shift in taps]
