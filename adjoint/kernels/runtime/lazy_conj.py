"""Arrays that are conjugated, negated, or both when they are read. They are views of memory with the original elements.

Code that computes on such an array must call `materialize` first. In NumPy's hooks, the array materializes itself, and
values that are written to it are conjugated or negated.
"""

from __future__ import annotations

from typing import Any

import numpy

from .narrow_array import kept

CONJ, NEG = 1, 2
"""The bits of an array: its elements are conjugated, negated, or both, when they are read."""

_RAW = frozenset((numpy.empty_like, numpy.zeros_like, numpy.ones_like, numpy.may_share_memory, numpy.shares_memory))


class LazyConjNeg(numpy.ndarray[Any, Any]):
    """An array whose elements are the conjugated or negated content of its memory. Its views are such arrays too."""

    __slots__ = ()
    bits = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        targets = keywords.get("out", ())
        if any(isinstance(target, LazyConjNeg) for target in targets):
            keywords["out"] = tuple(materialize(target) for target in targets)
        results = getattr(ufunc, method)(*map(materialize, inputs), **keywords)
        for target, made in zip(targets, keywords.get("out", ()), strict=True):
            if made is not target:
                target[...] = made
        return targets[0] if len(targets) == 1 else targets or results

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if function is numpy.copyto and isinstance(args[0], LazyConjNeg):
            args[0][...] = numpy.asarray(materialize(args[1])).astype(args[0].dtype)
            return None
        read = without_lazy_bits if function in _RAW else _materialized_each
        return function(*map(read, args), **{name: read(value) for name, value in keywords.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        without_lazy_bits(self)[key] = _turned(numpy.asarray(materialize(value), self.dtype), self.bits)

    real = property(lambda self: materialize(self).real)
    imag = property(lambda self: materialize(self).imag)

    def copy(self, order: Any = "K") -> Any:
        """Return a plain copy of the elements."""
        return materialize(self)


def _materializing(name: str) -> Any:
    return lambda self, *args, **keywords: getattr(materialize(self), name)(*args, **keywords)


for _name in (
    "argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate cumprod cumsum diagonal dot "
    "item nonzero repeat searchsorted sort take tobytes tolist trace __complex__ __deepcopy__ __float__ __int__"
).split():
    setattr(LazyConjNeg, _name, _materializing(_name))


_CLASSES: tuple[Any, ...] = (
    numpy.ndarray,
    *(type(name, (LazyConjNeg,), {"__slots__": (), "bits": n}) for n, name in enumerate(("Conj", "Neg", "NegConj"), 1)),
)


def lazy_bits_of(array: Any) -> int:
    """Return the bits of an array, which are 0 for a plain array."""
    return array.bits if isinstance(array, LazyConjNeg) else 0


def with_lazy_bits(array: Any, bits: int) -> Any:
    """Return a view of `array` with these `bits` toggled."""
    return kept(array.view(_CLASSES[lazy_bits_of(array) ^ bits])) if bits else array


def without_lazy_bits(array: Any) -> Any:
    """Return the content of the memory of `array`, neither conjugated nor negated."""
    return kept(array.view(numpy.ndarray)) if isinstance(array, LazyConjNeg) else array


def materialize(array: Any) -> Any:
    """Return the elements of a lazy array as a plain array. Other values are returned unchanged."""
    return kept(_turned(array.view(numpy.ndarray), array.bits)) if isinstance(array, LazyConjNeg) else array


def _materialized_each(value: Any) -> Any:
    return [*map(_materialized_each, value)] if isinstance(value, (list, tuple)) else materialize(value)


def _turned(array: Any, bits: int) -> Any:
    if bits & CONJ:
        array = numpy.asarray(numpy.conjugate(array))
    if bits & NEG and array.dtype.kind == "b":
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    return numpy.asarray(numpy.negative(array)) if bits & NEG else array


def conjugate(self: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Return the conjugates of complex numbers, which are computed when they are read."""
    return with_lazy_bits(self, CONJ) if self.dtype.kind in "cW" else self.view()


def negative(self: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Return the negatives, which are computed when they are read."""
    return with_lazy_bits(self, NEG)
