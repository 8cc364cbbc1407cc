"""Uniform numbers: fractions (from which other samplers start), numbers in an interval (`rand`, `uniform_`), and integers."""

import operator
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy
from numpy import ndarray

from ...._runtime.tracebacks import warn
from ....codegen.plans import compiled
from ....dtypes import limits_of
from ...math.fma import fma32, fma64
from ...runtime.costs import STEPS, THREADED, TILE
from ...runtime.floating import FLOAT32, FLOAT64, INT64, c_name, is_floating, refuse, type_name
from ...runtime.layout import row_major
from ...runtime.narrow_array import is_narrow
from ..mt19937 import Drawing, Stream
from .targets import as_real, require_floating, round_to, store

# Arrays without dimensions, which NumPy processes faster than Python's numbers.
LOW_24_BITS = numpy.array(2**24 - 1, numpy.uint32)
LOW_53_BITS = numpy.array(2**53 - 1, numpy.uint64)
UNIT_24 = numpy.array(2.0**-24, numpy.float32)
UNIT_53 = numpy.array(2.0**-53)


def in_tiles(draw: Callable[..., ndarray], stream: Stream, *parameters: ndarray) -> ndarray:
    """Return numbers that `draw` computes from float64 tiles, which it may change, of parameters of one shape and type."""
    result = numpy.empty(parameters[0].shape, parameters[0].dtype)
    flat, numbers = [row_major(array).reshape(-1) for array in parameters], result.reshape(-1)
    with stream.lock:
        for start in range(0, numbers.size, TILE):
            part = slice(start, start + TILE)
            numbers[part] = round_to(draw(*(array[part].astype(FLOAT64) for array in flat), stream), result.dtype)
    return result


def fractions24(stream: Stream, n: int) -> ndarray:
    """Return `n` float32 numbers in [0, 1), each from the low 24 bits of a word."""
    words = stream.words32(n)
    words &= LOW_24_BITS
    values = words.view(numpy.int32).astype(numpy.float32)  # signed integers convert faster
    values *= UNIT_24
    return values


def fractions53(stream: Stream, n: int) -> ndarray:
    """Return `n` float64 numbers in [0, 1), each from the low 53 bits of two words."""
    words = stream.words64(n)
    words &= LOW_53_BITS
    values = words.view(numpy.int64).astype(numpy.float64)
    values *= UNIT_53
    return values


def fractions(stream: Stream, shape: Any, dtype: "numpy.dtype[Any]") -> ndarray:
    """Return numbers in [0, 1) for samplers of `dtype`, in float64 for float64, and in float32 for other types."""
    out = numpy.empty(shape, dtype if dtype is FLOAT64 else FLOAT32)
    if _FRACTIONS.fill(out, stream) is not NotImplemented:
        return out
    return (fractions53 if dtype is FLOAT64 else fractions24)(stream, out.size).reshape(shape)


_FRACTIONS = Drawing("create.twister.fractions", least=THREADED, cost=1)
_BETWEEN = Drawing("create.twister.between", least=THREADED, cost=20)


def is_filled_at_once(out: ndarray) -> bool:
    """Return whether one call of a compiled loop may fill the array."""
    return (out.dtype is FLOAT32 or out.dtype is FLOAT64) and out.size <= TILE and bool(out.flags.c_contiguous)


def uniform_(stream: Stream, out: ndarray, from_: float = 0.0, to: float = 1.0) -> ndarray:
    """Fill the floating-point or complex array `out` with uniform numbers in [from_, to), and return it."""
    unit = from_ == 0.0 and to == 1.0
    if is_filled_at_once(out):
        if not unit:
            _check_bounds(from_, to, out.dtype)
        with stream.lock:
            if unit:
                found = _FRACTIONS.fill(out, stream)
            else:
                found = _BETWEEN.fill(out, stream, *_limits(from_, to, out.dtype))
            if found is not NotImplemented:
                return out
    if out.dtype.kind in "cW":
        if out.size:
            uniform_(stream, as_real(out), from_, to)
        return out
    require_floating("check_uniform_bounds", out.dtype)
    if not unit:
        _check_bounds(from_, to, out.dtype)
    with stream.lock:
        return in_parts(out, lambda n: _interval(stream, n, from_, to, out.dtype))


