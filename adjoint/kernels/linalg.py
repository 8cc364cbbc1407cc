"""Linear algebra of (stacks of) matrices through LAPACK, as NumPy calls it, with PyTorch's checks and errors."""

from __future__ import annotations

from typing import Any

import numpy

from ..dtypes import from_numpy
from .errors import LinAlgError
from .precision import is_inexact, type_name

Array = numpy.ndarray[Any, Any]


def check_matrix(name: str, array: Array, square: bool = False, floating: bool = True, half: bool = False) -> None:
    """Raise unless `array` is a (stack of) matrices, square if asked for.

    Unless not `floating`, they must be of a floating-point or complex type, and not of a half type unless `half`.
    """
    if array.ndim < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if square and array.shape[-1] != array.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {array.shape[-2]} by {array.shape[-1]} matrices"
        )
    if not floating:
        return
    if not is_inexact(array.dtype):
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got {from_numpy(array.dtype).scalar_type}"
        )
    if array.dtype.itemsize == 2 and not half:
        raise RuntimeError(
            f"linalg.{name}: Low precision dtypes not supported. Got {from_numpy(array.dtype).scalar_type}"
        )


def _column_major(array: Array) -> Array:
    """`array` with the elements of each matrix in column-major order, as LAPACK leaves them and PyTorch hands them on."""
    return numpy.ascontiguousarray(array.mT).mT if array.ndim > 1 else array


def _batch_prefix(array: Array, bad: Array) -> tuple[str, tuple[int, ...]]:
    """The words that name the first matrix for which `bad` holds, and its index."""
    where = tuple(int(axis[0]) for axis in numpy.nonzero(bad)) if bad.ndim else ()
    if not where:
        return "", ()
    flat = int(numpy.ravel_multi_index(where, bad.shape))
    return f"(Batch element {flat}): ", where


def _exactly_singular(array: Array) -> Array:
    """Which matrices LAPACK's elimination finds a zero pivot in."""
    return numpy.asarray(numpy.linalg.slogdet(array)[0] == 0)


def lu_factor(self: Array) -> tuple[Array, Array]:
    """Gaussian elimination with partial pivoting: both triangular factors in one matrix, and the rows exchanged, from 1 on."""
    work = self.copy()
    size = work.shape[-1]
    pivots = numpy.empty(work.shape[:-1], numpy.int32)
    for matrix, exchanged in zip(work.reshape(-1, size, size), pivots.reshape(-1, size), strict=True):
        for column in range(size):
            pivot = column + int(numpy.argmax(numpy.abs(matrix[column:, column])))
            exchanged[column] = pivot + 1
            if matrix[pivot, column] != 0:
                matrix[[column, pivot]] = matrix[[pivot, column]]
                matrix[column + 1 :, column] /= matrix[column, column]
                matrix[column + 1 :, column + 1 :] -= numpy.outer(
                    matrix[column + 1 :, column], matrix[column, column + 1 :]
                )
    return _column_major(work), pivots


def _zero_pivot(matrix: Array) -> int:
    """The number, counted from 1, of the first zero pivot in Gaussian elimination with partial pivoting."""
    return int(numpy.argmax(numpy.diagonal(lu_factor(matrix)[0]) == 0)) + 1


def inv(self: Array, name: str = "inv") -> Array:
    """The inverse."""
    check_matrix(name, self, square=True)
    try:
        return numpy.linalg.inv(self.mT).mT  # column-major
    except numpy.linalg.LinAlgError:
        prefix, where = _batch_prefix(self, _exactly_singular(self))
        raise LinAlgError(
            f"linalg.inv: {prefix}The diagonal element {_zero_pivot(self[where])} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        ) from None


def is_vector(a: Array | Any, b: Array | Any) -> bool:
    """Whether the right-hand side `b` of a system with matrices `a` holds vectors, not matrices."""
    return len(b.shape) == 1 or (len(a.shape) - 1 == len(b.shape) and tuple(b.shape) == tuple(a.shape[:-1]))


def solve(a: Array, b: Array, left: bool = True) -> Array:
    """X with `a @ X = b`, or `X @ a = b` if not `left`."""
    check_matrix("solve", a, square=True)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{from_numpy(a.dtype).scalar_type} and B of type {from_numpy(b.dtype).scalar_type} instead"
        )
    vector = is_vector(a, b)
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    right = b[..., None] if vector else b
    rows = right.shape[-2] if left else right.shape[-1]
    if rows != a.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{right.shape[-2]}x{right.shape[-1]})"
        )
    try:
        result = numpy.linalg.solve(a, right) if left else numpy.linalg.solve(a.mT, right.mT).mT
    except numpy.linalg.LinAlgError:
        prefix, _ = _batch_prefix(a, _exactly_singular(a))
        raise LinAlgError(
            f"torch.linalg.solve: {prefix}The solver failed because the input matrix is singular."
        ) from None
    if not left:
        return numpy.ascontiguousarray(result)
    return _column_major(result[..., 0] if vector else result)


