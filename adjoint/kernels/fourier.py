"""Discrete Fourier transforms of arrays over several dimensions at once."""

from typing import Any

import numpy

__all__ = ["fft_c2c", "fft_c2r", "fft_r2c", "frequencies"]

Array = numpy.ndarray[Any, Any]

_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")
"""NumPy's names of dividing by nothing, by the root of the number of elements and by that number."""


def fft_c2c(self: Array, dim: tuple[int, ...], normalization: int, forward: bool) -> Array:
    """The transform over `dim`, or the inverse one.

    `normalization`: divided by nothing (0), by the root of the number of elements (1) or by that number (2).
    """
    if not dim:
        return self.copy()
    if forward:
        return numpy.fft.fftn(self, axes=dim, norm=_FORWARD[normalization])
    return numpy.fft.ifftn(self, axes=dim, norm=_INVERSE[normalization])


def fft_r2c(self: Array, dim: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    """The transform of real numbers; `onesided`: without the half of the last of `dim` that symmetry implies."""
    transform = numpy.fft.rfftn if onesided else numpy.fft.fftn
    return transform(self, axes=dim, norm=_FORWARD[normalization])


def fft_c2r(self: Array, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> Array:
    """The inverse of the onesided transform, with `last_dim_size` elements in the last of `dim`."""
    sizes = [self.shape[axis] for axis in dim[:-1]] + [last_dim_size]
    return numpy.fft.irfftn(self, sizes, dim, norm=_INVERSE[normalization])


def frequencies(n: int, d: float, kind: numpy.dtype[Any], onesided: bool) -> Array:
    """The frequencies of the elements of a transform of `n` samples at distance `d`."""
    if onesided:
        steps = numpy.arange(n // 2 + 1)
    else:
        steps = numpy.roll(numpy.arange(-(n // 2), n - n // 2), -(n // 2))
    return steps.astype(kind) * kind.type(1 / (n * d) if n else 1.0)
