"""Discrete Fourier transforms that are composed of shorter ones: long single lines, and lengths with large prime factors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
import numpy.fft  # imported here, because access to the attribute would import it while another thread forks

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ..memory.copying import contiguous

Array = numpy.ndarray[Any, Any]

_MULTIPLY = of_any_size(numpy.multiply)

_SPLIT = 1 << 12
"""The number of elements of a line from which splitting it saves time."""

_AT_ONCE = 1 << 15
"""The number of elements that are transformed at a time, because the shorter transforms need several times the memory of the
lines.
"""

_LARGE_PRIME = 64
"""The prime factor from which a convolution with a longer transform takes less time."""


def is_of_others(n: int, real: bool) -> bool:
    """Return whether no loop transforms lines of `n` elements directly, so that `long_transform` is the best choice."""
    return (real and n % 2 == 1) or largest_prime(n) >= _LARGE_PRIME


def long_transform(array: Array, axis: int, forward: bool, scale: float, onesided: bool) -> Array | None:
    """Return the transform along `axis`, times `scale`.

    Return half of it if `onesided`, and None if it is not composed of shorter ones.
    """
    n = array.shape[axis]
    if not is_of_others(n, array.dtype.kind == "f") and (onesided or n < _SPLIT):
        return None
    outer, inner = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    lines, kept = array.reshape(outer, n, inner), n // 2 + 1 if onesided else n
    kind = numpy.dtype("F" if array.dtype.char in "fF" else "D")
    across = min(max(_AT_ONCE // n, 1), inner)
    down = max(_AT_ONCE // (n * across), 1)
    result: Any = None
    for first in range(0, inner, across):
        for start in range(0, outer, down):
            part = slice(start, start + down), slice(None), slice(first, first + across)
            found = _transformed(numpy.ascontiguousarray(lines[part], kind), forward)
            if found is None:
                return None
            if scale != 1.0:
                numbers = found.view(found.real.dtype)
                numpy.multiply(numbers, scale, numbers)
            if found.shape == (outer, kept, inner):
                result = found
                break
            result = numpy.empty((outer, kept, inner), kind) if result is None else result
            result[part] = found[:, :kept]
    return result.reshape(*array.shape[:axis], kept, *array.shape[axis + 1 :])


def _transformed(lines: Array, forward: bool) -> Array | None:
    """Return the transform of complex lines, or None if it is neither composed of shorter ones nor computed by a loop."""
    if largest_prime(lines.shape[1]) >= _LARGE_PRIME:
        return _by_convolution(lines, forward)
    found = _short(lines, 1, forward)
    return _split(lines, forward) if found is None and lines.shape[1] >= _SPLIT else found


def _short(lines: Array, axis: int, forward: bool) -> Array | None:
    found = LOOPS.run("math.fourier.transform", lines, axis, forward, 1.0)
    return None if found is NotImplemented else numpy.asarray(found)


def _split(lines: Array, forward: bool) -> Array | None:
    """Transform lines of `a * b` elements as matrices (Bailey, 1990).

    The columns are transformed and multiplied by roots of unity, and then the rows are transformed.
    """
    outer, n, inner = lines.shape
    a = _divisor(n)
    b = n // a
    if min(a, b) < 16:
        return None
    columns = _short(lines.reshape(outer, a, b * inner), 1, forward)
    if columns is None:
        return None
    turned = columns.reshape(outer, a, b, inner)
    _MULTIPLY(turned, _turns(a, b, forward, lines.dtype.char)[..., None], out=turned)
    rows = _short(turned.reshape(outer * a, b, inner), 1, forward)
    if rows is None:
        return None
    del columns, turned
    return contiguous(rows.reshape(outer, a, b, inner).swapaxes(1, 2)).reshape(outer, n, inner)


@functools.lru_cache(8)
def _turns(a: int, b: int, forward: bool, char: str) -> Array:
    """Return the powers `j * k` of the root of unity of order `a * b`, in a matrix (a, b)."""
    powers = numpy.multiply.outer(numpy.arange(a), numpy.arange(b))
    return numpy.exp(powers * ((-2j if forward else 2j) * math.pi / (a * b))).astype(char)


def _by_convolution(lines: Array, forward: bool) -> Array | None:
    """Return the transform as a convolution with a chirp, because `j * k` is half of `j² + k² - (k - j)²` (Bluestein, 1970)."""
    outer, n, inner = lines.shape
    length = _smooth(2 * n - 1)
    chirp, spectrum = _chirps(n, length, forward, lines.dtype.char)
    padded = numpy.zeros((outer, length, inner), lines.dtype)
    _MULTIPLY(lines, chirp[:, None], out=padded[:, :n])
    there = _any(padded, True)
    back = _any(_MULTIPLY(there, spectrum[:, None], out=there), False)
    return numpy.asarray(_MULTIPLY(back[:, :n], chirp[:, None]))


def _any(lines: Array, forward: bool) -> Array:
    """Return the transform of lines whose length has no large prime factors."""
    found = _transformed(lines, forward)
    if found is not None:
        return found
    return numpy.fft.fft(lines, axis=1) if forward else numpy.fft.ifft(lines, axis=1, norm="forward")


@functools.lru_cache(8)
def _chirps(n: int, length: int, forward: bool, char: str) -> tuple[Array, Array]:
    """Return the chirp, and the transform of its conjugate, divided by `length`."""
    squares = numpy.arange(n) ** 2 % (2 * n)
    chirp = numpy.exp(squares * ((-1j if forward else 1j) * math.pi / n))
    around = numpy.zeros(length, complex)
    around[:n] = chirp.conj()
    around[length - n + 1 :] = chirp[:0:-1].conj()
    return chirp.astype(char), (numpy.fft.fft(around) / length).astype(char)


@functools.lru_cache(256)
def largest_prime(n: int) -> int:
    """Return the largest prime factor."""
    largest, factor = 1, 2
    while factor * factor <= n:
        while n % factor == 0:
            largest, n = factor, n // factor
        factor += 1
    return max(largest, n)


@functools.lru_cache(256)
def _divisor(n: int) -> int:
    """Return the largest divisor that is not greater than the square root of `n`."""
    return next(divisor for divisor in range(math.isqrt(n), 0, -1) if n % divisor == 0)


@functools.lru_cache(256)
def _smooth(least: int) -> int:
    """Return the smallest multiple of 16 that is at least `least` and has no prime factors except 2, 3 and 5."""
    length = -(-least // 16) * 16
    while largest_prime(length) > 5:
        length += 16
    return length
