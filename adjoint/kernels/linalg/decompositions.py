"""Linear algebra of matrices and stacks of matrices through LAPACK, as NumPy calls it, with PyTorch's checks and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy.linalg import _umath_linalg

from ...codegen.plans import compiled
from ..memory.copying import contiguous, real_part
from ..runtime.costs import SCANNED
from ..runtime.floating import Array, is_inexact, refuse, type_name, unwarned
from ..shape.joining import tril
from . import LinAlgError
from .elimination import column_major, failure, first_zero, is_small, lu_factor, refuse_failure, substituted
from .householder import factor_orthogonal, orthogonal
from .stacks import by_lapack, of_stack


def check_matrix(name: str, array: Array, square: bool = False, floating: bool = True, half: bool = False) -> None:
    """Raise an error unless `array` is a matrix or a stack of matrices. If `square`, the matrices must be square.

    If `floating`, the elements must have a floating-point or complex type. Half types are permitted only if `half`.
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
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got {type_name(array.dtype)}"
        )
    if array.dtype.itemsize == 2 and not half:
        raise RuntimeError(f"linalg.{name}: Low precision dtypes not supported. Got {type_name(array.dtype)}")


def inv(self: Array, name: str = "inv") -> Array:
    """Return the inverse."""
    check_matrix(name, self, square=True)
    try:
        return inverse(self.mT).mT  # column-major
    except numpy.linalg.LinAlgError:
        raise failure(_zero_pivot(self), "linalg.inv") from None


def _zero_pivot(array: Array) -> Array:
    """Return the first zero pivot of each matrix, or 1 for numbers that are not finite if there is no zero."""
    zeros = first_zero(lu_factor(array)[0].diagonal(0, -2, -1))
    return zeros if zeros.any() else numpy.asarray(~numpy.isfinite(array).all((-2, -1)), numpy.int32)


def inverse(a: Array) -> Array:
    """Return the inverse, or raise NumPy's error if a matrix is singular."""
    found = _eliminated(a, None)
    if found is NotImplemented:
        found = by_lapack("inverse", a)
    if found is not NotImplemented:
        return found
    # The inverse of one matrix consists mostly of products, which OpenBLAS's threads accelerate.
    return of_stack(numpy.linalg.inv, a) if a.ndim > 2 else numpy.linalg.inv(a)


def _solution(a: Array, b: Array) -> Array:
    found = _eliminated(a, b)
    if found is NotImplemented:
        found = by_lapack("solve", a, b)
    return numpy.linalg.solve(a, b) if found is NotImplemented else found


_ELIMINATION = compiled("linalg.elimination.solve", least=SCANNED)
_CHOLESKY = compiled("linalg.cholesky.cholesky", least=SCANNED)


def _eliminated(a: Array, b: Array | None) -> Any:
    return _ELIMINATION.run(a.size, a, b) if is_small(a) else NotImplemented


def is_vector(a: Array | Any, b: Array | Any) -> bool:
    """Return whether the right-hand side `b` of a system with matrices `a` contains vectors instead of matrices."""
    return len(b.shape) == 1 or (len(a.shape) - 1 == len(b.shape) and tuple(b.shape) == tuple(a.shape[:-1]))


def solve(a: Array, b: Array, left: bool = True) -> Array:
    """Return X with `a @ X = b`, or `X @ a = b` if not `left`."""
    check_matrix("solve", a, square=True)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{type_name(a.dtype)} and B of type {type_name(b.dtype)} instead"
        )
    vector = is_vector(a, b)
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    right = b[..., None] if vector else b
    check_equation("linalg.solve", a, right, left)
    try:
        result = _solution(a, right) if left else _solution(a.mT, right.mT).mT
    except numpy.linalg.LinAlgError:
        raise failure(_zero_pivot(a), "torch.linalg.solve") from None
    if not left:
        return numpy.ascontiguousarray(result)
    return column_major(result[..., 0] if vector else result)


