"""Discrete Fourier transforms of arrays over several dimensions at once."""

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy
import numpy.fft  # imported here, because access to the attribute would import it while another thread forks
from numpy.fft import _pocketfft_umath as _LOOPS  # type: ignore[attr-defined]  # the functions around these loops take longer

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.plans import compiled
from ..memory.copying import contiguous
from ..runtime.costs import LARGE, THREADED
from ..runtime.floating import Array
from ..runtime.parallel import get_num_threads, parallel_rows

Norm = Literal["backward", "ortho", "forward"]

_FORWARD: tuple[Norm, ...] = ("backward", "ortho", "forward")
_INVERSE: tuple[Norm, ...] = ("forward", "ortho", "backward")
"""NumPy's names of division by nothing, by the square root of the number of elements, and by this number."""


_MULTIPLY = of_any_size(numpy.multiply)

_WORK = 64  # the number of bytes that could be copied while one is transformed


def fft_c2c(self: Array, dim: tuple[int, ...], normalization: int, forward: bool) -> Array:
    """Return the transform over `dim`, or the inverse transform.

    `normalization`: whether to divide by nothing (0), by the square root of the number of elements (1), or by this
    number (2).
    """
    if not dim:
        return self.copy()
    return _innermost(self, dim, (), lambda array, axes: _transform(array, axes, forward, normalization))