def in_parts(out: ndarray, make: Callable[[int], ndarray]) -> ndarray:
    """Fill `out` with the numbers that `make(n)` creates. A large array is filled part by part."""
    if out.size <= TILE or not out.flags.c_contiguous:
        return store(out, make(out.size))
    flat = out.reshape(-1)
    for start in range(0, out.size, TILE):
        part = flat[start : start + TILE]
        part[...] = round_to(make(part.size), out.dtype)
    return out


def _check_bounds(from_: float, to: float, dtype: "numpy.dtype[Any]") -> None:
    largest = largest_number(dtype)
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


def _limits(from_: float, to: float, dtype: "numpy.dtype[Any]") -> tuple[float, float, float]:
    """Return the limits and their difference, rounded to float32 unless `dtype` is float64."""
    if dtype == FLOAT64:
        return float(from_), float(to), float(to - from_)
    low, high = float(numpy.float32(from_)), float(numpy.float32(to))
    return low, high, float(numpy.float32(high - low))


def _interval(stream: Stream, n: int, from_: float, to: float, dtype: "numpy.dtype[Any]") -> ndarray:
    """Return `n` numbers in [from_, to) of type `dtype`. Numbers that rounding would change to `to` become `from_`."""
    unit = from_ == 0.0 and to == 1.0
    if unit and dtype in (FLOAT32, FLOAT64):
        return fractions(stream, n, dtype)
    low, high, span = _limits(from_, to, dtype)
    if dtype == FLOAT64:
        values = fma64(fractions53(stream, n), span, low)
    else:
        values = fractions24(stream, n)
        if not unit:
            values = fma32(values.astype(FLOAT64), span, low)
    if dtype != FLOAT64 and dtype != FLOAT32:
        values = round_to(values, dtype)
        low, high = round_to(numpy.array((low, high)), dtype)
    numpy.copyto(values, low, "unsafe", values == high)
    return values


WIDE_RANGE = 2**28
"""If there are at least this many possible values, each number is made from 64 bits, so that remainders are more uniform."""

UNSIGNED = tuple(numpy.dtype(name) for name in ("uint16", "uint32", "uint64"))


def random_(stream: Stream, out: ndarray, from_: int | None = None, to: int | None = None) -> ndarray:
    """Fill `out` with integers in [from_, to), and return `out`.

    Without `to`, the upper limit is the largest value of an integer type, or the number up to which a floating-point
    type represents all integers. Without both limits, the lower limit is 0. (PyTorch's `random_(to)` is `from_=0`
    here.)
    """
    if from_ is None:
        if not out.size:
            return out
    else:
        from_, to = operator.index(from_), None if to is None else operator.index(to)
        if to is None and from_ == -(2**63):
            return _fill_all_64_bits(stream, out)
    first, count, wide, messages = _interval_of_integers(from_, to, out.dtype)
    for message in messages:
        warn(message)
    with stream.lock:
        if not wide and out.size <= TILE:
            target = out if out.dtype in _DRAWN and out.flags.c_contiguous else numpy.empty(out.size, INT64)
            if _INTEGERS.fill(target, stream, first, count) is not NotImplemented:
                return out if target is out else store(out, target)
        return in_parts(out, lambda n: _integers(stream, n, first, count, wide))


@lru_cache(256)
def _interval_of_integers(
    from_: int | None, to: int | None, dtype: "numpy.dtype[Any]"
) -> tuple[int, int, bool, Sequence[str]]:
    """Return the first integer, the number of integers, whether each is made from 64 bits, and warnings."""
    messages: Sequence[str] = ()
    if from_ is None:
        if dtype.kind == "c" or dtype in UNSIGNED or is_narrow(dtype):
            raise refuse("random_kernel_cpu", dtype)
        return 0, _largest(dtype) + 1, dtype.itemsize == 8, messages
    if not -(2**63) <= from_ < 2**63 or (to is not None and not -(2**63) <= to < 2**63):
        raise ValueError("Overflow when unpacking long long")
    if to is None:
        to = _upper_limit(from_, dtype)
    elif from_ >= to:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={from_} >= to={to}")
    if dtype is not INT64:
        if dtype.kind in "cW":
            raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
        if is_narrow(dtype):
            raise refuse("random_update_from_to", dtype)
        if is_floating(dtype):
            from_, to = _limits_within_precision(from_, to, dtype)
        messages = _warnings_of_limits(from_, to, dtype)
    return from_, to - from_, to - from_ >= WIDE_RANGE, messages