def cholesky(self: Array, upper: bool = False, name: str = "linalg.cholesky") -> Array:
    """Return the lower (or upper) triangular factor of Hermitian positive-definite matrices. Only one triangle is read."""
    check_matrix(name.removeprefix("linalg."), self, square=True)
    found = _CHOLESKY.run(self.size, self, upper)
    if found is not NotImplemented:
        return numpy.asarray(found)
    source = self.mT.conj() if upper else self
    try:
        with unwarned():  # a factorization that fails is NaN
            wide = _umath_linalg.cholesky_lo(source, signature="D->D" if source.dtype.kind == "c" else "d->d")
        if numpy.count_nonzero(numpy.isnan(wide.diagonal(0, -2, -1))):  # takes less time than `any`
            raise numpy.linalg.LinAlgError
    except numpy.linalg.LinAlgError:
        orders = [_indefinite_order(matrix) for matrix in source.reshape(-1, *source.shape[-2:])]
        if any(orders):
            raise failure(numpy.array(orders, numpy.int32).reshape(source.shape[:-2]), name) from None
        raise
    result = wide.astype(source.dtype, copy=False)
    return result.mT.conj() if upper else column_major(result)


def _indefinite_order(matrix: Array) -> int:
    """Return the order of the first leading minor that is not positive-definite, or 0 if all minors are."""
    for order in range(1, len(matrix) + 1):
        try:
            if numpy.isnan(numpy.linalg.cholesky(matrix[:order, :order])[-1, -1]):
                return order
        except numpy.linalg.LinAlgError:
            return order
    return 0


def singular_values(self: Array, **options: bool) -> Any:
    """Call `numpy.linalg.svd`, which may not terminate for infinities."""
    if not numpy.isfinite(self).all():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    found = by_lapack("svd", self, **options)
    if found is not NotImplemented:
        return found
    return of_stack(lambda part: numpy.linalg.svd(part, **options), self)  # type: ignore[call-overload]


