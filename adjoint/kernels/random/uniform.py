"""Numbers spread evenly over an interval: `rand`, `uniform_`, and the fractions that other samplers start from."""

import math
from typing import Any

import ml_dtypes
import numpy
from numpy import ndarray

from ..floating import BFLOAT16, type_name
from ..fused import fma32, fma64
from ..mt19937 import Stream
from .targets import as_real, c_name, require_floating, round_to, store

TILE = 1 << 15
"""How many numbers are made at a time; they and their scratch fit a core's second-level cache."""

FLOAT32, FLOAT64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)

LARGEST = {
    dtype: float(ml_dtypes.finfo(dtype).max) for dtype in (numpy.dtype(numpy.float16), BFLOAT16, FLOAT32, FLOAT64)
}

# As arrays of no dimension, which NumPy takes faster than Python's numbers.
LOW_24_BITS = numpy.array(2**24 - 1, numpy.uint32)
LOW_24_BITS_OF_64 = numpy.array(2**24 - 1, numpy.uint64)
LOW_53_BITS = numpy.array(2**53 - 1, numpy.uint64)
UNIT_24 = numpy.array(2.0**-24, numpy.float32)
UNIT_53 = numpy.array(2.0**-53)


def fractions24(stream: Stream, n: int) -> ndarray:
    """`n` float32 numbers in [0, 1): the low 24 bits of a word each."""
    words = stream.words32(n)
    if words.itemsize == 4:
        words &= LOW_24_BITS
        values = words.view(numpy.int32).astype(numpy.float32)  # signed integers convert faster
    else:
        words &= LOW_24_BITS_OF_64
        values = words.astype(numpy.float32)
    values *= UNIT_24
    return values


def fractions53(stream: Stream, n: int) -> ndarray:
    """`n` float64 numbers in [0, 1): the low 53 bits of two words each."""
    words = stream.words64(n)
    words &= LOW_53_BITS
    values = words.view(numpy.int64).astype(numpy.float64)
    values *= UNIT_53
    return values


def fractions(stream: Stream, n: int, dtype: "numpy.dtype[Any]") -> ndarray:
    """`n` numbers in [0, 1) of the type that samplers of `dtype` start from: float64, or float32 for the others."""
    return fractions53(stream, n) if dtype == FLOAT64 else fractions24(stream, n)


def rand(stream: Stream, shape: tuple[int, ...], dtype: "numpy.dtype[Any]") -> ndarray:
    """Numbers evenly spread over [0, 1), a new array; of a complex type, both parts are.

    Raises:
        NotImplementedError: if `dtype` is neither floating-point nor complex.
    """
    n = math.prod(shape)
    if n > TILE or dtype not in (FLOAT32, FLOAT64):
        return uniform_(stream, numpy.empty(shape, dtype))
    with stream.lock:
        return fractions(stream, n, dtype).reshape(shape)


def uniform_(stream: Stream, out: ndarray, from_: float = 0.0, to: float = 1.0) -> ndarray:
    """Fill `out`, of a floating-point or complex type, with numbers evenly spread over [from_, to); returns `out`.

    Raises:
        NotImplementedError: if `out` is of another type.
        RuntimeError: if the limits are in the wrong order, or they or their distance exceed what the type can hold.
    """
    if out.dtype.kind == "c":
        if out.size:
            uniform_(stream, as_real(out), from_, to)
        return out
    require_floating("check_uniform_bounds", out.dtype)
    if not (from_ == 0.0 and to == 1.0):
        _check_bounds(from_, to, out.dtype)
    with stream.lock:
        if out.size <= TILE or not out.flags.c_contiguous:
            return store(out, _interval(stream, out.size, from_, to, out.dtype))
        flat = out.reshape(-1)
        for start in range(0, out.size, TILE):
            part = flat[start : start + TILE]
            part[...] = _interval(stream, part.size, from_, to, out.dtype)
    return out


def _check_bounds(from_: float, to: float, dtype: "numpy.dtype[Any]") -> None:
    largest = LARGEST[dtype]
    for name, limit in (("from", from_), ("to", to)):
        if not -largest <= limit <= largest:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    if to - from_ > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{type_name(dtype)}>::max(), but found to={to:g} and "
            f"from={from_:g} which result in to-from to exceed the limit"
        )


def _interval(stream: Stream, n: int, from_: float, to: float, dtype: "numpy.dtype[Any]") -> ndarray:
    """`n` numbers in [from_, to) of type `dtype`; what rounding would make `to` becomes `from_`."""
    unit = from_ == 0.0 and to == 1.0
    if unit and dtype in (FLOAT32, FLOAT64):
        return fractions(stream, n, dtype)
    if dtype == FLOAT64:
        values = fma64(fractions53(stream, n), to - from_, from_)
        low, high = from_, to
    else:
        low, high = float(numpy.float32(from_)), float(numpy.float32(to))
        values = fractions24(stream, n)
        if not unit:
            values = fma32(values.astype(FLOAT64), float(numpy.float32(high - low)), low)
    if dtype != FLOAT64 and dtype != FLOAT32:
        values = round_to(values, dtype)
        low, high = round_to(numpy.array((low, high)), dtype)
    numpy.copyto(values, low, "unsafe", values == high)
    return values