def _fill_all_64_bits(stream: Stream, out: ndarray) -> ndarray:
    """Fill `out` with signed integers of 64 random bits."""
    dtype = out.dtype
    if out.size and (dtype.kind in "bc" or dtype in UNSIGNED or dtype == numpy.float16):
        raise refuse("random_full_64_bits_range_kernel_cpu", dtype)
    if out.size and dtype != numpy.int64 and not is_floating(dtype):
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    with stream.lock:
        return in_parts(out, lambda n: _integers(stream, n, 0, 2**64, wide=True))


def _upper_limit(from_: int, dtype: "numpy.dtype[Any]") -> int:
    """Return the upper limit if only the lower limit is given."""
    if dtype.kind in "cW":
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    if dtype == numpy.uint64 and from_ >= 0:
        raise RuntimeError(f"to - 1 is out of bounds for {c_name(dtype)}")
    largest = _largest(dtype)
    if is_floating(dtype):
        start = _lower_limit_within_precision(from_, dtype)
        if start > largest:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={start} > to_inc={largest}"
            )
    return largest + 1


@cache
def largest_number(dtype: "numpy.dtype[Any]") -> float:
    """Return the largest number of a floating-point type."""
    return float(limits_of(dtype).max)


def _digits(dtype: "numpy.dtype[Any]") -> int:
    """Return the number of binary digits of a floating-point type."""
    return int(limits_of(dtype).nmant) + 1


def _largest(dtype: "numpy.dtype[Any]") -> int:
    """Return the largest integer that `random_` draws for a type without a limit."""
    if is_floating(dtype):
        return 1 << _digits(dtype)
    return 1 if dtype.kind == "b" else min(int(numpy.iinfo(dtype).max), 2**63 - 1)


def _limits_within_precision(from_: int, to: int, dtype: "numpy.dtype[Any]") -> tuple[int, int]:
    """Return the limits, moved inwards if rounding an integer between them to `dtype` could leave the interval."""
    start, stop = _lower_limit_within_precision(from_, dtype), to
    last = _rounded(to - 1, dtype)
    if last >= to:
        stop = last - _step(to - 1, dtype)
    if start >= stop:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
            f"from={start} >= to={stop}"
        )
    return start, stop


def _lower_limit_within_precision(from_: int, dtype: "numpy.dtype[Any]") -> int:
    second = _rounded(from_ + 1, dtype)
    return second + _step(from_ + 1, dtype) if second < from_ else from_


def _rounded(value: int, dtype: "numpy.dtype[Any]") -> int:
    """Return `value` after a conversion to `dtype` and back to a 64-bit integer, as x86 processors convert it."""
    number = round_to(numpy.array(value, numpy.int64), dtype).astype(numpy.float64)
    return round(float(number)) if -(2.0**63) <= number < 2.0**63 else -(2**63)


def _step(value: int, dtype: "numpy.dtype[Any]") -> int:
    """Return the distance between numbers of the floating-point type around `value`."""
    return 1 << max(abs(value).bit_length() - _digits(dtype), 0)


def _warnings_of_limits(from_: int, to: int, dtype: "numpy.dtype[Any]") -> list[str]:
    """Return warnings about limits that the type cannot represent. Raise an error about limits outside its range."""
    found = []
    if is_floating(dtype):
        largest = largest_number(dtype)
        least, most = -largest, largest
    elif dtype.kind == "b":
        least, most = 0, 1
    else:
        least, most = int(numpy.iinfo(dtype).min), int(numpy.iinfo(dtype).max)
    for name, limit in (("from", from_), ("to - 1", to - 1)):
        if not least <= limit <= most:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
        digits = _digits(dtype) if is_floating(dtype) else 64
        if abs(limit) > 2**digits:
            found.append(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {c_name(dtype)} "
                "can support discrete uniform distribution only within this range. This warning will become an error "
                "in version 1.7 release, please fix the code in advance"
            )
    return found


