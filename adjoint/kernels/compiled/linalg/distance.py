"""Distances between rows, computed separately for each pair, and their gradients. No array of all differences is created."""

from __future__ import annotations

from ....codegen.llvm.elementary_power import pow as power
from ....codegen.llvm.kernels import *

_ONE, _TWO, _MOST, _ANY = range(4)
"""The norms: the sum of magnitudes, the Euclidean norm, the maximum magnitude, and norms of any other order."""

_WORK = {_ONE: 1, _TWO: 1, _MOST: 2, _ANY: 30}
"""The time to compute one difference, per byte of its elements. The unit is the time to move one byte."""


@loops
def combined(total: T, difference: T, order: T, NORM: Static) -> T:
    """Add one more difference (a number or a vector) to a norm whose root has not been taken yet."""
    if NORM == _TWO:
        result = fma(difference, difference, total)
    elif NORM == _ONE:
        result = total + fabs(difference)
    elif NORM == _MOST:
        result = maximum(total, fabs(difference))
    else:
        result = total + power(fabs(difference), order)
    return result


@loops
def norm_of(a: Pointer[T], b: Pointer[T], width: Int, order: T, NORM: Static, W: Static) -> T:
    """Return the norm of the difference of two rows."""
    first = vector(T, W)(0)
    second = vector(T, W)(0)
    orders = broadcast(order, W)
    k = 0
    while k + 2 * W <= width:
        first = combined(first, load(a + k, W) - load(b + k, W), orders, NORM)
        second = combined(second, load(a + (k + W), W) - load(b + (k + W), W), orders, NORM)
        k += 2 * W
    while k + W <= width:
        first = combined(first, load(a + k, W) - load(b + k, W), orders, NORM)
        k += W
    total = reduce_max(maximum(first, second)) if NORM == _MOST else reduce_add(first + second)
    while k < width:
        total = combined(total, a[k] - b[k], order, NORM)
        k += 1
    if NORM == _TWO:
        total = sqrt(total)
    if NORM == _ANY:
        total = power(total, T(1) / order)
    return total


@loops
def place_of_pair(i: Int, j: Int, count: Int) -> Int:
    """Return the index of the distance of rows i < j of `count` rows among the distances of all pairs."""
    return i * count - i * (i + 1) // 2 + (j - i - 1)


@loops(T=FLOATS, copied="x y")
def distances(
    out: Pointer[T], x: Pointer[T], y: Pointer[T], rows: Int, others: Int, width: Int, order: T, NORM: Static, PAIRS: Static,
    W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the distances from rows of `x` to all rows of `y` of the batch, or (`PAIRS`) only to later rows."""
    for i in range(start, stop):
        batch = i // rows
        for j in range(i + 1 if PAIRS else 0, others):
            place = place_of_pair(i, j, others) if PAIRS else i * others + j
            out[place] = norm_of(x + i * width, y + (batch * others + j) * width, width, order, NORM, W)


@loops
def add_slopes(
    total: Pointer[T], a: Pointer[T], b: Pointer[T], grad: T, norm: T, order: T, width: Int, NORM: Static
) -> None:
    """Add `grad` times the derivative of the norm of `a - b`, which is 0 at corners."""
    scale = grad / norm if NORM == _TWO else grad
    for k in vectorized(width):
        difference = a[k] - b[k]
        if NORM == _TWO:
            slope = scale * difference
        else:
            sign = where(difference > 0, grad, where(difference < 0, -grad, where(difference == 0, T(0), difference)))
            slope = sign
            if NORM == _MOST:
                slope = where(fabs(difference) == norm, sign, where(difference == difference, T(0), difference))
            if NORM == _ANY:
                slope = where(difference == 0, T(0), sign * power(fabs(difference) / norm, order - 1))
        total[k] = total[k] + slope


@loops(T=FLOATS, copied="grad x y norms")
def slopes(
    out: Pointer[T], grad: Pointer[T], x: Pointer[T], y: Pointer[T], norms: Pointer[T], rows: Int, others: Int, width: Int,
    order: T, NORM: Static, PAIRS: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the gradients of rows of `x` from the gradients of `distances`."""
    for i in range(start, stop):
        batch = i // rows
        for k in vectorized(width):
            out[i * width + k] = T(0)
        for j in range(others):
            place = place_of_pair(minimum(i, j), maximum(i, j), others) if PAIRS else i * others + j
            apart = i != j if PAIRS else True
            if apart:
                norm = norms[place]
                if (norm != 0) | (NORM == _ONE) | (NORM == _MOST):
                    other = y + (batch * others + j) * width
                    add_slopes(out + i * width, x + i * width, other, grad[place], norm, order, width, NORM)


def _norm(order: float) -> int:
    return {1.0: _ONE, 2.0: _TWO, math.inf: _MOST}.get(order, _ANY)


def distances_of(x: ndarray, y: ndarray, p: float, pairs: bool) -> Any:
    """Return the `p`-norms between rows of shapes (..., P, M) and (..., R, M), or between the pairs of rows of one matrix."""
    if p == 0 or not x.size or not y.size:
        return NotImplemented
    rows, others, width = x.shape[-2], y.shape[-2], x.shape[-1]
    shape = (rows * (rows - 1) // 2,) if pairs else (*x.shape[:-1], others)
    out = numpy.empty(shape, x.dtype)
    norm = _norm(p)
    work = others * width * x.itemsize * _WORK[norm]
    return distances.run(math.prod(x.shape[:-1]), work, out, x, y, rows, others, width, p, NORM=norm, PAIRS=pairs)


def gradient_of(grad: ndarray, x: ndarray, y: ndarray, p: float, norms: ndarray, pairs: bool) -> Any:
    """Return the gradient of `x` from the gradient of its distances to `y` and the distances."""
    if p == 0 or not x.size or not y.size:
        return NotImplemented
    rows, others, width = x.shape[-2], y.shape[-2], x.shape[-1]
    out = numpy.empty(x.shape, x.dtype)
    norm = _norm(p)
    work = others * width * x.itemsize * _WORK[norm]
    arrays = out, grad, x, y, norms
    return slopes.run(math.prod(x.shape[:-1]), work, *arrays, rows, others, width, p, NORM=norm, PAIRS=pairs)
