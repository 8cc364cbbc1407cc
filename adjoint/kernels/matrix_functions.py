"""Functions of matrices: the exponential, eigenvalues of general matrices and the pseudo-inverse."""

from __future__ import annotations

from typing import Any

import numpy

from ..dtypes import from_numpy
from .linalg import check_matrix, singular_values
from .precision import is_inexact

Array = numpy.ndarray[Any, Any]

# Higham (2005), "The scaling and squaring method for the matrix exponential revisited": the coefficients of the diagonal Pade
# approximant of degree 13, and the norm up to which it is exact to double precision.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_LARGEST = 5.371920351148152


def matrix_exp(self: Array) -> Array:
    """The exponential of square matrices."""
    check_matrix("matrix_exp", self, square=True, half=True)
    if not self.size:
        return self.copy()
    work = self.astype(numpy.result_type(self.dtype, numpy.float64), copy=False)
    norms = numpy.abs(work).sum(-2).max(-1)
    finite = numpy.isfinite(norms)
    halvings = numpy.zeros(norms.shape, numpy.int64)
    large = finite & (norms > _LARGEST)
    halvings[large] = numpy.ceil(numpy.log2(norms[large] / _LARGEST)).astype(numpy.int64)
    work = numpy.where(finite[..., None, None], work, 0) / numpy.exp2(halvings)[..., None, None]
    result = _pade(work)
    for squaring in range(int(halvings.max(initial=0))):
        result = numpy.where((halvings > squaring)[..., None, None], result @ result, result)
    result[~finite] = numpy.nan
    return result.astype(self.dtype)


def _pade(matrix: Array) -> Array:
    unit = numpy.eye(matrix.shape[-1], dtype=matrix.dtype)
    two = matrix @ matrix
    four = two @ two
    six = four @ two
    b = _PADE
    odd = matrix @ (
        six @ (b[13] * six + b[11] * four + b[9] * two) + b[7] * six + b[5] * four + b[3] * two + b[1] * unit
    )
    even = six @ (b[12] * six + b[10] * four + b[8] * two) + b[6] * six + b[4] * four + b[2] * two + b[0] * unit
    return numpy.linalg.solve(even - odd, even + odd)


def eig(self: Array) -> tuple[Array, Array]:
    """Eigenvalues, always complex, and eigenvectors of square matrices."""
    check_matrix("eig", self, square=True)
    if not numpy.isfinite(self).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = numpy.linalg.eig(self)
    kind = numpy.result_type(self.dtype, numpy.complex64)
    return values.astype(kind), numpy.ascontiguousarray(vectors.mT).mT.astype(kind)


def pinv(self: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    """The pseudo-inverse: singular values up to `max(atol, rtol * the largest)` count as zero."""
    if self.ndim < 2 or not is_inexact(self.dtype) or self.dtype.itemsize == 2:
        sizes = ", ".join(map(str, self.shape))
        raise RuntimeError(
            f"linalg.pinv({from_numpy(self.dtype).scalar_type}{{[{sizes}]}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if not self.size:
        return numpy.zeros(self.mT.shape, self.dtype)
    if hermitian:
        values, vectors = numpy.linalg.eigh(self)
        sizes = numpy.abs(values)
        kept = sizes > cutoff(sizes.max(-1), self, atol, rtol)[..., None]
        inverse = numpy.where(kept, 1 / numpy.where(kept, values, 1), 0)
        return numpy.asarray((vectors * inverse[..., None, :]) @ vectors.mT.conj())
    u, values, vh = singular_values(self, full_matrices=False)
    kept = values > cutoff(values[..., 0], self, atol, rtol)[..., None]
    inverse = numpy.where(kept, 1 / numpy.where(kept, values, 1), 0)
    return numpy.asarray((vh.mT.conj() * inverse[..., None, :]) @ u.mT.conj())


def cutoff(largest: Array, matrix: Array, atol: Any, rtol: Any) -> Array:
    """Up to where singular values count as zero; by default `rtol` is the precision times the larger size."""
    if rtol is None:
        rtol = 0.0 if atol is not None and numpy.any(numpy.asarray(atol) > 0) else _precision(matrix)
    return numpy.asarray(numpy.maximum(0.0 if atol is None else atol, rtol * largest))


def _precision(matrix: Array) -> float:
    return float(numpy.finfo(matrix.dtype).eps) * max(matrix.shape[-2:])


def matrix_rank(self: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    """How many singular values count as other than zero."""
    if self.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if not self.size:
        return numpy.zeros(self.shape[:-2], numpy.int64)
    values = numpy.abs(numpy.linalg.eigvalsh(self)) if hermitian else singular_values(self, compute_uv=False)
    return numpy.asarray((values > cutoff(values.max(-1), self, atol, rtol)[..., None]).sum(-1), numpy.int64)


def least_squares(
    a: Array, b: Array, rcond: Any, driver: str | None, vector: bool
) -> tuple[Array, Array, Array, Array]:
    """The solution of least squares, the sums of squares left over, the rank and the singular values, as the driver gives."""
    limit = _precision(a) if rcond is None else float(rcond)
    right = b[..., None] if vector else b
    solution = pinv(a, None, 0.0 if driver == "gels" else limit) @ right
    rank, values, left_over = numpy.empty((0,), numpy.int64), _nothing(a), _nothing(a)
    if driver != "gels":
        rank = matrix_rank(a, None, limit)
    if driver in ("gelsd", "gelss"):
        values = singular_values(a, compute_uv=False)
    if driver in ("gels", "gelsd", "gelss") and a.shape[-2] > a.shape[-1] and (rank == a.shape[-1]).all():
        left_over = numpy.square(numpy.abs(right - a @ solution)).sum(-2)
    columns = numpy.empty((*solution.shape[:-2], solution.shape[-1], max(a.shape[-2:])), solution.dtype)
    columns[..., : a.shape[-1]] = solution.mT  # in the memory of the right-hand side, as LAPACK leaves it
    solution = columns[..., : a.shape[-1]].mT
    return (solution[..., 0] if vector else solution), left_over, rank, values


def _nothing(a: Array) -> Array:
    return numpy.empty((0,), a.real.dtype)


def check_least_squares(a: Array, b: Array, driver: str | None) -> bool:
    """Raise unless the system is one; whether its right-hand side holds vectors."""
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    difference = a.ndim - b.ndim
    if not 0 <= difference <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = difference == 1
    if a.shape[-2] != b.shape[-1 if vector else -2]:
        side = "-1" if vector else "-2"
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{from_numpy(a.dtype).scalar_type} and other's dtype {from_numpy(b.dtype).scalar_type}"
        )
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    return vector
