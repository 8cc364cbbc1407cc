"""Select elements by a condition with NumPy, into new memory (`choose`) or into existing memory (`select`).

Elements that are not selected have no effect, even if `0 * inf` would be NaN, because a mask is never used as a factor.
Random masks cause mispredicted branches. For large arrays, it is ten times faster to mask the bits with 0 and -1 (all
ones).
"""

from __future__ import annotations

from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.parallel import scratch
from ..kernels.runtime.scalar import ZERO
from .costs import LARGE

Array = numpy.ndarray[Any, Any]

_BITS: dict[int, numpy.dtype[Any]] = {size: numpy.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_INT8 = numpy.dtype(numpy.int8)
_ONE = numpy.ones((), _INT8)


def zero_where(self: Array, mask: Array) -> Array:
    """Return `self` with 0 where `mask` is true."""
    if type(mask) is not numpy.ndarray or type(self) is not numpy.ndarray or mask.shape != self.shape:
        return numpy.where(mask, ZERO[self.dtype], self)
    bits = _maskable(mask, self)
    if bits is None:
        result = self.copy("K")
        numpy.putmask(result, mask, ZERO[result.dtype])
        return result
    keep = numpy.subtract(mask.view(_INT8), _ONE)
    return (self.view(bits) & keep).view(self.dtype)


def choose(mask: Array, self: Array, other: Array) -> Array:
    """Return `self` where `mask` is true, and `other` elsewhere. Both have one dtype."""
    bits = _maskable(mask, self, other)
    if bits is None:
        return numpy.where(mask, self, other)
    keep = numpy.negative(mask.view(_INT8))
    other = other.view(bits)
    chosen = self.view(bits) ^ other
    chosen &= keep
    chosen ^= other
    return chosen.view(self.dtype)


def _maskable(mask: Array, *arrays: Array) -> numpy.dtype[Any] | None:
    """Return the integer dtype for masking the bits of large arrays, or None if masking is slower.

    Numbers may be given instead of arrays.
    """
    if mask.size < LARGE:
        return None
    bits = _BITS.get(arrays[0].itemsize)
    alike = mask.flags.c_contiguous and all(
        not a.ndim or (a.shape == mask.shape and a.flags.c_contiguous) for a in arrays
    )
    return bits if alike and arrays[0].dtype.kind != "c" else None


def select(mask: ndarray, first: ndarray, second: ndarray, out: ndarray) -> None:
    """Write `first` where `mask` is true, and `second` elsewhere.

    Both may be `out`, and each may be one number for all elements.
    """
    bits = _BITS[out.itemsize]
    keep = scratch("select", mask.shape, _INT8)
    a, b, target = first.view(bits), second.view(bits), out.view(bits)
    if not b.ndim and b == 0:
        numpy.negative(mask.view(_INT8), keep)
        numpy.bitwise_and(a, keep, target)
    elif not a.ndim and a == 0:
        numpy.subtract(mask.view(_INT8), _ONE, keep)
        numpy.bitwise_and(b, keep, target)
    elif second is out:  # the overwritten values are restored at the end: a ^ ((a ^ b) & ~mask)
        numpy.subtract(mask.view(_INT8), _ONE, keep)
        numpy.bitwise_xor(a, b, target)
        numpy.bitwise_and(target, keep, target)
        numpy.bitwise_xor(target, a, target)
    else:
        numpy.negative(mask.view(_INT8), keep)
        numpy.bitwise_xor(a, b, target)
        numpy.bitwise_and(target, keep, target)
        numpy.bitwise_xor(target, b, target)


def select_any(mask: ndarray, first: ndarray, second: ndarray, out: ndarray) -> None:
    """Do the same as `select` for elements whose bits cannot be masked as one integer."""
    out[...] = numpy.where(mask, first, second)
