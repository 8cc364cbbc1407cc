"""Convolutions of each channel by itself (`groups` as many as channels): shifted inputs, scaled and added up.

Rows of an image are too short for NumPy's loops. So each channel of a few samples becomes one long row, padding included, in
which the input that a kernel element meets is the same row, shifted: the row of outputs is a weighted sum of shifted rows. It
also has elements where a row or a sample ends and the next begins, which mean nothing and are left out in the end. Rows are
copied with the shifts of one line of the kernel (its last dimension) only: multiplied by all lines of the kernel, they give for
each line a row of products, and the outputs are the sum of these, shifted.

With a stride the input is first dealt out to rows by its places modulo the stride, the phases: a kernel element meets one
of them. All elements count as one line then.

Arrays are (batch, channels, spatial...), weights (channels, 1, kernel...), of one type; shapes are taken to fit.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy
from numpy import ndarray

from ..reduce.moments import row_dots
from ..runtime.parallel import get_num_threads, parallel_rows, scratch

Sizes = tuple[int, ...]

_ROW_BYTES = 1 << 14
"""Rows as long as this repay what each of them costs; more samples in a row would only push channels out of the cache."""

_TILE_BYTES = 1 << 22
"""About how many bytes one call works on: what its ten calls of NumPy cost weighs more than leaving the second-level cache."""


class _Geometry:
    """Where the rows of a convolution hold what."""

    def __init__(
        self, input: Sizes, kernel: Sizes, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
    ) -> None:
        self.input, self.sizes, self.stride, self.padding = input, sizes, stride, padding
        reach = [d * (k - 1) // s for k, s, d in zip(kernel, stride, dilation, strict=True)]
        self.grid = tuple(size + more for size, more in zip(sizes, reach, strict=True))
        steps = [math.prod(self.grid[dim + 1 :]) for dim in range(len(kernel))]
        self.reach = sum(step * more for step, more in zip(steps, reach, strict=True))
        self.elements: list[tuple[Sizes, int]] = []
        """For each kernel element the phase of the input it meets, and by how much that is shifted."""
        for offset in itertools.product(*map(range, kernel)):
            places = [o * d for o, d in zip(offset, dilation, strict=True)]
            phase = tuple(place % s for place, s in zip(places, stride, strict=True))
            shift = sum(place // s * step for place, s, step in zip(places, stride, steps, strict=True))
            self.elements.append((phase, shift))
        self.phases = list(dict.fromkeys(phase for phase, _ in self.elements))
        self.line = kernel[-1] if all(s == 1 for s in stride) else len(self.elements)
        """How many kernel elements make a line."""
        self.line_shifts = [shift for _, shift in self.elements[:: self.line]]
        self.inside = (slice(None), slice(None), *map(slice, sizes))

    def tiles(self, batch: int, itemsize: int) -> Iterator[slice]:
        """Samples to make rows of together."""
        each = max(1, _ROW_BYTES // max(math.prod(self.grid) * itemsize, 1))
        for start in range(0, batch, each):
            yield slice(start, min(start + each, batch))

    def dealt(self, phase: Sizes) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where in the grid the elements of a phase are, and where in the input."""
        rows, places = [slice(None)] * 2, [slice(None)] * 2
        for remainder, size, s, p, length in zip(phase, self.input, self.stride, self.padding, self.grid, strict=True):
            start = max(0, -((remainder - p) // s))
            stop = max(start, min(length, -((remainder - p - size) // s)))
            first = start * s + remainder - p
            rows.append(slice(start, stop))
            places.append(slice(first, max(first, first + (stop - start - 1) * s + 1), s))
        return tuple(rows), tuple(places)

    def rows(self, x: ndarray) -> dict[Sizes, ndarray]:
        """For each phase the rows of `x`, whose channels come first."""
        rows = scratch("rows", (len(self.phases), *x.shape[:2], *self.grid), x.dtype)
        rows.fill(0)
        for number, phase in enumerate(self.phases):
            target, source = self.dealt(phase)
            rows[number][target] = x[source]
        return dict(zip(self.phases, rows.reshape(len(rows), len(x), -1), strict=True))

    def shifted(self, rows: dict[Sizes, ndarray]) -> ndarray:
        """For each channel the rows that the kernel elements of a line meet, one below the other."""
        line = self.elements[: self.line]
        channels, length = rows[self.phases[0]].shape
        span = length - max(shift for _, shift in line)
        result = scratch("shifted", (channels, len(line), span), rows[self.phases[0]].dtype)
        for number, (phase, shift) in enumerate(line):
            result[:, number] = rows[phase][:, shift : shift + span]
        return result

    def output_rows(self, y: ndarray) -> ndarray:
        """The rows of outputs `y`, whose channels come first, with zeros between."""
        rows = scratch("outputs", (*y.shape[:2], *self.grid), y.dtype)
        rows.fill(0)
        rows[self.inside] = y
        return rows.reshape(len(y), -1)


_geometry = functools.lru_cache(_Geometry)


def _work(geometry: _Geometry, x: ndarray, function: Callable[[slice, slice], Any]) -> None:
    """Call `function` with tiles of samples and, on several threads, of channels."""
    tiles = [*geometry.tiles(len(x), x.itemsize)]
    size = (2 + geometry.line + len(geometry.line_shifts)) * math.prod(geometry.grid) * x.itemsize
    of_tile = size * (tiles[0].stop - tiles[0].start) if tiles else 1
    channels = max(1, min(-(-x.shape[1] // get_num_threads()), _TILE_BYTES // max(of_tile, 1)))

    def work(start: int, stop: int) -> None:
        for samples in tiles:
            function(samples, slice(start, stop))

    parallel_rows(work, x.shape[1], len(x) * size, tile_rows=channels)


def depthwise_forward(
    x: ndarray, weight: ndarray, bias: ndarray | None, result: ndarray, stride: Sizes, padding: Sizes, dilation: Sizes
) -> None:
    """Write the convolution of each channel of `x` with its kernel, plus `bias`, to `result`."""
    geometry = _geometry(x.shape[2:], weight.shape[2:], result.shape[2:], stride, padding, dilation)
    lines = len(geometry.line_shifts)
    # At least two lines: for one alone BLAS would be asked for a vector, which it cuts up among threads.
    factors = numpy.empty((len(weight), max(lines, 2), geometry.line), x.dtype)
    factors[:] = weight.reshape(len(weight), lines, -1)

    def convolve(samples: slice, channels: slice) -> None:
        rows = geometry.rows(x[samples, channels].swapaxes(0, 1))
        shifted = geometry.shifted(rows)
        count = samples.stop - samples.start
        length = count * math.prod(geometry.grid)
        products = scratch("products", (len(shifted), factors.shape[1], length), x.dtype)
        numpy.matmul(factors[channels], shifted, out=products[:, :, : shifted.shape[2]])
        span = length - geometry.reach
        total = products[:, 0, :span]
        for line, shift in enumerate(geometry.line_shifts[1:], 1):
            numpy.add(total, products[:, line, shift : shift + span], out=total)
        found = products[:, 0].reshape(-1, count, *geometry.grid)[geometry.inside].swapaxes(0, 1)
        if bias is None:
            result[samples, channels] = found
        else:
            numpy.add(found, bias[channels].reshape(-1, *(1,) * len(geometry.grid)), out=result[samples, channels])

    _work(geometry, x, convolve)


def depthwise_input_grad(
    grad: ndarray, weight: ndarray, result: ndarray, stride: Sizes, padding: Sizes, dilation: Sizes
) -> None:
    """Write the gradient of the input to `result`, given that of the convolution."""
    around = tuple(d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True))
    if all(s == 1 for s in stride) and min(around) >= 0:
        turned = numpy.flip(weight, tuple(range(2, weight.ndim)))
        depthwise_forward(grad, turned, None, result, stride, around, dilation)
        return
    geometry = _geometry(result.shape[2:], weight.shape[2:], grad.shape[2:], stride, padding, dilation)
    factors = weight.reshape(len(weight), -1, 1)
    covered = len(geometry.phases) == math.prod(stride)

    def spread(samples: slice, channels: slice) -> None:
        outputs = geometry.output_rows(grad[samples, channels].swapaxes(0, 1))
        used = outputs[:, : outputs.shape[1] - geometry.reach]
        rows = {phase: numpy.zeros_like(outputs) for phase in geometry.phases}
        product = numpy.empty_like(used)
        for number, (phase, shift) in enumerate(geometry.elements):
            numpy.multiply(used, factors[channels, number], out=product)
            part = rows[phase][:, shift : shift + used.shape[1]]
            numpy.add(part, product, out=part)
        turned = result[samples, channels].swapaxes(0, 1)
        for phase, row in rows.items():
            source, target = geometry.dealt(phase)
            turned[target] = row.reshape(len(row), -1, *geometry.grid)[source]

    reached = covered and all(
        p + size <= s * length
        for p, size, s, length in zip(padding, result.shape[2:], stride, geometry.grid, strict=True)
    )
    if not reached:
        result.fill(0)
    _work(geometry, grad, spread)


def depthwise_weight_grad(
    grad: ndarray, x: ndarray, weight_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> ndarray:
    """The gradient of the kernels: for each element the sum of the gradient times the input it met."""
    geometry = _geometry(x.shape[2:], weight_shape[2:], grad.shape[2:], stride, padding, dilation)
    result = numpy.zeros((weight_shape[0], len(geometry.elements)), grad.dtype)

    def multiply(samples: slice, channels: slice) -> None:
        rows = geometry.rows(x[samples, channels].swapaxes(0, 1))
        outputs = geometry.output_rows(grad[samples, channels].swapaxes(0, 1))
        used = outputs[:, : outputs.shape[1] - geometry.reach]
        for number, (phase, shift) in enumerate(geometry.elements):
            shifted = rows[phase][:, shift : shift + used.shape[1]]
            result[channels, number] += row_dots(used, shifted) if x.dtype.kind != "c" else (used * shifted).sum(1)

    _work(geometry, x, multiply)
    return result.reshape(weight_shape)
