"""Discrete Fourier transforms of arrays over several dimensions at once."""

from collections.abc import Callable
from typing import Any, Literal

import numpy

Array = numpy.ndarray[Any, Any]

Norm = Literal["backward", "ortho", "forward"]

_FORWARD: tuple[Norm, ...] = ("backward", "ortho", "forward")
_INVERSE: tuple[Norm, ...] = ("forward", "ortho", "backward")
"""NumPy's names of dividing by nothing, by the root of the number of elements and by that number."""


def fft_c2c(self: Array, dim: tuple[int, ...], normalization: int, forward: bool) -> Array:
    """The transform over `dim`, or the inverse one.

    `normalization`: divided by nothing (0), by the root of the number of elements (1) or by that number (2).
    """
    if not dim:
        return self.copy()
    transform, norm = (numpy.fft.fftn, _FORWARD) if forward else (numpy.fft.ifftn, _INVERSE)
    return _innermost(self, dim, (), lambda array, axes: transform(array, axes=axes, norm=norm[normalization]))


def fft_r2c(self: Array, dim: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    """The transform of real numbers; `onesided`: without the half of the last of `dim` that symmetry implies."""
    transform, norm = numpy.fft.rfftn if onesided else numpy.fft.fftn, _FORWARD[normalization]
    outer, last = (dim[:-1], dim[-1:]) if onesided else (dim, ())
    return _innermost(self, outer, last, lambda array, axes: transform(array, axes=axes, norm=norm))


def fft_c2r(self: Array, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> Array:
    """The inverse of the onesided transform, with `last_dim_size` elements in the last of `dim`."""

    def transform(array: Array, axes: tuple[int, ...]) -> Array:
        sizes = [array.shape[axis] for axis in axes[:-1]] + [last_dim_size]
        return numpy.fft.irfftn(array, sizes, axes, norm=_INVERSE[normalization])

    return _innermost(self, dim[:-1], dim[-1:], transform)


def _innermost(self: Array, dims: tuple[int, ...], last: tuple[int, ...], transform: Callable[..., Array]) -> Array:
    """`transform` with the dimensions it works on innermost in memory, `last` of all, the others by their strides.

    So PyTorch leaves its results: of dimensions that were not, only the strides tell.
    """
    dims, last = (tuple(range(self.ndim)[dim] for dim in some) for some in (dims, last))
    by_stride = sorted(range(self.ndim), key=lambda dim: -abs(self.strides[dim]))
    chosen = {*dims, *last}
    order = [dim for dim in by_stride if dim not in chosen] + [dim for dim in by_stride if dim in dims] + list(last)
    axes = tuple(range(self.ndim - len(chosen), self.ndim))
    result = numpy.ascontiguousarray(transform(self.transpose(order), axes))
    return result.transpose(numpy.argsort(order))


def frequencies(n: int, d: float, kind: numpy.dtype[Any], onesided: bool) -> Array:
    """The frequencies of the elements of a transform of `n` samples at distance `d`."""
    if onesided:
        steps = numpy.arange(n // 2 + 1)
    else:
        steps = numpy.roll(numpy.arange(-(n // 2), n - n // 2), -(n // 2))
    return steps.astype(kind) * kind.type(1 / (n * d) if n else 1.0)
