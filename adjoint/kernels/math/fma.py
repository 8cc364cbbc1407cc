"""Numbers that are identical to PyTorch's: `a * b + c` with one rounding, and functions of the C library.

NumPy has no multiplication and addition with one rounding. For float32, it is computed in float64, where the product is
exact. For float64, it is computed with the error-free transformations of Dekker (1971) and Knuth, and with the rounding
to odd of Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd",
IEEE Transactions on Computers, 2008.

PyTorch's scalar loops of float64 call the C library. NumPy's functions are vectorized and faster, but sometimes differ
in the last bit. If the result is rounded to float32, this rarely matters. NumPy's functions are used in this case, and
only ambiguous numbers are computed again.
"""

import math
from collections.abc import Callable

import numpy
from numpy import ndarray

LOW_BITS = 0x1FFFFFFF
"""The bits of a float64 number that are lost when it is rounded to float32."""

MIDPOINT = 0x10000000
"""The same bits of a number halfway between two float32 numbers."""


def fma32(a: ndarray, b: float, c: float) -> ndarray:
    """Return `a * b + c`, rounded once, as a float32 array. `a` holds float32 numbers in float64, and is overwritten."""
    a *= b  # exact: 24 bits times 24 bits
    if c == 0.0:
        a += c  # makes -0.0 positive, as fused arithmetic does
        return a.astype(numpy.float32)
    total = a + c
    narrow = total.astype(numpy.float32)
    halfway = (total.view(numpy.int64) & LOW_BITS) == MIDPOINT
    if halfway.any():  # the first rounding may have hidden on which side the exact sum is
        products, totals = a[halfway], total[halfway]
        error = _sum_error(products, c, totals)
        direction = numpy.where(error == 0, totals, numpy.copysign(numpy.inf, error))
        narrow[halfway] = numpy.nextafter(totals, direction).astype(numpy.float32)
    return narrow


def is_exact(most: int, *numbers: float) -> bool:
    """Return whether float64 represents all sums of these float32 numbers, each multiplied by integers up to `most`."""
    exponents = [math.frexp(number)[1] for number in numbers if number]
    return not exponents or max(exponents) - min(exponents) + (most * len(numbers)).bit_length() <= 53 - 24


def _sum_error(a: ndarray, b: float | ndarray, total: ndarray) -> ndarray:
    """Return the exact sum of `a` and `b` minus `total`, which is the rounded sum (Knuth's TwoSum)."""
    back = total - a
    error: ndarray = a - (total - back)
    error += b - back
    return error


def fma64(a: ndarray, b: float, c: float) -> ndarray:
    """Return `a * b + c`, rounded once, for a float64 array `a` (a subnormal result may be rounded twice)."""
    if c == 0.0 or not (math.isfinite(b) and math.isfinite(c)):
        product: ndarray = a * b
        return product + c  # -0.0 becomes positive, as in fused arithmetic
    scale = _power_of_two(b, c)
    if scale != 1.0:
        result: ndarray = fma64(a, b / scale, c / scale) * scale
        return result
    high, low = _product(a, b)
    top = low + c
    top_error = _sum_error(low, c, top)
    total = high + top
    total_error = _sum_error(high, top, total)
    total += _odd_sum(top_error, total_error)
    return total


def _power_of_two(b: float, c: float) -> float:
    """Return a factor, usually 1, that is removed from `b` and `c` so that nothing in between overflows or underflows."""
    exponent = math.frexp(max(abs(b), abs(c)))[1]
    return 1.0 if -400 < exponent < 900 else 2.0**exponent if exponent < 1024 else 2.0**1023


def _product(a: ndarray, b: float) -> tuple[ndarray, ndarray]:
    """Return `a * b` exactly, as a rounded product and its error (Dekker)."""
    b_high, b_low = _split_number(b)
    a_high = a * 134217729.0
    a_high -= a_high - a
    a_low = a - a_high
    product = a * b
    error = a_high * b_high
    error -= product
    a_high *= b_low
    error += a_high
    error += a_low * b_high
    a_low *= b_low
    error += a_low
    return product, error


def _split_number(x: float) -> tuple[float, float]:
    """Return `x` as a sum of two numbers of 26 bits (Veltkamp)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _odd_sum(a: ndarray, b: ndarray) -> ndarray:
    """Return `a + b`, or if that is inexact the adjacent number whose last bit is 1, so that a later rounding is correct."""
    total: ndarray = a + b
    error = _sum_error(a, b, total)
    bits = total.view(numpy.int64)
    inexact_and_even = (error != 0) & (bits & 1 == 0)
    toward_zero = (error < 0) != (total < 0)
    bits += numpy.where(inexact_and_even, numpy.where(toward_zero, -1, 1), 0)
    return total


MARGIN = 2.0**-48
"""A relative error that exceeds the error of all NumPy functions by a factor of 8."""


def each(function: Callable[[float], float], x: ndarray) -> ndarray:
    """Return `function` of each element of a float64 array, with one call for each element."""
    return numpy.fromiter(map(function, x.ravel().tolist()), numpy.float64, x.size).reshape(x.shape)


def rounded(
    function: Callable[[float], float],
    approximate: Callable[[ndarray], ndarray],
    x: ndarray,
    finish: Callable[[ndarray], ndarray],
) -> ndarray:
    """Return `finish(function(x))` as float32, for a monotonic `finish`. `approximate` is NumPy's version of `function`."""
    values = approximate(x)
    result = finish(values * (1.0 - MARGIN)).astype(numpy.float32)
    doubtful = result != finish(values * (1.0 + MARGIN)).astype(numpy.float32)
    if doubtful.any():
        result[doubtful] = finish(each(function, x[doubtful])).astype(numpy.float32)
    return result
