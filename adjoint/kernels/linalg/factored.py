"""Factors from elimination in PyTorch's form, and systems that are solved with them, with PyTorch's checks and errors."""

from __future__ import annotations

import numpy

from ..._runtime.tracebacks import warn_once
from ...codegen.acceleration import LOOPS
from ...codegen.plans import compiled
from ..runtime.costs import PASSES
from ..runtime.floating import Array, is_inexact, refuse, type_name, unwarned
from ..runtime.shapes import require_dims
from ..shape.joining import tril, triu
from . import LinAlgError, decompositions, elimination
from .decompositions import check_equation, check_matrix
from .elimination import column_major


def _check_factorable(name: str, array: Array) -> None:
    if array.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(array.shape)} instead")


def _check_eliminable(array: Array, pivot: bool) -> None:
    if not is_inexact(array.dtype) or array.dtype.itemsize == 2:
        raise refuse("lu_cpu", array)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


# --- general matrices -----------------------------------------------------------------------------------------


def lu_factor_ex(
    self: Array, pivot: bool = True, check_errors: bool = False, name: str = "torch.linalg.lu_factor_ex"
) -> tuple[Array, Array, Array]:
    """Return both triangular factors in one matrix, the exchanged rows, and each matrix's first zero pivot, or 0."""
    _check_factorable("torch.lu_factor", self)
    _check_eliminable(self, pivot)
    factors, pivots = elimination.lu_factor(self)
    info = elimination.first_zero(factors.diagonal(0, -2, -1))
    if check_errors:
        elimination.refuse_failure(info, name)
    return factors, pivots, info


_UNPACK = compiled("linalg.elimination.unpack", least=PASSES)


def lu(self: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """Return the triangular factors L and U and the permutation P of `P @ L @ U`."""
    _check_factorable("linalg.lu", self)
    _check_eliminable(self, pivot)
    small = self.size > 0 and elimination.is_small(self)
    if small and self.dtype.char in "fd" and LOOPS.takes(self.size, PASSES):
        work, pivots = elimination.eliminated(self)
        made = _UNPACK.run(self.size, work, pivots)
        if made is not NotImplemented:
            return tuple([item.reshape(*self.shape[:-2], *item.shape[1:]) for item in made])
    return lu_unpack(*elimination.lu_factor(self))


def lu_unpack(
    self: Array, pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """Return L, U and P from the results of `lu_factor`. Results that are not requested are empty."""
    _check_factorable("torch.lu_unpack", self)
    if unpack_pivots and pivots.dtype != numpy.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    rows, columns = self.shape[-2:]
    count = min(rows, columns)
    if unpack_pivots and (count or pivots.size) and pivots.shape != (*self.shape[:-2], count):
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to have the shape {[*self.shape[:-2], count]}, but got "
            f"{list(pivots.shape)}"
        )
    lower = upper = permutation = numpy.empty((0,), self.dtype)
    if unpack_data:
        lower = tril(numpy.ascontiguousarray(self[..., :count]), -1)
        places = numpy.arange(count)
        lower[..., places, places] = 1
        upper = triu(numpy.ascontiguousarray(self[..., :count, :]), 0)
    if unpack_pivots:
        flat = pivots.reshape(-1, pivots.shape[-1]).astype(numpy.int64) - 1 if pivots.size else pivots
        if flat.size and (flat.min() < 0 or flat.max() >= rows):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?"
            )
        permutation = numpy.zeros((*self.shape[:-2], rows, rows), self.dtype)
        if permutation.size and flat.size:
            order = elimination.row_order(flat, rows)
            numpy.put_along_axis(permutation.reshape(-1, rows, rows), order[:, None], 1, 1)
        else:
            permutation[...] = numpy.eye(rows, dtype=self.dtype)
    return lower, upper, permutation


def lu_solve(LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Array:
    """Return X with `A @ X = B` (`X @ A = B` if not `left`), or with the adjoint of A, from the results of `lu_factor` for A."""
    _check_factors(LU, pivots, B, left)
    if not left:
        return numpy.ascontiguousarray(lu_solve(LU, pivots, B.mT.conj(), True, not adjoint).mT.conj())
    rows = LU.shape[-1]
    batch = numpy.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    result = numpy.broadcast_to(B, (*batch, *B.shape[-2:])).copy()
    if not result.size:
        return column_major(result)
    exchanges = numpy.broadcast_to(pivots, (*batch, rows)).reshape(-1, rows) - 1
    with unwarned():
        if not adjoint:
            elimination.exchange(result.reshape(-1, *result.shape[-2:]), exchanges)
        factors = LU.mT.conj() if adjoint else LU
        for upper in (False, True):
            result = elimination.substituted(factors, result, upper=upper, unitriangular=upper == adjoint)
        if adjoint:
            result = numpy.ascontiguousarray(result)
            elimination.exchange(result.reshape(-1, *result.shape[-2:]), exchanges, backwards=True)
    return column_major(result)


def _check_factors(LU: Array, pivots: Array, B: Array, left: bool) -> None:
    name = "linalg.lu_solve"
    if LU.ndim < 2:
        raise RuntimeError(f"torch.{name}: The input tensor A must have at least 2 dimensions.")
    if B.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if not is_inexact(LU.dtype) or LU.dtype.itemsize == 2:
        raise RuntimeError(
            f"torch.{name}: Expected a floating point or complex tensor as input. Got {type_name(LU.dtype)}"
        )
    if LU.shape[-1] != LU.shape[-2]:
        raise RuntimeError(
            f"torch.{name}: A must be batches of square matrices, but they are {LU.shape[-2]} by {LU.shape[-1]} matrices"
        )
    if pivots.dtype != numpy.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    if LU.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type {type_name(LU.dtype)} and B of "
            f"type {type_name(B.dtype)} instead"
        )
    check_equation(name, LU, B, left)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} "
            "instead"
        )
    if pivots.size and pivots.min() < 1:
        raise RuntimeError(
            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?"
        )
    if pivots.size and pivots.max() > LU.shape[-1]:
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?"
        )


