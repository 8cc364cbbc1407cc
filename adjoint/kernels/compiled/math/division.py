"""Quotients and remainders of integers.

A single divisor is replaced by its reciprocal with a correction, and quotients by many divisors are computed in float64.

Processors divide integers one at a time, in 10 to 40 steps each. For a number of at most 51 bits, the product with a
reciprocal in float64 is a quotient that is wrong by at most one. The integer part of the quotient of two such numbers
in float64 is exact.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *

_EXACT = 1 << 51

_WEIGHT = 8
"""The number of bytes that can be moved while one number is divided, in addition to the bytes of the number."""


@loops
def divided(x: T, divisor: i64, inverse: f64, W: Static, FLOOR: Static, REMAINDER: Static) -> Static:
    """Divide numbers of at most 51 bits by `divisor`, whose magnitude has the reciprocal `inverse`."""
    zero = vector(i64, W)(0)
    size = where(divisor < 0, -divisor, divisor)
    turned = (x < zero) if not FLOOR else (vector(i64, W)(divisor) < zero)  # -x is divided instead of x
    dividend = where(turned, -x, x)
    quotient = i64(floor(f64(dividend) * inverse))
    left = dividend - quotient * size
    quotient = where(left < zero, quotient - 1, where(left >= size, quotient + 1, quotient))
    left = dividend - quotient * size
    if REMAINDER:
        result = where(turned, -left, left)
    elif FLOOR:
        result = quotient
    else:
        result = where(turned != (vector(i64, W)(divisor) < zero), -quotient, quotient)
    return result


@loops(plain=True)
def divide(
    out: Pointer[T], x: Pointer[T], divisor: Int, inverse: f64, CHECKED: Static, FLOOR: Static, REMAINDER: Static, W: Static,
    n: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Divide blocks of `W` numbers from `start` to `stop`. `CHECKED`: whether some numbers may have more than 51 bits."""
    for block in range(start, stop):
        i = block * W
        if i + W <= n:
            numbers = vector(i64, W)(load(x + i, W))
            large = reduce_or((numbers >= _EXACT) | (numbers <= -_EXACT)) if CHECKED else False
            if large:
                divide_one_by_one(out + i, x + i, divisor, W, FLOOR, REMAINDER)
            else:
                store(out + i, vector(T, W)(divided(numbers, divisor, inverse, W, FLOOR, REMAINDER)))
        else:
            divide_one_by_one(out + i, x + i, divisor, n - i, FLOOR, REMAINDER)


@loops
def one_divided(number: Int, divisor: Int, FLOOR: Static, REMAINDER: Static) -> Int:
    """Divide one number of any size."""
    quotient = number // divisor
    left = number - quotient * divisor
    if not FLOOR:
        upward = (left != 0) & ((number < 0) != (divisor < 0))
        quotient = quotient + 1 if upward else quotient
        left = number - quotient * divisor
    return left if REMAINDER else quotient


@loops(plain=True)
def divide_one_by_one(out: Pointer[T], x: Pointer[T], divisor: Int, n: Int, FLOOR: Static, REMAINDER: Static) -> None:
    """Divide a few numbers of any size."""
    for i in range(n):
        out[i] = T(one_divided(i64(x[i]), divisor, FLOOR, REMAINDER))


@loops
def divided_each(x: T, y: T, FLOOR: Static, REMAINDER: Static) -> Static:
    """Divide numbers of at most 51 bits, in vectors of i64, by nonzero numbers."""
    quotient = i64(trunc(f64(x) / f64(y)))
    left = x - quotient * y
    if FLOOR:
        down = (left != 0) & ((left < 0) != (y < 0))
        quotient = where(down, quotient - 1, quotient)
        left = where(down, left + y, left)
    return left if REMAINDER else quotient


@loops(plain=True)
def divide_each(
    out: Pointer[T], zeros: Pointer[i64], x: Pointer[T], y: Pointer[T], n: Int, CHECKED: Static, FLOOR: Static,
    REMAINDER: Static, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Divide blocks of `W` numbers from `start` to `stop` by the corresponding divisors. `zeros`: becomes 1 if a divisor is 0."""
    for block in range(start, stop):
        i = block * W
        small = i + W <= n
        if small:
            a, b = vector(i64, W)(load(x + i, W)), vector(i64, W)(load(y + i, W))
            wrong = b == 0
            if CHECKED:
                wrong = wrong | (a >= _EXACT) | (a <= -_EXACT) | (b >= _EXACT) | (b <= -_EXACT)
            small = not reduce_or(wrong)
            if small:
                store(out + i, vector(T, W)(divided_each(a, b, FLOOR, REMAINDER)))
        if not small:
            for k in range(i, minimum(i + W, n)):
                number, divisor = i64(x[k]), i64(y[k])
                if divisor == 0:
                    zeros[0] = 1
                    divisor = i64(1)
                alone = divisor == -1  # the least integer divided by -1 overflows
                result = one_divided(number, i64(1) if alone else divisor, FLOOR, REMAINDER)
                out[k] = T(-result if alone else result)  # the remainder of the least integer is 0


def by_numbers(x: ndarray, divisors: ndarray, rounding: str, remainder: bool) -> Any:
    """Divide `x` by the integers `divisors` elementwise, and return the rounded quotients ("floor", "trunc") or the remainders.

    Return NotImplemented if there is no loop for the dtype.

    Raises:
        RuntimeError: if one of `divisors` is 0.
    """
    if x.dtype.char not in "bhilB" or x.dtype != divisors.dtype or x.shape != divisors.shape or not x.size:
        return NotImplemented
    if not x.flags.c_contiguous or not divisors.flags.c_contiguous:
        return NotImplemented
    out, zeros = numpy.empty(x.shape, x.dtype), numpy.zeros(1, numpy.int64)
    width = HOST.vector_bytes // 8
    function = divide_each.compiled(
        T=type_of(x.dtype), CHECKED=x.dtype.itemsize == 8, FLOOR=rounding == "floor", REMAINDER=remainder, W=width
    )
    places = [out, zeros, x, divisors]
    launch(function, -(-x.size // width), width * (3 * x.itemsize + _WEIGHT), *places, x.size)
    if zeros[0]:
        raise RuntimeError("ZeroDivisionError")
    return out


def by_number(x: ndarray, divisor: int, rounding: str, remainder: bool) -> Any:
    """Divide `x` by a nonzero integer, and return the rounded quotients ("floor", "trunc") or the remainders.

    Return NotImplemented if there is no loop for the dtype.
    """
    if x.dtype.char not in "bhilB" or not x.flags.c_contiguous or not x.size:
        return NotImplemented
    if abs(divisor) >= _EXACT or divisor == -1:  # the least integer divided by -1 overflows
        return NotImplemented
    out = numpy.empty(x.shape, x.dtype)
    width = HOST.vector_bytes // 8
    function = divide.compiled(
        T=type_of(x.dtype), CHECKED=x.dtype.itemsize == 8, FLOOR=rounding == "floor", REMAINDER=remainder, W=width
    )
    blocks = -(-x.size // width)
    launch(
        function, blocks, width * (2 * x.itemsize + _WEIGHT), out, x, divisor, 1 / abs(divisor), x.size
    )  # fmt: skip
    return out