_INTEGERS = Drawing("create.twister.integers", least=TILE, cost=1)
_DRAWN = frozenset(map(numpy.dtype, ("int64", "int32", "float32", "float64")))
"""The dtypes of arrays that compiled loops fill with integers."""


def _integers(stream: Stream, n: int, from_: int, size: int, wide: bool) -> ndarray:
    """Return `n` integers in [from_, from_ + size), in a type that represents them modulo 2**64."""
    if wide:
        values = _remainder(stream.words64(n), size)
        values += numpy.uint64(from_ % 2**64)  # wraps around
        return values.view(numpy.int64)
    values = _remainder(stream.words32(n), size)
    if not from_:
        return values
    return (values.view(numpy.int64) if values.itemsize == 8 else values) + numpy.int64(from_)


def _remainder(words: ndarray, size: int) -> ndarray:
    """Compute `words % size` in place. NumPy divides by one number several times faster than it computes remainders."""
    if size >> 8 * words.itemsize:
        return words
    divisor = words.dtype.type(size)
    quotient = words // divisor
    quotient *= divisor
    words -= quotient
    return words


def randperm(stream: Stream, n: int, dtype: "numpy.dtype[Any]") -> ndarray:
    """Return the integers below `n` in random order as a new array of shape (n,).

    The shuffle is the algorithm of Fisher and Yates in Durstenfeld's form, from front to back (Algorithm 235,
    Communications of the ACM, 1964).
    """
    _check_permutation(n, dtype)
    if n < 2:
        return numpy.zeros(n, dtype)
    order: ndarray = numpy.empty(n, INT64)
    with stream.lock:
        if _PERMUTATION.run(n, order, stream) is not NotImplemented:
            return round_to(order, dtype)
        words = stream.words32(n - 1)
    partners: ndarray = numpy.arange(n)
    partners[:-1] += words % numpy.arange(n, 1, -1, dtype=numpy.uint32)
    return round_to(_shuffled_one_by_one(partners) if n < STEPS else _shuffled(partners), dtype)


_PERMUTATION = compiled("create.twister.permutation", least=STEPS, cost=1)


def _shuffled_one_by_one(partners: ndarray) -> ndarray:
    """Return a permutation of the integers below n. Each position, from the front, exchanges its content with its partner."""
    order = list(range(len(partners)))
    for place, partner in enumerate(partners.tolist()):
        order[place], order[partner] = order[partner], order[place]
    return numpy.array(order, numpy.int64)


def _shuffled(partners: ndarray) -> ndarray:
    """Return the same result for large n without executing the exchanges.

    If an earlier position has the partner `i`, the last such position has moved its content to position `i` before the
    turn of `i`. Otherwise position `i` contains `i` at its turn. All chains of such positions are followed together, by
    doubling. A position finally contains the content that its partner had at the turn of the position. This content
    came from the last earlier position with the same partner.
    """
    places = numpy.arange(len(partners))
    held = places.copy()
    moved = (partners != places).nonzero()[0]
    held[partners[moved]] = moved  # the last one wins
    while not numpy.array_equal(held, following := held.take(held)):
        held = following
    turns = _stable_order(partners)
    targets = partners.take(turns)
    values = numpy.where(targets == turns, held.take(targets), targets)
    repeated = (targets[1:] == targets[:-1]).nonzero()[0]
    values[repeated + 1] = held.take(turns.take(repeated))
    result = numpy.empty_like(partners)
    result[turns] = values
    return result


def _stable_order(keys: ndarray) -> ndarray:
    """Return the stable `argsort` of integers in [0, 2**32), by NumPy's radix sort for 16 bits."""
    order = numpy.argsort(keys.astype(numpy.uint16), kind="stable")
    if len(keys) <= 2**16:
        return order
    high = (keys >> 16).astype(numpy.uint16)
    return order.take(numpy.argsort(high.take(order), kind="stable"))


def _check_permutation(n: int, dtype: "numpy.dtype[Any]") -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype is INT64:
        return
    if dtype.kind in "bc" or dtype in UNSIGNED or is_narrow(dtype):
        raise refuse("randperm", dtype)
    if dtype.kind in "iu" and n - 1 > int(numpy.iinfo(dtype).max):
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    if dtype == numpy.float16 and n > 2049:
        raise RuntimeError("n cannot be greater than 2049 for Half type.")
