"""Elimination: triangular factors of general and of symmetric matrices, and substitution in triangular systems.

NumPy provides LAPACK functions for solutions, but not for factors. The functions here take stacks of matrices without
further checks.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.plans import NUMPY, Plan, compiled
from ..runtime.costs import FIRST_CACHE, PIECEWISE, SCANNED, SHORT
from ..runtime.floating import Array, unwarned
from ..shape.joining import tril, triu
from . import LinAlgError
from .stacks import by_lapack


def is_small(a: Array) -> bool:
    """Return whether compiled loops eliminate the matrices faster, column by column, than LAPACK."""
    return a.shape[-2] * a.shape[-1] < SCANNED


def column_major(array: Array) -> Array:
    """Return `array` with the elements of each matrix in column-major order, as LAPACK and PyTorch return them."""
    return numpy.ascontiguousarray(array.mT).mT if array.ndim > 1 else array


def magnitude(array: Array) -> Array:
    """Return the value by which LAPACK chooses pivots: for complex numbers, the sum of the absolute values of both parts."""
    return numpy.abs(array.real) + numpy.abs(array.imag) if array.dtype.kind == "c" else numpy.abs(array)


# --- general matrices -----------------------------------------------------------------------------------------


_PANEL = 32
"""The number of columns that compiled loops eliminate one by one. They also eliminate matrices that stay in the cache."""


def lu_factor(self: Array) -> tuple[Array, Array]:
    """Eliminate with partial pivoting. Return both triangular factors in one matrix, and the exchanged rows from 1 on."""
    if self.size and not is_small(self):
        found = by_lapack("factored", self)
        if found is not NotImplemented:
            work, pivots, _ = found
            rows, columns = self.shape[-2:]
            return work.reshape(*self.shape[:-2], columns, rows).mT, pivots.astype(numpy.int32).reshape(
                *self.shape[:-2], -1
            )
    elif (result := _small_factors(self)) is not NotImplemented:
        return result
    work, pivots = eliminated(self)
    return column_major(work.reshape(self.shape)), (pivots + 1).reshape(*self.shape[:-2], pivots.shape[1])


@compiled("linalg.elimination.lu_factor", least=PIECEWISE, cost=20)
def _small_factors(a: Array) -> Plan:
    """Return the results of `lu_factor` for small matrices by compiled loops."""
    return NUMPY


def eliminated(self: Array) -> tuple[Array, Array]:
    """Do the same as `lu_factor` for a row-major stack with three dimensions, with rows counted from 0."""
    rows, columns = self.shape[-2:]
    work = numpy.array(self, order="C").reshape(-1, rows, columns) if self.size else self.copy()
    pivots = numpy.zeros((len(work) if self.size else 0, min(rows, columns)), numpy.int32)
    if self.size:
        with unwarned():
            _eliminate(work, pivots)
    return work, pivots


def _eliminate(work: Array, pivots: Array) -> None:
    """Eliminate in place, starting with the left half of the columns (Toledo 1997, "Locality of reference in LU decomposition").

    All computations except the pivots of single columns are products of matrices.
    """
    count = pivots.shape[1]
    small = work.shape[2] <= _PANEL or work[0].nbytes <= 2 * FIRST_CACHE
    if small and _FACTORED.run(work.size, work, pivots) is not NotImplemented:
        return
    if work.shape[2] == 1:
        pivots[:, 0] = magnitude(work[:, :, 0]).argmax(1)
        exchange(work, pivots)
        divisor = work[:, :1]
        numpy.divide(work[:, 1:], divisor, out=work[:, 1:], where=divisor != 0)
        return
    half = max(count // 2, 1)
    left, right = work[:, :, :half], work[:, :, half:]
    _eliminate(left, pivots[:, :half])
    exchange(right, pivots[:, :half])
    right[:, :half] = substituted(left[:, :half], right[:, :half], upper=False, unitriangular=True)
    if count == half:
        return
    right[:, half:] -= left[:, half:] @ right[:, :half]
    _eliminate(right[:, half:], pivots[:, half:])
    exchange(left[:, half:], pivots[:, half:])
    pivots[:, half:] += half


_FACTORED = compiled("linalg.elimination.factor_panel", least=PIECEWISE, cost=20)


def exchange(work: Array, pivots: Array, backwards: bool = False) -> None:
    """Exchange the rows of stacked matrices in place, one by one, with the rows of their pivots, counted from 0."""
    work[...] = numpy.take_along_axis(work, row_order(pivots, work.shape[1], backwards)[:, :, None], 1)


def row_order(pivots: Array, rows: int, backwards: bool = False) -> Array:
    """Return the row that comes to each position when rows are exchanged (or, if `backwards`, when the exchanges are undone)."""
    places = range(pivots.shape[1])
    if len(pivots) == 1:
        others, found = pivots[0].tolist(), list(range(rows))
        for place in reversed(places) if backwards else places:
            other = others[place]
            found[other], found[place] = found[place], found[other]
        return numpy.array([found], numpy.int64)
    batch = numpy.arange(len(pivots))
    order = numpy.broadcast_to(numpy.arange(rows), (len(pivots), rows)).copy()
    for place in reversed(places) if backwards else places:
        other = pivots[:, place]
        order[batch, other], order[:, place] = order[:, place].copy(), order[batch, other]
    return order


def first_zero(diagonal: Array) -> Array:
    """Return, for each matrix, the position of the first zero on the diagonal, counted from 1, or 0 if there is none."""
    if numpy.count_nonzero(diagonal) == diagonal.size:
        return numpy.zeros(diagonal.shape[:-1], numpy.int32)
    zeros = diagonal == 0
    return numpy.where(zeros.any(-1), zeros.argmax(-1) + 1, 0).astype(numpy.int32)


def first_bad(info: Array) -> tuple[str, int]:
    """Return the text that names the first matrix whose `info` is not zero and this `info`, or ("", 0) if there is none."""
    if not numpy.count_nonzero(info):
        return "", 0
    bad = numpy.flatnonzero(info)
    return f"(Batch element {bad[0]}): " if info.ndim else "", int(info.reshape(-1)[bad[0]])


_SINGULAR = (
    "The diagonal element {place} is zero, the inversion could not be completed because the input matrix is singular."
)
_FAILURES = {
    "lu_factor": (
        "U[{place},{place}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    ),
    "ldl_factor": (
        "D[{place},{place}] is zero and using it on ldl_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.ldl_factor_ex(A)"
    ),
    "inv": _SINGULAR,
    "cholesky_inverse": _SINGULAR,
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
        "{place} is not positive-definite)."
    ),
}
"""What it means that the number of a matrix is not 0, by the function."""


def failure(info: Array, name: str) -> Exception:
    """Return the error of the function `name`, such as "torch.linalg.solve", for the first matrix whose `info` is not 0."""
    prefix, place = first_bad(info)
    function = name.rpartition(".")[2].removesuffix("_ex")
    error = RuntimeError if function.endswith("factor") else LinAlgError
    return error(f"{name}: {prefix}{_FAILURES[function].format(place=place)}")


def refuse_failure(info: Array, name: str) -> None:
    """Raise the error of the function `name` if a number in `info` is not 0."""
    if numpy.count_nonzero(info):
        raise failure(info, name)


# --- triangular systems ---------------------------------------------------------------------------------------


@compiled("linalg.elimination.solve_triangular")
def _substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> Plan:
    """Return the solution of small triangular systems by compiled loops."""
    return NUMPY


def substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """Return the solution of triangular systems. A lower triangle in reverse order is an upper triangle.

    Elimination does not change an upper triangle and exchanges no rows, so only the substitution remains.
    """
    size = a.shape[-1]
    small = size * max(b.shape[-1], SHORT) * b.itemsize <= FIRST_CACHE  # blocks would not help
    if LOOPS.takes(size * b.size, SCANNED):
        found: Any = _substituted(a, b, upper, unitriangular) if small else NotImplemented
        if found is NotImplemented:
            found = by_lapack("substituted", a, b, upper, unitriangular)
        if found is not NotImplemented:
            return numpy.asarray(found)
    if not upper:
        return substituted(a[..., ::-1, ::-1], b[..., ::-1, :], True, unitriangular)[..., ::-1, :]
    matrix = triu(a, 0)
    if unitriangular:
        places = numpy.arange(a.shape[-1])
        matrix[..., places, places] = 1
    try:
        return numpy.linalg.solve(matrix, b)
    except numpy.linalg.LinAlgError:
        return _row_by_row(matrix, b)


def _row_by_row(matrix: Array, b: Array) -> Array:
    """Solve row by row, if only some solutions are infinite because of a zero on the diagonal."""
    batch = numpy.broadcast_shapes(matrix.shape[:-2], b.shape[:-2])
    result = numpy.broadcast_to(b, (*batch, *b.shape[-2:])).astype(matrix.dtype)
    with unwarned():
        for row in reversed(range(matrix.shape[-1])):
            known = matrix[..., row : row + 1, row + 1 :] @ result[..., row + 1 :, :]
            result[..., row, :] = (result[..., row, :] - known[..., 0, :]) / matrix[..., row, row][..., None]
    return result


# --- symmetric matrices ---------------------------------------------------------------------------------------


_GROWTH = (1 + 17**0.5) / 8
"""The minimum ratio of a pivot on the diagonal to the largest element of its column (Bunch & Kaufman 1977)."""


def ldl_factor(self: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the factors L and D of `L @ D @ L.mT` (or `L.mH`) in one lower triangle, the pivots, and the first zero pivot.

    D has blocks of one and of two rows. Bunch & Kaufman (1977), "Some stable methods for calculating inertia and
    solving symmetric linear systems". Pivots have LAPACK's format: the exchanged row, counted from 1, or twice its
    negative for a block of two rows.
    """
    size = self.shape[-1]
    work = tril(self, 0)
    pivots = numpy.zeros(self.shape[:-1], numpy.int32)
    info = numpy.zeros(self.shape[:-2], numpy.int32)
    for place in numpy.ndindex(*info.shape):
        info[place] = _factor_symmetric(work[place], pivots[place], hermitian and self.dtype.kind == "c", size)
    return column_major(work), pivots, info


