"""Fractional max pooling: windows whose places are drawn, in two or three dimensions (Graham, 2014)."""

import math

import numpy
from numpy import ndarray

from ..runtime.floating import is_floating, refuse, widen

_NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def fractional_max_pool(
    input: ndarray, kernel_size: tuple[int, ...], output_size: tuple[int, ...], random_samples: ndarray
) -> tuple[ndarray, ndarray]:
    """The largest element of each window, and its index in the flattened spatial dimensions: the first one, or the last nan.

    Args:
        input: (batch, channels, spatial...), or that without batch.
        random_samples: (batch, channels, dims), in [0, 1); they place the windows of each image. Of two dimensions the first
            number is that of the last dimension.

    Raises:
        RuntimeError: if windows do not fit.
        NotImplementedError: if `input` is not floating-point.
    """
    dims = len(kernel_size)
    spatial, leading = input.shape[-dims:], input.shape[:-dims]
    function = "fractional_max_pool2d()" if dims == 2 else "fractional_max_pool3d_out()"
    for name, kernel, size, length in zip(_NAMES[dims], kernel_size, output_size, spatial, strict=True):
        if size + kernel - 1 > length:
            raise RuntimeError(f"{function}: pool {name} {kernel} too large relative to input {name} {length}")
    if not is_floating(input.dtype):
        raise refuse(f"fractional_max_pool{dims}d_out_frame", input)
    samples = widen(random_samples)[..., ::-1] if dims == 2 else widen(random_samples)
    samples = samples.reshape(*leading, dims)
    places: ndarray | int = 0
    for dim in range(dims):
        starts = _starts(samples[..., dim], spatial[dim], output_size[dim], kernel_size[dim])
        inside = starts[..., None] + numpy.arange(kernel_size[dim])
        shape = [1] * (2 * dims)
        shape[dim], shape[dims + dim] = inside.shape[-2:]
        places = places * spatial[dim] + inside.reshape(*leading, *shape)
    flat = numpy.asarray(places).reshape(*leading, math.prod(output_size), math.prod(kernel_size))
    values = input.reshape(*leading, math.prod(spatial))
    windows = widen(
        numpy.take_along_axis(values, flat.reshape(*leading, flat.shape[-2] * flat.shape[-1]), -1).reshape(flat.shape)
    )
    unordered = numpy.isnan(windows)
    last = flat.shape[-1] - 1 - unordered[..., ::-1].argmax(-1)
    chosen = numpy.where(unordered.any(-1), last, windows.argmax(-1) if windows.size else 0)
    indices = numpy.take_along_axis(flat, chosen[..., None], -1)[..., 0]
    pooled = numpy.take_along_axis(values, indices, -1)
    return pooled.reshape(*leading, *output_size), indices.reshape(*leading, *output_size)


def _starts(sample: ndarray, length: int, size: int, kernel: int) -> ndarray:
    """Where the windows along one dimension begin; the last one ends with the input."""
    last = length - kernel
    if size == 1:
        return numpy.full((*sample.shape, 1), last)
    step = last / (size - 1) if sample.dtype == numpy.float64 else numpy.float32(last) / numpy.float32(size - 1)
    shift = sample[..., None]
    steps = ((numpy.arange(size).astype(sample.dtype) + shift) * step).astype(numpy.int64)
    starts = steps - (shift * step).astype(numpy.int64)
    starts[..., -1] = last
    return starts
