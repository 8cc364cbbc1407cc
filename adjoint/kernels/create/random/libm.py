"""Functions that agree with PyTorch's to the last bit: those of the C library, or PyTorch's vector functions.

Scalar loops of float64 call the C library's. NumPy's functions are vectorized and faster, but sometimes differ in the
last bit. If the result is rounded to float32, this rarely matters. NumPy's functions are used then, and only ambiguous
numbers are computed again.

Normal numbers in float32 are drawn with a vectorised logarithm, sine and cosine. Their polynomials are those of Moshier's
Cephes library, 1989 (`logf.c`, `sinf.c`), for the arguments that occur here, evaluated with fused multiply-adds. Such a
step is done in float64, where the product is exact, and rounded to float32.
"""

from collections.abc import Callable

import numpy
from numpy import add, copyto, multiply, ndarray

MARGIN = 2.0**-48
"""A relative error that exceeds the error of all NumPy functions by a factor of 8."""


def each(function: Callable[[float], float], x: ndarray) -> ndarray:
    """`function` of every element of a float64 array, by calls of it."""
    return numpy.fromiter(map(function, x.ravel().tolist()), numpy.float64, x.size).reshape(x.shape)


def rounded(
    function: Callable[[float], float],
    approximate: Callable[[ndarray], ndarray],
    x: ndarray,
    finish: Callable[[ndarray], ndarray],
) -> ndarray:
    """`finish(function(x))` as float32, for a monotonic `finish`; `approximate` is NumPy's version of `function`."""
    values = approximate(x)
    result = finish(values * (1.0 - MARGIN)).astype(numpy.float32)
    doubtful = result != finish(values * (1.0 + MARGIN)).astype(numpy.float32)
    if doubtful.any():
        result[doubtful] = finish(each(function, x[doubtful])).astype(numpy.float32)
    return result


def _doubles(*numbers: float) -> tuple[ndarray, ...]:
    """Numbers rounded to float32, as float64 arrays of no dimension, which NumPy takes faster than Python's numbers."""
    return tuple(numpy.array(numpy.float32(number), numpy.float64) for number in numbers)


LOG = _doubles(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""log(1 + x) = x - x**2 / 2 + x**3 * (this polynomial in x)."""

COS = _doubles(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
"""cos(x) = 1 - x**2 / 2 + x**4 * (this polynomial in x**2)."""

SIN = _doubles(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
"""sin(x) = x + x**3 * (this polynomial in x**2)."""

QUARTER_PI = _doubles(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
"""π / 4 in three parts, so that a multiple of it can be subtracted without losing bits."""

FOUR_OVER_PI = numpy.array(1.27323954473516, numpy.float32)
LN2_HIGH = numpy.array(0.693359375, numpy.float32)
LN2_LOW = numpy.array(-2.12194440e-4, numpy.float32)
HALF = numpy.array(0.5, numpy.float32)
ONE = numpy.array(1.0, numpy.float32)

SQRT_HALF_BITS = numpy.array(0x3F3504F3, numpy.int32)
MANTISSA_BITS = numpy.array(0x7FFFFF, numpy.int32)
ONE_BIT, TWO_BIT, FOUR_BIT, MANTISSA_SIZE, SIGN_SHIFT = (numpy.array(n, numpy.int32) for n in (1, 2, 4, 23, 29))


def _polynomial(x: ndarray, coefficients: tuple[ndarray, ...], scratch: ndarray) -> ndarray:
    """The polynomial with these coefficients, highest power first, by Horner's rule; `x` and `scratch` are float64."""
    first, second, *others = coefficients
    multiply(x, first, scratch)
    add(scratch, second, scratch)
    result = scratch.astype(numpy.float32)
    for coefficient in others:
        _multiply_add(result, x, coefficient, scratch)
    return result


def _multiply_add(x: ndarray, factor: ndarray, addend: ndarray, scratch: ndarray) -> None:
    """`x = x * factor + addend` rounded once; `x` is float32, `factor` and `scratch` are float64."""
    copyto(scratch, x)
    multiply(scratch, factor, scratch)
    add(scratch, addend, scratch)
    copyto(x, scratch, "same_kind")


def log(x: ndarray) -> ndarray:
    """The natural logarithm of positive normal float32 numbers."""
    bits = x.view(numpy.int32) - SQRT_HALF_BITS
    exponent = (bits >> MANTISSA_SIZE).astype(numpy.float32)
    bits &= MANTISSA_BITS
    bits += SQRT_HALF_BITS  # those of the mantissa, between sqrt(1/2) and sqrt(2)
    x = bits.view(numpy.float32)
    x -= ONE
    square = multiply(x, x)
    scratch = numpy.empty(x.shape)
    result = _polynomial(x.astype(numpy.float64), LOG, scratch)
    result *= x
    _multiply_add(result, square.astype(numpy.float64), exponent * LN2_LOW, scratch)
    square *= HALF
    result -= square
    result += x
    exponent *= LN2_HIGH  # exact
    result += exponent
    return result


def sin_cos(x: ndarray) -> tuple[ndarray, ndarray]:
    """The sine and the cosine of float32 numbers in [0, 2π]."""
    octant = multiply(x, FOUR_OVER_PI).astype(numpy.int32)
    octant += ONE_BIT
    octant &= ~ONE_BIT
    multiple = octant.astype(numpy.float64)
    wide = x.astype(numpy.float64)
    scratch = numpy.empty(x.shape)
    for part in QUARTER_PI:  # only the last difference needs rounding
        wide -= multiply(multiple, part, scratch)
    x = wide.astype(numpy.float32)
    copyto(wide, x)
    square = multiply(x, x)
    wide_square = square.astype(numpy.float64)
    sine = _polynomial(wide_square, SIN, scratch)
    sine *= square
    _multiply_add(sine, wide, wide, scratch)
    cosine = _polynomial(wide_square, COS, scratch)
    cosine *= square
    square *= -HALF
    _multiply_add(cosine, wide_square, square, scratch)
    cosine += ONE
    _place_in_octant(sine.view(numpy.int32), cosine.view(numpy.int32), octant)
    return sine, cosine


def _place_in_octant(sine: ndarray, cosine: ndarray, octant: ndarray) -> None:
    """Exchange sine and cosine, given as bits, and set their signs, for angles of `octant` times π / 4 more."""
    difference = sine ^ cosine
    difference &= -(octant >> ONE_BIT & ONE_BIT)
    sine ^= difference
    cosine ^= difference
    sine ^= (octant & FOUR_BIT) << SIGN_SHIFT
    cosine ^= (octant + TWO_BIT & FOUR_BIT) << SIGN_SHIFT