def det(self: Array) -> Array:
    """The determinant."""
    check_matrix("det", self, square=True)
    return numpy.asarray(numpy.linalg.det(self), dtype=self.dtype)


def slogdet(self: Array) -> tuple[Array, Array]:
    """The sign (or phase) of the determinant and the logarithm of its absolute value."""
    check_matrix("slogdet", self, square=True)
    sign, log = numpy.linalg.slogdet(self)
    return numpy.asarray(sign), numpy.asarray(log)


def is_nearly_singular(self: Array) -> bool:
    """Whether any of the matrices is singular but for rounding."""
    if not numpy.isfinite(self).all():
        return False
    values = numpy.linalg.svd(self, compute_uv=False)
    return bool((values[..., -1] <= 100 * numpy.finfo(values.dtype).eps * values[..., 0]).any())


def cofactors(self: Array) -> Array:
    """The derivative of the determinant with respect to each element, also of singular matrices (by singular values)."""
    finite = numpy.isfinite(self).all((-2, -1), keepdims=True)
    u, s, vh = numpy.linalg.svd(numpy.where(finite, self, 0))
    others = numpy.ones_like(s)
    for index in range(s.shape[-1]):
        others[..., index] = numpy.prod(numpy.delete(s, index, axis=-1), axis=-1)
    phase = numpy.linalg.det(u) * numpy.linalg.det(vh)
    return numpy.where(finite, phase[..., None, None] * ((u.conj() * others[..., None, :]) @ vh.conj()), numpy.nan)


def cholesky(self: Array, upper: bool = False, name: str = "linalg.cholesky") -> Array:
    """The lower (or upper) triangular factor of Hermitian positive-definite matrices; only one triangle is read."""
    check_matrix(name.removeprefix("linalg."), self, square=True)
    source = self.mT.conj() if upper else self
    try:
        result = numpy.linalg.cholesky(source)
    except numpy.linalg.LinAlgError:
        flat = source.reshape(-1, *source.shape[-2:])
        for number, matrix in enumerate(flat):
            order = _indefinite_order(matrix)
            if order:
                prefix = f"(Batch element {number}): " if source.ndim > 2 else ""
                raise LinAlgError(
                    f"{name}: {prefix}The factorization could not be completed because the input is not "
                    f"positive-definite (the leading minor of order {order} is not positive-definite)."
                ) from None
        raise
    return result.mT.conj() if upper else _column_major(result)


def older_cholesky(self: Array, upper: bool = False) -> Array:
    """`cholesky` as `torch.cholesky` calls it."""
    try:
        return cholesky(self, upper, "cholesky")
    except RuntimeError as error:
        if not is_inexact(self.dtype) and self.ndim > 1:
            raise NotImplementedError(f"\"cholesky_cpu\" not implemented for '{type_name(self.dtype)}'") from None
        raise type(error)(str(error).removeprefix("linalg.")) from None


def _indefinite_order(matrix: Array) -> int:
    """The order of the first leading minor that is not positive-definite, 0 if all are."""
    for order in range(1, len(matrix) + 1):
        try:
            numpy.linalg.cholesky(matrix[:order, :order])
        except numpy.linalg.LinAlgError:
            return order
    return 0


def singular_values(self: Array, **options: bool) -> Any:
    """`numpy.linalg.svd`, which for infinities may never end."""
    if not numpy.isfinite(self).all():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    return numpy.linalg.svd(self, **options)  # type: ignore[call-overload]


def svd(self: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """U, the singular values and V conjugate-transposed."""
    check_matrix("svd", self)
    u, s, vh = singular_values(self, full_matrices=full_matrices)
    return _column_major(u), s, _column_major(vh)


def eigh(self: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    check_matrix("eigh", self, square=True)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values, vectors = numpy.linalg.eigh(self, UPLO.upper())  # type: ignore[arg-type]
    return values, _column_major(vectors)


def qr(self: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """An orthonormal and an upper triangular factor."""
    check_matrix("qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return numpy.empty((0,), self.dtype), _column_major(numpy.linalg.qr(self, "r"))
    q, r = numpy.linalg.qr(self, mode)  # type: ignore[call-overload]
    return _column_major(q), _column_major(r)