def fft_r2c(self: Array, dim: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    """Return the transform of real numbers. `onesided`: whether to omit the redundant half of the last dimension in `dim`."""

    def transform(array: Array, axes: tuple[int, ...]) -> Array:
        half = _along(array, axes[-1], True, normalization, onesided)
        return _transform(half, axes[:-1], True, normalization)

    outer, last = (dim[:-1], dim[-1:]) if onesided else (dim, ())
    return _innermost(self, outer, last, transform)


def fft_c2r(self: Array, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> Array:
    """Return the inverse of the onesided transform, with `last_dim_size` elements in the last dimension of `dim`."""

    def transform(array: Array, axes: tuple[int, ...]) -> Array:
        for axis in axes[:-1]:
            array = _along(array, axis, False, normalization)
        kind = "f" if array.dtype.char == "F" else "d"
        return _real_by_numpy(array.shape, last_dim_size, normalization, kind)(array)

    return _innermost(self, dim[:-1], dim[-1:], transform)


@functools.lru_cache(256)
def _real_by_numpy(shape: tuple[int, ...], size: int, normalization: int, kind: str) -> Callable[[Array], Array]:
    """Return the function that transforms half of each line, in arrays of one shape, to `size` real numbers."""
    factor = _factor(size, normalization, kind)
    return _by_threads(shape, size, kind, lambda lines, out: _LOOPS.irfft(lines, factor, out))


def fft_c2r_backward(self: Array, dim: tuple[int, ...], normalization: int) -> Array:
    """Return the onesided transform over `dim`, doubled where an element also represents its mirror image."""
    half = fft_r2c(self, dim, normalization, True)
    inner = half[(slice(None),) * dim[-1] + (slice(1, (self.shape[dim[-1]] + 1) // 2),)]
    numpy.add(inner, inner, inner)
    return half


def _transform(array: Array, axes: tuple[int, ...], forward: bool, normalization: int) -> Array:
    """Return the transform over several dimensions, starting with the last dimension."""
    for axis in reversed(axes):
        array = _along(array, axis, forward, normalization)
    return array


_TRANSFORM = compiled("math.fourier.transform", least=LARGE)


def _along(array: Array, axis: int, forward: bool, normalization: int, onesided: bool = False) -> Array:
    """Return the transform along one dimension, computed by compiled code, by NumPy on several threads, or by NumPy."""
    n = array.shape[axis]
    if LOOPS.takes(array.size, LARGE):
        scale = (1.0, n**-0.5 if n else 1.0, 1 / n if n else 1.0)[normalization]
        lies, moved = _in_memory_order(array, axis)
        found = _TRANSFORM.run(array.size, lies, moved, forward, scale, onesided, moved != axis)
        if found is NotImplemented and array.size == n and not onesided:
            found = _split(array, forward, scale)
        if found is not NotImplemented:
            return numpy.asarray(found)
        del lies
    char = array.dtype.char
    if array.size >= LARGE and char in "fd" and not onesided:
        return _mirrored(_along(array, axis, forward, normalization, True), axis, n)
    if char not in "fdFD":
        transform = numpy.fft.rfft if onesided else numpy.fft.fft if forward else numpy.fft.ifft
        return transform(array, axis=axis, norm=(_FORWARD if forward else _INVERSE)[normalization])
    return _by_numpy(array.shape, char, axis, forward, normalization, onesided)(array)


@functools.lru_cache(256)
def _by_numpy(
    shape: tuple[int, ...], char: str, axis: int, forward: bool, normalization: int, onesided: bool
) -> Callable[[Array], Array]:
    """Return the function that transforms arrays of one shape and dtype along one dimension by a loop of NumPy."""
    n = shape[axis]
    real, complex_ = ("f", "F") if char in "fF" else ("d", "D")
    loop = (_LOOPS.rfft_n_odd if n % 2 else _LOOPS.rfft_n_even) if onesided else _LOOPS.fft if forward else _LOOPS.ifft
    kept = n // 2 + 1 if onesided else n
    factor = _factor(n, normalization, real)
    if axis == len(shape) - 1:
        return _by_threads(shape, kept, complex_, lambda lines, out: loop(lines, factor, out))
    result, axes = (*shape[:axis], kept, *shape[axis + 1 :]), [(axis,), (), (axis,)]
    return lambda array: loop(array, factor, numpy.empty(result, complex_), axes=axes)


def _mirrored(half: Array, axis: int, n: int) -> Array:
    """Return the whole transform of `n` real numbers along `axis`. Its other half is the conjugate of the first, reversed."""
    result = numpy.empty((*half.shape[:axis], n, *half.shape[axis + 1 :]), half.dtype)
    lines, whole = numpy.moveaxis(half, axis, -1), numpy.moveaxis(result, axis, -1)
    whole[..., : n // 2 + 1] = lines
    numpy.conjugate(lines[..., (n - 1) // 2 : 0 : -1], out=whole[..., n // 2 + 1 :])
    return result


def _split(array: Array, forward: bool, scale: float) -> Any:
    """Transform a long line of `a * b` elements as a matrix (Bailey, 1990).

    The columns are transformed and multiplied by roots of unity, and then the rows are transformed. Return
    NotImplemented if there is no loop for them.
    """
    n = array.size
    a = next(divisor for divisor in range(math.isqrt(n), 0, -1) if n % divisor == 0)
    matrix = numpy.ascontiguousarray(array, "F" if array.dtype.char in "fF" else "D").reshape(a, n // a)
    columns = _TRANSFORM.run(n, matrix, 0, forward, scale)
    if columns is NotImplemented:
        return NotImplemented
    _MULTIPLY(columns, _roots_of_unity(a, n // a, forward, matrix.dtype.char), out=columns)
    rows = _TRANSFORM.run(n, columns, 1, forward, 1.0)
    return NotImplemented if rows is NotImplemented else contiguous(rows.T).reshape(array.shape)


@functools.lru_cache(8)
def _roots_of_unity(a: int, b: int, forward: bool, char: str) -> Array:
    """Return the powers `j * k` of the root of unity of order `a * b`, in a matrix (a, b)."""
    powers = numpy.multiply.outer(numpy.arange(a), numpy.arange(b))
    return numpy.exp(powers * ((-2j if forward else 2j) * math.pi / (a * b))).astype(char)


@functools.lru_cache(256)
def _factor(n: int, normalization: int, kind: str) -> Any:
    """Return the factor of a transform of `n` elements, as NumPy computes it."""
    one = numpy.array(1, kind)
    return one if not normalization else one / (n if normalization == 2 else numpy.sqrt(numpy.array(n, kind)))


def _by_threads(
    shape: tuple[int, ...], kept: int, kind: str, transform: Callable[[Array, Array], Array]
) -> Callable[[Array], Array]:
    """Return the function that transforms arrays of one shape along the last dimension to `kept` elements of this kind.

    `transform` is NumPy's loop. Several threads call it for large arrays.
    """
    result = (*shape[:-1], kept)
    if math.prod(shape) < THREADED:
        return lambda array: transform(array, numpy.empty(result, kind))

    def by_threads(array: Array) -> Array:
        results = numpy.empty(result, kind)
        rows, found = array.reshape(-1, shape[-1]), results.reshape(-1, kept)

        def transform_tile(start: int, stop: int) -> None:
            transform(rows[start:stop], found[start:stop])

        # NumPy's calls take some time, so there are few parts.
        tile_rows = -(-len(rows) // (2 * get_num_threads()))
        parallel_rows(transform_tile, len(rows), _WORK * rows.shape[1] * array.itemsize, tile_rows=tile_rows)
        return results

    return by_threads


def _in_memory_order(array: Array, axis: int) -> tuple[Array, int]:
    """Return a row-major array of the same numbers, not copied if only the last axis must move, and the place of `axis`."""
    if axis == array.ndim - 1:
        for place in range(axis):
            moved = numpy.moveaxis(array, axis, place)
            if moved.flags.c_contiguous and not array.flags.c_contiguous:
                return moved, place
    return numpy.ascontiguousarray(array), axis


def _innermost(self: Array, dims: tuple[int, ...], last: tuple[int, ...], transform: Callable[..., Array]) -> Array:
    """Return `transform(self)` with the transformed dimensions innermost in memory.

    The dimensions `last` are the innermost. The other dimensions keep the order of their strides. PyTorch's results
    have this layout.
    """
    order, axes = _order(self.strides, dims, last)
    if order is None:
        result = transform(self, axes)
        return result if result.flags.c_contiguous else numpy.ascontiguousarray(result)
    result = numpy.ascontiguousarray(transform(self.transpose(order), axes))
    return result.transpose(numpy.argsort(order))


@functools.lru_cache(256)
def _order(
    strides: tuple[int, ...], dims: tuple[int, ...], last: tuple[int, ...]
) -> tuple[list[int] | None, tuple[int, ...]]:
    """Return the order of `_innermost` (None for the given order), and the positions of the transformed dimensions in it."""
    ndim = len(strides)
    dims, last = (tuple(range(ndim)[dim] for dim in some) for some in (dims, last))
    by_stride = sorted(range(ndim), key=lambda dim: -abs(strides[dim]))
    chosen = {*dims, *last}
    order = [dim for dim in by_stride if dim not in chosen] + [dim for dim in by_stride if dim in dims] + list(last)
    return None if order == sorted(order) else order, tuple(range(ndim - len(chosen), ndim))


def frequencies(n: int, d: float, kind: numpy.dtype[Any], onesided: bool) -> Array:
    """Return the frequencies of the elements of a transform of `n` samples at distance `d`."""
    if onesided:
        steps = numpy.arange(n // 2 + 1)
    else:
        steps = numpy.roll(numpy.arange(-(n // 2), n - n // 2), -(n // 2))
    return steps.astype(kind) * kind.type(1 / (n * d) if n else 1.0)
