"""The positions of the windows of pooling along each dimension, and the check that they fit the input.

Values that depend only on shapes are computed once for each combination and cached.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy
from numpy import ndarray

from ..._runtime.first_use import computed_once
from ..runtime.shapes import normalize_dim

Sizes = tuple[int, ...]
Bounds = tuple[ndarray, ndarray]
"""The starts and the ends of the windows along a dimension."""

_NUMBER = {2: "two", 3: "three"}
_AXES = {2: "HW", 3: "THW"}


class Along(NamedTuple):
    """Windows along one dimension."""

    kernel: int
    stride: int
    padding: int
    dilation: int
    length: int  # of the dimension
    count: int  # type: ignore[assignment]  # of windows

    def bounds(self) -> Bounds:
        """Return the starts and ends of windows without gaps, inside the dimension."""
        starts = numpy.arange(self.count) * self.stride - self.padding
        return numpy.maximum(starts, 0), numpy.minimum(starts + self.kernel, self.length)

    def places(self) -> tuple[ndarray, ndarray]:
        """Return positions (windows, elements of a window), moved inside, and which windows have elements inside."""
        places = (
            numpy.arange(self.count)[:, None] * self.stride - self.padding + numpy.arange(self.kernel) * self.dilation
        )
        first = numpy.where(places < 0, self.length, places).min(1, keepdims=True)
        last = numpy.where(places < self.length, places, -1).max(1, keepdims=True)
        return numpy.clip(places, first, numpy.maximum(last, 0)), (first <= last)[:, 0]


class Windows:
    """The windows over all spatial dimensions."""

    def __init__(self, dims: tuple[Along, ...]) -> None:
        self.dims = dims
        self.lengths: Sizes = tuple(w.length for w in dims)
        self.sizes: Sizes = tuple(w.count for w in dims)

    @computed_once
    def elements(self) -> ndarray:
        """Return `flat_places` of the windows."""
        return flat_places([w.places()[0] for w in self.dims], self.lengths)

    @computed_once
    def empty(self) -> ndarray | None:
        """Return which windows contain only padding, or None if all windows contain elements."""
        filled = functools.reduce(numpy.logical_and.outer, [w.places()[1] for w in self.dims])
        return None if filled.all() else ~filled


def flat_places(along: Sequence[ndarray], lengths: Sizes) -> ndarray:
    """Return positions in the flattened dimensions, (elements of a window, windows), from positions along each dimension."""
    flat = numpy.zeros((1, 1), numpy.int64)
    for places, length in zip(along, lengths, strict=True):
        flat = flat[:, None, :, None] * length + places[None, :, None, :]
        flat = flat.reshape(flat.shape[0] * flat.shape[1], flat.shape[2] * flat.shape[3])
    return numpy.ascontiguousarray(flat.T)


def pooled_size(length: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return the number of windows of a dimension. With `ceil_mode`, the last window may end outside."""
    span = length + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-span // stride) if ceil_mode else span // stride) + 1
    if ceil_mode and (count - 1) * stride >= length + padding:
        count -= 1
    return count


@functools.lru_cache(1024)
def windows_of(
    name: str, shape: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Windows:
    """Return the windows of pooling `name` ("max_pool2d", ...) on an input of `shape`. An empty stride means the kernel size."""
    dims = int(name[-2])
    kernel = _expanded(kernel_size, dims, name, "kernel_size")
    steps = _expanded(stride, dims, name, "stride") if stride else kernel
    pads = _expanded(padding, dims, name, "padding")
    gaps = _expanded(dilation, dims, name, "dilation")
    if name != "avg_pool2d" and len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    if not shape:
        raise IndexError(f"Dimension specified as {-dims - 1} but tensor has no dimensions")
    if len(shape) < dims + 1:
        normalize_dim(-dims - 1, len(shape))  # raises an error
    lengths = shape[-dims:]
    for width, step, pad, gap in zip(kernel, steps, pads, gaps, strict=True):
        if step == 0:
            raise RuntimeError("stride should not be zero")
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (gap * (width - 1) + 1) // 2 and width > 0 and gap > 0:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={width} and dilation={gap}"
            )
    counts = [
        pooled_size(length, k, s, p, d, ceil_mode)
        for length, k, s, p, d in zip(lengths, kernel, steps, pads, gaps, strict=True)
    ]
    _check_positive(name, shape, kernel, steps, gaps, counts)
    return Windows(tuple(Along(*each) for each in zip(kernel, steps, pads, gaps, lengths, counts, strict=True)))