# --- results for singular matrices too ------------------------------------------------------------------------


def inv_ex(self: Array, check_errors: bool = False) -> tuple[Array, Array]:
    """Return the inverse, which is not finite for singular matrices, and each first zero pivot, or 0."""
    try:
        return decompositions.inv(self), numpy.zeros(self.shape[:-2], numpy.int32)
    except LinAlgError as error:
        if check_errors:
            raise LinAlgError(str(error).replace("linalg.inv", "linalg.inv_ex", 1)) from None
    unit = numpy.broadcast_to(numpy.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return _solve_unchecked(self, unit)


def solve_ex(a: Array, b: Array, left: bool = True, check_errors: bool = False) -> tuple[Array, Array]:
    """Return X with `a @ X = b` (or `X @ a = b`) and, for each matrix, the position of the first zero pivot, or 0."""
    try:
        return decompositions.solve(a, b, left), numpy.zeros(a.shape[:-2], numpy.int32)
    except LinAlgError as error:
        if check_errors:
            raise LinAlgError(str(error).replace("linalg.solve", "linalg.solve_ex", 1)) from None
    vector = decompositions.is_vector(a, b)
    right = b[..., None] if vector else b if left else b.mT
    result, info = _solve_unchecked(a if left else a.mT, right)
    return (result[..., 0] if vector else result if left else numpy.ascontiguousarray(result.mT)), info


def _solve_unchecked(a: Array, b: Array) -> tuple[Array, Array]:
    factors, pivots, info = lu_factor_ex(a)
    return lu_solve(factors, pivots, b), info


# --- symmetric matrices ---------------------------------------------------------------------------------------


def ldl_factor_ex(
    self: Array, hermitian: bool = False, check_errors: bool = False, name: str = "torch.linalg.ldl_factor_ex"
) -> tuple[Array, Array, Array]:
    """Return the factors of symmetric (or Hermitian) matrices in one triangle, the pivots, and the first zero pivot, or 0."""
    if self.ndim < 2 or not is_inexact(self.dtype) or self.shape[-1] != self.shape[-2]:
        try:
            check_matrix("ldl_factor_ex", self, square=True)
        except RuntimeError as error:
            raise RuntimeError(f"torch.{error}") from None
    if self.dtype.itemsize == 2:
        raise refuse("ldl_factor_kernel_cpu", self)
    factors, pivots, info = elimination.ldl_factor(self, hermitian)
    if check_errors:
        elimination.refuse_failure(info, name)
    return factors, pivots, info


def ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool = False) -> Array:
    """Return the solution of symmetric (or Hermitian) systems from the results of `ldl_factor`."""
    name = "torch.linalg.ldl_solve"
    if LD.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if LD.shape[-1] != LD.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {LD.shape[-2]} by {LD.shape[-1]} matrices"
        )
    if not is_inexact(LD.dtype) or LD.dtype.itemsize == 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(LD.dtype)}")
    require_dims(B, -2)
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} "
            "instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {type_name(pivots.dtype)}")
    decompositions.check_solvable(name, LD, B)
    batch = numpy.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    factors = numpy.broadcast_to(LD, (*batch, *LD.shape[-2:]))
    exchanged = numpy.broadcast_to(pivots, factors.shape[:-1])
    result = numpy.broadcast_to(B, (*batch, *B.shape[-2:])).copy()
    for place in numpy.ndindex(*batch):
        result[place] = elimination.ldl_solve(
            factors[place], exchanged[place], result[place], hermitian and LD.dtype.kind == "c"
        )
    return column_major(result)


_OLDER_CHOLESKY = """torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a \
future PyTorch release.
L = torch.cholesky(A)
should be replaced with
L = torch.linalg.cholesky(A)
and
U = torch.cholesky(A, upper=True)
should be replaced with
U = torch.linalg.cholesky(A).mH
This transform will produce equivalent results for all valid (symmetric positive definite) inputs."""


def older_cholesky(self: Array, upper: bool = False) -> Array:
    """Compute `cholesky` with the arguments of `torch.cholesky`."""
    warn_once("torch.cholesky", _OLDER_CHOLESKY)
    try:
        return decompositions.cholesky(self, upper, "cholesky")
    except RuntimeError as error:
        if not is_inexact(self.dtype) and self.ndim > 1:
            raise refuse("cholesky_cpu", self) from None
        raise type(error)(str(error).removeprefix("linalg.")) from None
