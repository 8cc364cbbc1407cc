"""Python numbers as elements of arrays: range checks in PyTorch's words, and arrays of one number of a given dtype."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy

from ... import dtypes
from ...dtypes import dtype
from .floating import unwarned
from .narrow_array import cast, kept

Array = numpy.ndarray[Any, Any]

C_NAMES = dtypes.C_NAMES | {
    dtypes.uint8: "uint8_t", dtypes.uint16: "uint16_t", dtypes.uint32: "uint32_t", dtypes.uint64: "uint64_t",
    dtypes.int8: "int8_t", dtypes.int16: "int16_t", dtypes.int64: "int64_t",
}  # fmt: skip
"""The names of C++ types that appear in some messages."""

_LARGEST = {kind: dtypes.finfo(kind).max for kind in (dtypes.float16, dtypes.float32)}

_UP_TO = {
    (float, dtypes.float32): _LARGEST[dtypes.float32], (float, dtypes.float64): math.inf,
    (int, dtypes.float32): 2**63, (int, dtypes.float64): 2**63, (int, dtypes.int64): 2**63 - 1,
}  # fmt: skip
"""Numbers up to these limits need no further check."""


def is_within(value: Any, kind: dtype) -> bool:
    """Return whether `value` is a Python number that an array of `kind` certainly represents."""
    limit = _UP_TO.get((type(value), kind))
    return limit is not None and -limit <= value <= limit


def scalar_array(value: Any, kind: dtype) -> Array:
    """Return a number as a zero-dimensional array of `kind`.

    Integer kinds truncate fractions, and unsigned kinds wrap negative integers around.

    Raises:
        RuntimeError: if the number is out of range, or has an imaginary part and `kind` is real.
        OverflowError: if it is an integer of more than 64 bits.
    """
    if is_within(value, kind):
        return numpy.array(value, kind.numpy)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert")
    if kind is dtypes.bool:
        return numpy.asarray(bool(value))
    if isinstance(value, (complex, numpy.complexfloating)) and not kind.is_complex:
        if value.imag != 0:
            raise _overflow(kind)
        value = value.real
    if kind.roles is not None:
        return _narrow(value, kind)
    if kind.is_floating_point or kind.is_complex:
        return _inexact(value, kind)
    limits = numpy.iinfo(kind.numpy)
    low = -int(limits.max) if limits.min == 0 and isinstance(value, int) else int(limits.min)
    if not low <= value <= int(limits.max):
        raise _overflow(kind)
    return numpy.asarray(int(value) % (1 << limits.bits), dtype=numpy.uint64).astype(kind.numpy)


def _inexact(value: Any, kind: dtype) -> Array:
    limit = _LARGEST.get(dtypes.float32 if kind is dtypes.complex64 else kind)
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    if limit is not None and any(math.isfinite(part) and abs(part) > limit for part in parts):
        raise _overflow(kind)
    with unwarned():
        return numpy.asarray(value, numpy.float32 if kind.itemsize == 2 else kind.numpy).astype(kind.numpy, copy=False)


def _narrow(value: Any, kind: dtype) -> Array:
    if kind.is_floating_point and not math.isnan(value):
        limits = dtypes.finfo(kind)
        if not limits.min <= value <= limits.max and not (kind is dtypes.float8_e5m2 and math.isinf(value)):
            raise _overflow(kind)
    return kept(cast(numpy.asarray(value), kind.numpy))


def _overflow(kind: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {C_NAMES[kind]} without overflow")


Dtype = numpy.dtype[Any]


class Number(dict[Dtype, Array]):
    """One number. `number[dtype]` is an array of this dtype, which is created on first access."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, dtype: Dtype) -> Array:
        array = self[dtype] = numpy.asarray(self.value).astype(dtype)
        array.flags.writeable = False
        return array


ZERO, HALF, ONE, TWO = Number(0), Number(0.5), Number(1), Number(2)

_tables: defaultdict[Dtype, dict[Any, Array]] = defaultdict(dict)


def typed(value: Any, dtype: Dtype) -> Array:
    """Return `value`, a number or an array of one number, as an array of `dtype`, from a cache if possible.

    A zero may be returned with the other sign.

    Raises:
        TypeError: if `value` is not a number.
        RuntimeError, OverflowError: if it is out of range.
    """
    table = _tables[dtype]
    try:
        found = table.get(value)
    except TypeError:
        if not isinstance(value, numpy.ndarray) or value.ndim:
            raise
        value = value.item()
        found = table.get(value)
    if found is None:
        if not isinstance(value, (int, float, complex, numpy.generic)):
            raise TypeError(f"expected a number, got {type(value).__name__}")
        if len(table) >= 1024:
            table.clear()
        found = table[value] = scalar_array(value, dtypes.from_numpy(dtype))
        found.flags.writeable = False
    return found
