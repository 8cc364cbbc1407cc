"""Triangular systems, and what a triangular factor stands for."""

from __future__ import annotations

from typing import Any

import numpy

from ..dtypes import from_numpy
from .errors import LinAlgError
from .linalg import check_matrix, cholesky
from .precision import is_inexact, type_name

Array = numpy.ndarray[Any, Any]


def solve_triangular(
    a: Array,
    b: Array,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    name: str = "linalg.solve_triangular",
) -> Array:
    """X with `a @ X = b`, or `X @ a = b` if not `left`, reading one triangle of `a`; infinite where that is singular.

    The columns of the matrices in the result are contiguous.
    """
    _check_system(name, a, b, left)
    if not left:
        return numpy.ascontiguousarray(_solved(a.mT, b.mT, not upper, unitriangular)).mT
    return numpy.ascontiguousarray(_solved(a, b, upper, unitriangular).mT).mT


def _check_system(name: str, a: Array, b: Array, left: bool) -> None:
    for letter, array in (("A", a), ("B", b)):
        if array.ndim < 2:
            raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")
    check_matrix(name.removeprefix("linalg."), a, square=True, floating=False)
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )
    if not is_inexact(a.dtype) or a.dtype.itemsize == 2:
        raise NotImplementedError(f"\"triangular_solve_cpu\" not implemented for '{type_name(a.dtype)}'")


def _solved(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """The solution from the last unknown on: read backwards, a lower triangle is an upper one.

    Elimination finds nothing to eliminate in an upper triangle and exchanges no rows: what remains is the substitution.
    """
    if not upper:
        return _solved(a[..., ::-1, ::-1], b[..., ::-1, :], True, unitriangular)[..., ::-1, :]
    matrix = numpy.triu(a)
    if unitriangular:
        diagonal = numpy.arange(a.shape[-1])
        matrix[..., diagonal, diagonal] = 1
    try:
        return numpy.linalg.solve(matrix, b)
    except numpy.linalg.LinAlgError:
        return _substituted(matrix, b)


def _substituted(matrix: Array, b: Array) -> Array:
    """Row by row, where a zero on the diagonal makes infinities of some solutions and not of others."""
    batch = numpy.broadcast_shapes(matrix.shape[:-2], b.shape[:-2])
    result = numpy.broadcast_to(b, (*batch, *b.shape[-2:])).astype(matrix.dtype)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        for row in reversed(range(matrix.shape[-1])):
            known = matrix[..., row : row + 1, row + 1 :] @ result[..., row + 1 :, :]
            result[..., row, :] = (result[..., row, :] - known[..., 0, :]) / matrix[..., row, row][..., None]
    return result


def triangular_solve(b: Array, a: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, Array]:
    """X with `a @ X = b`, or `a.mT @ X = b` if `transpose`, and a copy of `a`, both with contiguous columns."""
    for letter, array in (("b", b), ("A", a)):
        if array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {letter} to have at least 2 dimensions, but it has {array.ndim} dimensions "
                "instead"
            )
    _check_solvable("triangular_solve", a, b)
    batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrix = a.mT if transpose else a
    return (
        solve_triangular(matrix, b, upper != transpose, True, unitriangular),
        numpy.broadcast_to(a.mT, (*batch, *a.shape[-2:])).copy("C").mT,
    )


def _check_solvable(name: str, a: Array, b: Array) -> None:
    if b.dtype != a.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {from_numpy(b.dtype).scalar_type} and A of type "
            f"{from_numpy(a.dtype).scalar_type} instead."
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a.shape[-1]} by {a.shape[-1]} but each "
            f"b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


def cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    """X with `L @ L.mH @ X = b`, `factor` being L, or its conjugate transpose if `upper`."""
    for letter, array in (("b", b), ("u", factor)):
        if array.ndim < 2:
            raise RuntimeError(f"{letter} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    _check_solvable("cholesky_solve", factor, b)
    lower = factor.mT.conj() if upper else factor
    inner = _solved(lower, b, False, False)
    return numpy.ascontiguousarray(_solved(lower.mT.conj(), inner, True, False).mT).mT


def cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    """The inverse of `L @ L.mH`."""
    if factor.ndim < 2:
        raise RuntimeError("cholesky_inverse: The input tensor A must have at least 2 dimensions.")
    if factor.shape[-1] != factor.shape[-2]:
        raise RuntimeError(
            "cholesky_inverse: A must be batches of square matrices, but they are "
            f"{factor.shape[-2]} by {factor.shape[-1]} matrices"
        )
    return cholesky_solve(
        numpy.broadcast_to(numpy.eye(factor.shape[-1], dtype=factor.dtype), factor.shape), factor, upper
    )


def cholesky_ex(self: Array, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """The triangular factor, and for each matrix the order of the first minor that is not positive-definite, or 0.

    Of a matrix that has such a minor, the columns before it are those of the factor, the others as they were.
    """
    check_matrix("cholesky_ex", self, square=True)
    info = numpy.zeros(self.shape[:-2], numpy.int32)
    try:
        return cholesky(self, upper, "linalg.cholesky_ex"), info
    except LinAlgError:
        if check_errors:
            raise
    source = self.mT.conj() if upper else self
    result = numpy.tril(source)
    for place in numpy.ndindex(*info.shape):
        info[place] = _factor_in_place(result[place])
    return (result.mT.conj() if upper else numpy.ascontiguousarray(result.mT).mT), info


def _factor_in_place(matrix: Array) -> int:
    """Make the lower triangle that of the factor, column by column, as far as there is one; return where it ended."""
    for column in range(matrix.shape[-1]):
        row = matrix[column, :column]
        pivot = (matrix[column, column] - row @ row.conj()).real
        matrix[column, column] = pivot
        if not pivot > 0:
            return column + 1
        root = matrix[column, column] = numpy.sqrt(pivot)
        below = matrix[column + 1 :]
        below[:, column] = (below[:, column] - below[:, :column] @ row.conj()) / root
    return 0