def _factor_symmetric(work: Array, pivots: Array, hermitian: bool, size: int) -> int:
    """Factor one lower triangle in place, and return the position of the first zero column, counted from 1, or 0."""
    turned = numpy.conj if hermitian else numpy.asarray
    found = place = 0
    while place < size:
        if hermitian:
            work[place, place] = work[place, place].real
        width, pivot = _symmetric_pivot(work, place, hermitian)
        last = place + width - 1
        if width == 0:
            found, width, last = found or place + 1, 1, place
        elif pivot != last:
            _exchange_symmetric(work, last, pivot, turned)
            if width == 2:
                work[[last, pivot], place] = work[[pivot, last], place]
        if hermitian:
            work[last, last] = work[last, last].real
        below = work[last + 1 :]
        block = work[place : last + 1, place : last + 1]
        if width == 2:
            block = block + turned(tril(block, -1)).T
        if not (width == 1 and block[0, 0] == 0):
            columns = below[:, place : last + 1].copy()
            factors = columns @ numpy.linalg.inv(block)
            below[:, last + 1 :] -= tril(factors @ turned(columns).T, 0)
            below[:, place : last + 1] = factors
        pivots[place : last + 1] = pivot + 1 if width == 1 else -(pivot + 1)
        place = last + 1
    return found


