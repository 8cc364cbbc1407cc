"""Select elements by a condition with NumPy.

A mask is never a factor, because `0 * inf` is NaN. Random masks cause mispredicted branches, so the bits of large arrays
are masked with 0 and -1 (all ones), which is ten times faster.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ..kernels.runtime.costs import LARGE
from ..kernels.runtime.scalar import ZERO
from .acceleration import LOOPS
from .compiled_pointwise import CompiledPointwise
from .expression import BOOL, INPUT, NUMBER, Expression, Graph

Array = numpy.ndarray[Any, Any]

_BITS: dict[int, numpy.dtype[Any]] = {size: numpy.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_INT8 = numpy.dtype(numpy.int8)


def zero_where(self: Array, mask: Array) -> Array:
    """Return `self` with 0 where `mask` is true."""
    return choose(mask, ZERO[self.dtype], self)


@functools.cache
def _loops() -> CompiledPointwise:
    graph = Graph()
    kinds = {"mask": BOOL, "self": NUMBER, "other": NUMBER}
    result = graph.node("where", tuple([graph.node(INPUT, (), kind, name) for name, kind in kinds.items()]), NUMBER)
    return CompiledPointwise("choose", Expression((result,)), list(kinds), [])


def chosen(mask: Array, self: Array, other: Array, out: Array | None = None) -> Any:
    """Return the result of `choose` for large arrays, in `out` if given, or NotImplemented if NumPy must compute it."""
    bits = _BITS.get(self.itemsize)
    arrays = (mask, self, other)
    if bits is None or not LOOPS.takes(numpy.broadcast(*arrays).size, LARGE):
        return NotImplemented
    if any(type(item) is not numpy.ndarray for item in arrays):
        return NotImplemented
    operands = [mask, self.view(bits), other.view(bits)]
    target = None if out is None else operands[2] if out is other else out.view(bits)
    found = _loops().run(operands, (), bits, bits, target)
    return found if found is NotImplemented else found.view(self.dtype)


def choose(mask: Array, self: Array, other: Array) -> Array:
    """Return `self` where `mask` is true, and `other` elsewhere. Both have one dtype."""
    bits = _maskable(mask, self, other)
    if bits is None:
        if self.ndim or type(other) is not numpy.ndarray or mask.shape != other.shape:
            return numpy.where(mask, self, other)
        result = other.copy("K")
        numpy.putmask(result, mask, self)
        return result
    keep = numpy.negative(mask.view(_INT8))
    other = other.view(bits)
    chosen = self.view(bits) ^ other
    chosen &= keep
    chosen ^= other
    return chosen.view(self.dtype)


def _maskable(mask: Array, *arrays: Array) -> numpy.dtype[Any] | None:
    """Return the integer dtype for masking the bits of large arrays (or numbers), or None if masking is slower."""
    if mask.size < LARGE or any(type(each) is not numpy.ndarray for each in (mask, *arrays)):
        return None
    bits = _BITS.get(arrays[0].itemsize)
    alike = mask.flags.c_contiguous and all(
        not a.ndim or (a.shape == mask.shape and (a.flags.c_contiguous or not any(a.strides))) for a in arrays
    )
    return bits if alike and arrays[0].dtype.kind != "c" else None