def _expanded(value: Sizes, dims: int, name: str, argument: str) -> Sizes:
    if len(value) == dims:
        return value
    if len(value) == 1:
        return value * dims
    omitted = "omitted, " if argument == "stride" else ""
    must = "must be either" if argument == "dilation" else "must be" if name == "avg_pool3d" else "must either be"
    raise RuntimeError(f"{name}: {argument} {must} {omitted}a single int, or a tuple of {_NUMBER[dims]} ints")


def _check_positive(name: str, shape: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes, counts: list[int]) -> None:
    dims = len(kernel)
    for what, letter, values in (
        ("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation),
    ):  # fmt: skip
        if min(values) <= 0:
            shown = " ".join(f"{letter}{axis}: {value}" for axis, value in zip(_AXES[dims], values, strict=True))
            raise RuntimeError(f"{what} should be greater than zero, but got {shown}")
    if dims == 2 and (len(shape) not in (3, 4) or 0 in shape[len(shape) - 3 :]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"[{', '.join(map(str, shape))}]"
        )
    if dims == 3 and 0 in shape[len(shape) - 4 :]:
        function = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
        raise RuntimeError(
            f"{function}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(shape)} and non-batch dimension 0 has length zero!"
        )
    lengths = shape[-dims:]
    if min(counts) >= 1:
        return
    if name == "avg_pool3d":
        image, window = (
            " ".join(f"{letter}{axis}: {value}" for axis, value in zip("THW", values, strict=True))
            for letter, values in (("", lengths), ("k", kernel))
        )
        raise RuntimeError(f"input image ({image}) smaller than kernel size ({window})")
    given, found = ("x".join(map(str, (shape[-dims - 1], *values))) for values in (lengths, counts))
    raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({found}). Output size is too small")


# --- windows that adapt ---------------------------------------------------------------------------------------


@functools.lru_cache(256)
def divided(length: int, count: int) -> Bounds:
    """Return the starts and ends of n windows that divide a length L: from floor(i L / n) to ceil((i + 1) L / n)."""
    places = numpy.arange(count + 1) * length
    return places[:-1] // max(count, 1), -(-places[1:] // max(count, 1))


@functools.lru_cache(64)
def window_sizes(lengths: Sizes, counts: Sizes) -> ndarray:
    """Return the number of elements of each window, for windows that divide dimensions."""
    along = [numpy.subtract(*divided(*each)[::-1]) for each in zip(lengths, counts, strict=True)]
    return functools.reduce(numpy.multiply.outer, along).astype(numpy.float32)


@functools.lru_cache(64)
def divided_elements(lengths: Sizes, counts: Sizes) -> ndarray:
    """Return `flat_places` of windows that divide dimensions. Shorter windows repeat their last element."""
    along = []
    for length, count in zip(lengths, counts, strict=True):
        starts, stops = (ends[:, None] for ends in divided(length, count))
        along.append(numpy.minimum(starts + numpy.arange((stops - starts).max(initial=1)), stops - 1))
    return flat_places(along, lengths)


def check_gradient(name: str, shape: Sizes) -> None:
    """Raise an error if the gradient that the operator `name` takes has no elements except for an empty batch."""
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )


def check_adaptive(name: str, shape: Sizes, output_size: Sizes) -> None:
    """Raise an error if pooling `name` ("adaptive_max_pool2d", ...) cannot reduce an input of `shape` to `output_size`."""
    dims, maximum = int(name[-2]), "max" in name
    ndim = len(shape)
    fits = ndim in (dims + 1, dims + 2)
    for dim in range(1 if maximum or dims == 3 else ndim - 2, ndim) if fits or not (maximum or dims == 2) else ():
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )
    if not fits:
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{':' if maximum else ''} {list(shape)}"
        )
    if len(output_size) != dims:
        shown = f"(): internal error: output_size.size() must be {dims}" if maximum else f": output_size must be {dims}"
        raise RuntimeError(name + shown)
    if min(output_size) >= 0:
        return
    if maximum:
        negative = next(size for size in output_size if size < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative}: {[*shape[:-dims], *output_size]}"
        )
    first, *others = map(str, output_size)
    raise RuntimeError(
        f"{name}: elements of output_size must be greater than or equal to 0 but received "
        f"{{{first}, {','.join(others)}}}"
    )