def _symmetric_pivot(work: Array, place: int, hermitian: bool) -> tuple[int, int]:
    """Return the number of rows of the next block of D (0 if its column is zero), and the row that comes to its last position."""
    own = abs(work[place, place].real) if hermitian else magnitude(work[place, place])
    column = magnitude(work[place + 1 :, place])
    if not max(own, column.max(initial=0)) > 0:
        return 0, place
    if not column.size or own >= _GROWTH * column.max():
        return 1, place
    row = place + 1 + int(column.argmax())
    largest = column.max()
    others = numpy.concatenate([work[row, place:row], work[row + 1 :, row]])
    if own >= _GROWTH * largest * (largest / magnitude(others).max()):
        return 1, place
    if (abs(work[row, row].real) if hermitian else magnitude(work[row, row])) >= _GROWTH * magnitude(others).max():
        return 1, row
    return 2, row


def _exchange_symmetric(work: Array, one: int, other: int, turned: Any) -> None:
    """Exchange a row and its column with a later row and column, in the part of the lower triangle after the earlier column."""
    work[other + 1 :, [one, other]] = work[other + 1 :, [other, one]]
    between = work[one + 1 : other, one].copy()
    work[one + 1 : other, one] = turned(work[other, one + 1 : other])
    work[other, one + 1 : other] = turned(between)
    work[other, one] = turned(work[other, one])
    work[one, one], work[other, other] = work[other, other], work[one, one]


def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """Return the solution of one symmetric (or Hermitian) system from its factors."""
    turned = numpy.conj if hermitian else numpy.asarray
    result = b.copy()
    size = len(factors)
    blocks = []
    place = 0
    while place < size:
        width = 1 if pivots[place] > 0 else 2
        blocks.append((place, place + width, abs(int(pivots[place])) - 1))
        place += width
    with unwarned():
        for start, stop, pivot in blocks:
            result[[stop - 1, pivot]] = result[[pivot, stop - 1]]
            result[stop:] -= factors[stop:, start:stop] @ result[start:stop]
            if stop - start == 1:
                result[start] /= factors[start, start].real if hermitian else factors[start, start]
            else:
                block = tril(factors[start:stop, start:stop], 0)
                block = block + turned(tril(block, -1)).T
                result[start:stop] = numpy.linalg.solve(block, result[start:stop])
        for start, stop, pivot in reversed(blocks):
            result[start:stop] -= turned(factors[stop:, start:stop]).T @ result[stop:]
            result[[stop - 1, pivot]] = result[[pivot, stop - 1]]
    return result