def svd(self: Array, full_matrices: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    """Return U, the singular values and V conjugate-transposed, or only the values unless `compute_uv`."""
    check_matrix("svd", self)
    if not compute_uv:
        return self[:0], singular_values(self, compute_uv=False), self[:0]
    u, s, vh = singular_values(self, full_matrices=full_matrices)
    return column_major(u), s, column_major(vh)


def eigh(self: Array, UPLO: str = "L", compute_v: bool = True) -> tuple[Array, Array]:
    """Return the ascending eigenvalues and, if `compute_v`, the eigenvectors of Hermitian matrices. Only one triangle is read."""
    check_matrix("eigh", self, square=True)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values, vectors = _eigh(self, UPLO.upper(), compute_v)
    return values, column_major(vectors)


def _eigh(self: Array, triangle: Any = "L", compute_v: bool = True) -> Any:
    try:
        found = by_lapack("eigh", self, triangle, compute_v)
        if found is not NotImplemented:
            values, vectors = found
        elif compute_v:
            values, vectors = of_stack(lambda part: numpy.linalg.eigh(part, triangle), self)
        else:
            values, vectors = of_stack(lambda part: numpy.linalg.eigvalsh(part, triangle), self), self[:0]
        if numpy.isfinite(values).all():
            return values, vectors
    except numpy.linalg.LinAlgError:
        pass
    raise LinAlgError(
        "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues."
    )


def qr(self: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """Return an orthonormal factor and an upper triangular factor."""
    check_matrix("qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    found = orthogonal(self, mode)
    q, r = (numpy.empty((0,), self.dtype), found) if mode == "r" else found
    return column_major(q), column_major(r)


def solve_triangular(
    a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False,
    name: str = "linalg.solve_triangular",
) -> Array:  # fmt: skip
    """Return X with `a @ X = b`, or `X @ a = b` if not `left`.

    Only one triangle of `a` is read. The result is infinite if this triangle is singular. X has the dtype of `a`. The
    columns of its matrices are contiguous.
    """
    for letter, array in (("A", a), ("B", b)):
        if array.ndim < 2:
            raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")
    check_matrix(name.removeprefix("linalg."), a, square=True, floating=False)
    check_equation(name, a, b, left)
    if not is_inexact(a.dtype) or a.dtype.itemsize == 2:
        raise refuse("triangular_solve_cpu", a)
    if b.dtype != a.dtype:
        b = real_part(b, a.dtype).astype(a.dtype)
    if not left:
        return contiguous(substituted(a.mT, b.mT, not upper, unitriangular)).mT
    return contiguous(substituted(a, b, upper, unitriangular).mT).mT


def check_equation(name: str, a: Array, b: Array, left: bool) -> None:
    """Raise an error if the shapes do not fit the equation `a @ X = b`, or `X @ a = b` if not `left`."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )


def triangular_solve(b: Array, a: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, Array]:
    """Return X with `a @ X = b`, or `a.mT @ X = b` if `transpose`, and a copy of `a`. Both have contiguous columns."""
    for letter, array in (("b", b), ("A", a)):
        if array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {letter} to have at least 2 dimensions, but it has {array.ndim} dimensions "
                "instead"
            )
    check_solvable("triangular_solve", a, b)
    batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrix = a.mT if transpose else a
    return (
        solve_triangular(matrix, b, upper != transpose, True, unitriangular),
        numpy.broadcast_to(a.mT, (*batch, *a.shape[-2:])).copy("C").mT,
    )


def check_solvable(name: str, a: Array, b: Array) -> None:
    """Raise an error unless `a` contains square matrices and `b` contains right-hand sides of the same dtype for them."""
    if b.dtype != a.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_name(b.dtype)} and A of type "
            f"{type_name(a.dtype)} instead."
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
    """Return X with `L @ L.mH @ X = b`. `factor` is L, or the conjugate transpose of L if `upper`."""
    for letter, array in (("b", b), ("u", factor)):
        if array.ndim < 2:
            raise RuntimeError(f"{letter} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    check_solvable("cholesky_solve", factor, b)
    if factor.dtype.char not in "fdFD":
        raise refuse("cholesky_solve_cpu", factor)
    lower = factor.mT.conj() if upper else factor
    inner = substituted(lower, b, False, False)
    return numpy.ascontiguousarray(substituted(lower.mT.conj(), inner, True, False).mT).mT


def cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    """Return the inverse of `L @ L.mH`."""
    if factor.ndim < 2:
        raise RuntimeError("cholesky_inverse: The input tensor A must have at least 2 dimensions.")
    if factor.shape[-1] != factor.shape[-2]:
        raise RuntimeError(
            "cholesky_inverse: A must be batches of square matrices, but they are "
            f"{factor.shape[-2]} by {factor.shape[-1]} matrices"
        )
    if factor.dtype.char not in "fdFD":
        raise refuse("cholesky_inverse_out_cpu", factor)
    refuse_failure(first_zero(factor.diagonal(0, -2, -1)), "cholesky_inverse")
    found = by_lapack("cholesky_inverse", factor, upper)
    if found is not NotImplemented:
        return numpy.asarray(found)
    unit, size = numpy.zeros(factor.shape, factor.dtype), factor.shape[-1]
    unit.reshape(*factor.shape[:-2], size * size)[..., :: size + 1] = 1
    return cholesky_solve(unit, factor, upper)


def cholesky_ex(self: Array, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """Return the triangular factor and, for each matrix, the order of the first minor that is not positive-definite, or 0.

    If a matrix has such a minor, the columns before it contain the factor, and the other columns are unchanged.
    """
    check_matrix("cholesky", self, square=True)
    info = numpy.zeros(self.shape[:-2], numpy.int32)
    try:
        return cholesky(self, upper, "linalg.cholesky_ex"), info
    except LinAlgError:
        if check_errors:
            raise
    source = self.mT.conj() if upper else self
    result = tril(source, 0)
    for place in numpy.ndindex(*info.shape):
        info[place] = _factor_in_place(result[place])
    return (result.mT.conj() if upper else numpy.ascontiguousarray(result.mT).mT), info


def _factor_in_place(matrix: Array) -> int:
    """Compute the factor's lower triangle in place, column by column, and return the column where the factor ends."""
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


_LARGEST = 0.78
"""The largest norm of a matrix for which 17 terms of the series of its exponential suffice in float64: Al-Mohy and Higham (2011),
"Computing the action of the matrix exponential", table 3.1."""

_TERMS = 17


def matrix_exp(self: Array) -> Array:
    """Return the exponential of square matrices.

    The series is computed for a scaled matrix, and the result is squared once for each halving. A quotient of
    polynomials would need fewer products. It is not used, because it rounds the ones on the diagonal of a triangular
    matrix, and many squarings turn the rounded numbers into zeros.
    """
    check_matrix("matrix_exp", self, square=True, half=True)
    return of_stack(_exponential, self) if self.ndim > 2 and self.size else _exponential(self)


def _exponential(self: Array) -> Array:
    if not self.size:
        return self.copy()
    work = self.astype(numpy.result_type(self.dtype, numpy.float64), copy=False)
    norms = numpy.abs(work).sum(-2).max(-1)
    finite = numpy.isfinite(norms)
    halvings = numpy.zeros(norms.shape, numpy.int64)
    large = finite & (norms > _LARGEST)
    halvings[large] = numpy.ceil(numpy.log2(norms[large]) - math.log2(_LARGEST)).astype(numpy.int64)
    work = numpy.where(finite[..., None, None], work, 0) * numpy.exp2(-halvings)[..., None, None]
    result = _series(work)
    for squaring in range(int(halvings.max(initial=0))):
        result = numpy.where((halvings > squaring)[..., None, None], result @ result, result)
    result[~finite] = numpy.nan
    return result.astype(self.dtype)


def _series(matrix: Array) -> Array:
    """Return the first terms of the exponential of `matrix`, by six products (Paterson and Stockmeyer, 1973)."""
    two = matrix @ matrix
    powers = numpy.eye(matrix.shape[-1], dtype=matrix.dtype), matrix, two, two @ matrix
    four = two @ two
    result = four / math.factorial(_TERMS - 1)
    for start in range(_TERMS - 5, -1, -4):
        group = sum(power / math.factorial(start + offset) for offset, power in enumerate(powers))
        result = group + (four @ result if start < _TERMS - 5 else result)
    return numpy.asarray(result)


def eig(self: Array) -> tuple[Array, Array]:
    """Return the eigenvalues, which are always complex, and the eigenvectors of square matrices."""
    check_matrix("eig", self, square=True)
    if not numpy.isfinite(self).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = of_stack(numpy.linalg.eig, self)
    _make_independent(self, values, vectors)
    kind = numpy.result_type(self.dtype, numpy.complex64)
    return values.astype(kind), numpy.ascontiguousarray(vectors.mT).mT.astype(kind)


def _make_independent(matrices: Array, values: Array, vectors: Array) -> None:
    """Replace dependent eigenvectors of equal eigenvalues by a basis of their eigenspace, if it has enough dimensions.

    LAPACK may return dependent ones even for symmetric matrices.
    """
    size = numpy.abs(matrices).sum(-1).max(-1, initial=0)  # the Frobenius norm would overflow or vanish
    reach = matrices.shape[-1] * numpy.finfo(values.dtype).eps * size
    close = numpy.abs(values[..., :, None] - values[..., None, :]) <= reach[..., None, None]
    for place in map(tuple, numpy.argwhere(close.sum((-2, -1)) > matrices.shape[-1])):
        for first, row in enumerate(close[place]):
            equal = numpy.flatnonzero(row)
            if equal[0] < first or numpy.linalg.cond(vectors[place][:, equal]) < 1e6:
                continue
            shifted = matrices[place] - values[place][first] * numpy.eye(len(row))
            _, sizes, rows = numpy.linalg.svd(shifted)
            if sizes[-len(equal)] <= 10 * reach[place]:
                vectors[place][:, equal] = rows[-len(equal) :].conj().T


def pinv(self: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    """Return the pseudo-inverse. Singular values up to `cutoff` count as zero."""
    if self.ndim < 2 or not is_inexact(self.dtype) or self.dtype.itemsize == 2:
        sizes = ", ".join(map(str, self.shape))
        raise RuntimeError(
            f"linalg.pinv({type_name(self.dtype)}{{[{sizes}]}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if not self.size:
        return numpy.zeros(self.mT.shape, self.dtype)
    if hermitian:
        values, vectors = _eigh(self)
        sizes = numpy.abs(values)
        kept = sizes > cutoff(sizes.max(-1), self, atol, rtol)[..., None]
        inverse = numpy.where(kept, 1 / numpy.where(kept, values, 1), 0)
        return numpy.asarray((vectors * inverse[..., None, :]) @ vectors.mT.conj())
    return _pseudo_inverse(self, atol, rtol)[0]


def _pseudo_inverse(matrix: Array, atol: Any, rtol: Any) -> tuple[Array, Array, Array]:
    """Return the pseudo-inverse, the singular values, and which of them count as nonzero."""
    u, values, vh = singular_values(matrix, full_matrices=False)
    kept = values > cutoff(values[..., 0], matrix, atol, rtol)[..., None]
    inverse = numpy.where(kept, 1 / numpy.where(kept, values, 1), 0)
    return numpy.asarray((vh.mT.conj() * inverse[..., None, :]) @ u.mT.conj()), values, kept


def cutoff(largest: Array, matrix: Array, atol: Any, rtol: Any) -> Array:
    """Return the limit up to which singular values are zero. `rtol` defaults to the machine epsilon times the larger size."""
    if rtol is None:
        rtol = 0.0 if atol is not None and numpy.any(numpy.asarray(atol) > 0) else _precision(matrix)
    return numpy.asarray(numpy.maximum(0.0 if atol is None else atol, rtol * largest))


def _precision(matrix: Array) -> float:
    return float(numpy.finfo(matrix.dtype).eps) * max(matrix.shape[-2:])


def matrix_rank(self: Array, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    """Return the number of singular values that count as nonzero."""
    if self.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if not self.size:
        return numpy.zeros(self.shape[:-2], numpy.int64)
    values = numpy.abs(_eigh(self, compute_v=False)[0]) if hermitian else singular_values(self, compute_uv=False)
    return numpy.asarray((values > cutoff(values.max(-1), self, atol, rtol)[..., None]).sum(-1), numpy.int64)


def least_squares(
    a: Array, b: Array, rcond: Any, driver: str | None, vector: bool
) -> tuple[Array, Array, Array, Array]:
    """Return the least-squares solution, the residual sums of squares, the rank and the singular values of the driver."""
    limit = _precision(a) if rcond is None else float(rcond)
    right = b[..., None] if vector else b
    values_wanted = driver in ("gelsd", "gelss")
    found: Any = NotImplemented
    if not values_wanted or numpy.isfinite(a).all():  # with infinities, the search for singular values may not end
        found = by_lapack("least_squares", a, right, limit, driver or "gelsy", smallest=1 if a.ndim == 2 else SCANNED)
    if found is NotImplemented:
        found = _without_lapack(a, right, 0.0 if driver == "gels" else limit, values_wanted)
    columns, rest, ranks, singular = found
    rank, values, left_over = numpy.empty((0,), numpy.int64), _nothing(a), _nothing(a)
    if driver != "gels":
        rank = ranks
    if values_wanted:
        values = singular
    if driver in ("gels", "gelsd", "gelss") and a.shape[-2] > a.shape[-1] and (rank == a.shape[-1]).all():
        left_over = numpy.square(numpy.abs(rest)).sum(-1)
    solution = columns[..., : a.shape[-1]].mT
    return (solution[..., 0] if vector else solution), left_over, rank, values


def _without_lapack(a: Array, b: Array, tolerance: float, values_wanted: bool) -> tuple[Array, Array, Array, Array]:
    """Return the solution in LAPACK's layout, the transposed residuals, the ranks, and the singular values."""
    solution = None if values_wanted or not a.size else _of_full_rank(a, b, max(tolerance, _precision(a)))
    values = numpy.zeros((*a.shape[:-2], min(a.shape[-2:])), a.real.dtype)
    rank = numpy.full(a.shape[:-2], a.shape[-1])
    if solution is None and a.size:
        inverse, values, kept = _pseudo_inverse(a, None, tolerance)
        solution, rank = inverse @ b, kept.sum(-1)
    elif solution is None:
        solution, rank = numpy.zeros(a.mT.shape, a.dtype) @ b, numpy.zeros(a.shape[:-2], numpy.int64)
    columns = numpy.empty((*solution.shape[:-2], solution.shape[-1], max(a.shape[-2:])), solution.dtype)
    columns[..., : a.shape[-1]] = solution.mT
    # A square system of full rank has no residuals.
    rest = (b - a @ solution).mT if a.shape[-2] > a.shape[-1] else columns
    return columns, rest, numpy.asarray(rank, numpy.int64), values


def _of_full_rank(a: Array, b: Array, tolerance: float) -> Array | None:
    """Return the solution by one QR factorization of both sides, or None if columns may be dependent up to `tolerance`."""
    columns = a.shape[-1]
    if a.shape[-2] < columns:
        return None
    if a.shape[:-2] != b.shape[:-2]:
        batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (numpy.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (a, b))
    triangle = of_stack(lambda part: factor_orthogonal(part, "r"), numpy.concatenate([a, b], -1))[..., :columns, :]
    factor = triangle[..., :columns]
    inverse = substituted(factor, numpy.broadcast_to(numpy.eye(columns, dtype=a.dtype), factor.shape), True, False)
    with unwarned():
        squares = [numpy.square(numpy.abs(each)).sum((-2, -1)) for each in (factor, inverse)]
    # The product of the norms is an upper bound of the condition number.
    if not (numpy.sqrt(squares[0]) * numpy.sqrt(squares[1]) * tolerance < 0.5).all():
        return None
    return substituted(factor, triangle[..., columns:], True, False)


def _nothing(a: Array) -> Array:
    return numpy.empty((0,), a.real.dtype)


def check_least_squares(a: Array, b: Array, driver: str | None) -> bool:
    """Raise an error unless the system is a least-squares system, and return whether its right-hand side contains vectors."""
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
            f"{type_name(a.dtype)} and other's dtype {type_name(b.dtype)}"
        )
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    return vector
