"""Linear algebra by elimination: factors, solutions from factors, and singular matrices (`linalg`)."""

from __future__ import annotations

import functools

from ..._runtime.tracebacks import warn_once
from ...dispatch.annotations import Array, Bool
from ...dispatch.decorators import PUBLIC, add_method, internal, public
from ...dispatch.out import STRICT, all_stored, checked_targets
from ...dispatch.return_types import return_type
from ...dispatch.sequential import is_readable
from ...kernels.linalg import factored as kernels
from ...tape.saved import unpack
from ..declaring.formulas import added, underived
from .decompositions import batch_of_systems, conjugate_transpose, of_matrices, solution_gradients

# --- general matrices -----------------------------------------------------------------------------------------


@of_matrices(kernels.lu_factor_ex, outputs=("LU", "pivots", "info"))
class linalg_lu_factor_ex:
    """The factors of `linalg.lu_factor`, and the position of each matrix's first zero pivot, or 0.

    Raises:
        RuntimeError: if a pivot is zero and `check_errors` is true.
    """

    nondifferentiable = ("pivots", "info")
    saved_display = {"pivot": lambda node: True}  # no other elimination exists

    def forward(A: Array, *, pivot: Bool = True, check_errors: Bool = False): ...

    def grad_A(grads, LU, pivots, xp):
        L, U, P = xp.unpacked_factors(LU, pivots, True, True)
        grad, count = grads[0], min(LU.shape[-2:])
        return _lu_gradient(grad[..., :count], grad[..., :count, :], P, L, U, xp)


def _lu_gradient(to_lower, to_upper, P, L, U, xp):
    """Return the gradient of `P @ L @ U`, where P is constant.

    `to_lower` or `to_upper` may be None.

    For a matrix that is not square, the columns (or rows) outside its leading square part solve triangular systems.
    The gradients of these columns also contribute to the factors of the square part.
    """
    rows, columns = L.shape[-2], U.shape[-1]
    count = L.shape[-1]
    square_lower, square_upper = L[..., :count, :], U[..., :count]

    def by_lower(matrix):  # L^-H matrix
        return xp.linalg_solve_triangular(conjugate_transpose(square_lower), matrix, True, True, True)

    def by_upper(matrix):  # matrix U^-H
        return xp.linalg_solve_triangular(conjugate_transpose(square_upper), matrix, False, False, False)

    rest = None
    lower = None if to_lower is None else to_lower[..., :count, :]
    upper = None if to_upper is None else to_upper[..., :count]
    if columns > count and to_upper is not None:
        rest = by_lower(to_upper[..., count:])
        lower = added(lower, -(rest @ conjugate_transpose(U[..., count:])))
    elif rows > count and to_lower is not None:
        rest = by_upper(to_lower[..., count:, :])
        upper = added(upper, -(conjugate_transpose(L[..., count:, :]) @ rest))
    inner = None
    if lower is not None:
        inner = xp.tril(conjugate_transpose(square_lower) @ lower, -1)
    if upper is not None:
        inner = added(inner, xp.triu(upper @ conjugate_transpose(square_upper), 0))
    total = by_lower(by_upper(inner))
    if columns > count:
        total = xp.cat([total, total[..., :1] * 0 @ U[..., :1, count:] if rest is None else rest], -1)
    elif rows > count:
        total = xp.cat([total, L[..., count:, :1] @ (total[..., :1, :] * 0) if rest is None else rest], -2)
    return P @ total


@public(namespace="aten", method=False)
def _linalg_check_errors(info, api_name, *, is_matrix):
    """Raise the error of the function `api_name` if it has failed for a matrix: if a number in `info` is not 0."""
    if is_readable(info):
        kernels.elimination.refuse_failure(info._array, api_name)


LU_FACTOR = return_type("linalg_lu_factor", "LU", "pivots")


@public(namespace="linalg")
def lu_factor(A, *, pivot=True, out=None):
    """Gaussian elimination with partial pivoting.

    The results are both triangular factors in one matrix, and the row exchanges.

    `linalg.lu_solve` and `lu_unpack` accept the result.

    Raises:
        RuntimeError: if a pivot is zero.

    >>> import adjoint as torch
    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 4.0]])).LU
    tensor([[ 4.0000,  4.0000],
            [ 0.5000, -1.0000]])
    """
    return _factor(A, pivot, out, "torch.linalg.lu_factor")


def _factor(A, pivot, out, name):
    LU, pivots, info = linalg_lu_factor_ex(A, pivot=pivot)
    PUBLIC["aten"]["_linalg_check_errors"](info, name, is_matrix=not info._array.ndim)
    if out is None:
        return LU_FACTOR(LU, pivots)
    return LU_FACTOR.out(*all_stored("linalg_lu_factor", (LU, pivots), out, STRICT))


_OLDER_LU = """torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a \
future PyTorch release.
LU, pivots = torch.lu(A, compute_pivots)
should be replaced with
LU, pivots = torch.linalg.lu_factor(A, compute_pivots)
and
LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)
should be replaced with
LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"""


WITH_INFO = return_type("_lu_with_info", "LU", "pivots", "info")


@public()
def lu(input, pivot=True, get_infos=False, out=None):
    """Gaussian elimination. Use `linalg.lu_factor_ex` instead. The last result is returned only if `get_infos` is true."""
    warn_once("torch.lu", _OLDER_LU)
    results = WITH_INFO(*linalg_lu_factor_ex(input, pivot=pivot, check_errors=not get_infos))
    if not get_infos:
        results = tuple(results[:2])
    if out is None:
        return results
    for result, target in zip(results, checked_targets("lu", out, len(results)), strict=True):
        target.resize_as_(result).copy_(result)
    return out


def lu_method(input, pivot=True, get_infos=False):
    """The method `lu`, which has no parameter `out`."""
    return lu(input, pivot, get_infos)


add_method("lu", lu_method, retried=True)


@internal(kernels.lu, same_out=STRICT, outputs=("L", "U", "P"), batch="leading")
class linalg_lu:
    """The triangular factors of matrices, and the permutation."""

    nondifferentiable = ("P",)

    def forward(self: Array, pivot=True): ...

    def grad_self(grads, L, U, P, xp):
        return _lu_gradient(grads[0], grads[1], P, L, U, xp)


LU = return_type("linalg_lu", "P", "L", "U")
UNPACKED = return_type("lu_unpack", "P", "L", "U")


def _permutation_first(cls, function, args, out):
    """Return the results of an operator in PyTorch's order, with the permutation first."""
    if out is None:
        L, U, P = function(*args)
        return cls(P, L, U)
    P, L, U = out
    function(*args, out=(L, U, P))
    return cls.out(P, L, U)


@public(namespace="linalg", name="lu")
def linalg_lu_function(A, *, pivot=True, out=None):
    """The permutation P, the unit lower triangular L and the upper triangular U with `A = P @ L @ U`.

    >>> import adjoint as torch
    >>> P, L, U = torch.linalg.lu(torch.tensor([[2.0, 1.0], [4.0, 4.0]]))
    >>> U
    tensor([[ 4.,  4.],
            [ 0., -1.]])
    """
    return _permutation_first(LU, linalg_lu, (A, pivot), out)


@internal(
    kernels.lu_unpack,
    same_out=STRICT,
    outputs=("L", "U", "P"),
    node="LuUnpackBackward0",
    batch="expanded",
    aten_name="lu_unpack",
)
class unpacked_factors:
    """The triangular factors in one matrix, and the permutation."""

    nondifferentiable = ("P",)

    def forward(LU_data: Array, LU_pivots: Array, unpack_data=True, unpack_pivots=True): ...

    def grad_LU_data(grads, LU_data_shape, xp):
        rows, columns = LU_data_shape[-2:]
        lower, upper = grads[:2]
        if lower is not None:
            lower = xp.constant_pad_nd(xp.tril(lower, -1), (0, max(columns - rows, 0)), 0)
        if upper is not None:
            upper = xp.constant_pad_nd(xp.triu(upper, 0), (0, 0, 0, max(rows - columns, 0)), 0)
        return upper if lower is None else added(upper, lower)


@public()
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """P, L and U from the result of `linalg.lu_factor`. Results that are not requested are empty."""
    return _permutation_first(UNPACKED, unpacked_factors, (LU_data, LU_pivots, unpack_data, unpack_pivots), out)


@of_matrices(kernels.lu_solve, narrow="trivial", batch=None)
class linalg_lu_solve:
    """X with `A @ X = B`, from the result of `linalg.lu_factor`.

    If `left` is false, X solves `X @ A = B`. If `adjoint` is true, the adjoint of A takes the place of A.

    >>> import adjoint as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.0], [2.0]]))
    tensor([[1.0000],
            [0.5000]])
    """

    def forward(LU: Array, pivots: Array, B: Array, *, left: Bool = True, adjoint: Bool = False): ...

    differentiable = ("LU", "B")

    def grad_inputs(grad, LU, pivots, result, left, adjoint, needs, xp):
        to_b = xp.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
        if not needs[0]:
            return None, to_b
        # For A X = B (or X A = B), the gradient of A is -to_b X^H (or -X^H to_b). For a system with A^H, it is the adjoint of
        # this.
        one, other = (result, to_b) if left == adjoint else (to_b, result)
        to_matrix = -(one @ conjugate_transpose(other) if left else conjugate_transpose(one) @ other)
        L, U, P = xp.unpacked_factors(LU, pivots, True, True)
        to_matrix = P.mT @ to_matrix
        to_factors = xp.tril(to_matrix @ conjugate_transpose(U), -1) + xp.triu(conjugate_transpose(L) @ to_matrix, 0)
        return to_factors, to_b if needs[1] else None

    def batch(op, batch, LU, pivots, B, left, adjoint):
        rank = max(LU._array.ndim, B._array.ndim)
        expanded = batch.has(LU) or batch.has(pivots)
        return op.apply(
            batch.aligned(LU, rank, expanded=expanded),
            batch.aligned(pivots, rank - 1, expanded=expanded),
            batch.aligned(B, rank),
            left,
            adjoint,
        )


_OLDER_SOLVE = """torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.
Note that torch.linalg.lu_solve has its arguments reversed.
X = torch.lu_solve(B, LU, pivots)
should be replaced with
X = torch.linalg.lu_solve(LU, pivots, B)"""


@public(method=True)
def lu_solve(input, LU_data, LU_pivots, *, out=None):
    """The solution of linear systems by their factors. Use `linalg.lu_solve` instead."""
    warn_once("torch.lu_solve", _OLDER_SOLVE)
    return linalg_lu_solve(LU_data, LU_pivots, input, out=out)


# --- what is found also of singular matrices ------------------------------------------------------------------


@of_matrices(kernels.inv_ex, outputs=("inverse", "info"))
class linalg_inv_ex:
    """The inverse, and the position of each matrix's first zero pivot, or 0. With a zero pivot, the inverse is not finite.

    Raises:
        LinAlgError: if a matrix is singular and `check_errors` is true.
    """

    nondifferentiable = ("info",)
    saved_display = {"inverse": functools.partial(unpack, item="inverse")}

    def forward(A: Array, *, check_errors: Bool = False): ...

    def grad_A(grads, inverse):
        turned = conjugate_transpose(inverse)
        return -(turned @ grads[0] @ turned)


@of_matrices(
    kernels.solve_ex, outputs=("result", "info"), batch=batch_of_systems, narrow="trivial", aten_name="_linalg_solve_ex"
)
class linalg_solve_ex:
    """X with `A @ X = B` or, if `left` is false, with `X @ A = B`, and the position of each matrix's first zero pivot, or 0.

    Raises:
        LinAlgError: if a matrix is singular and `check_errors` is true.
    """

    nondifferentiable = ("info",)
    differentiable = ("A", "B")

    def forward(A: Array, B: Array, *, left: Bool = True, check_errors: Bool = False): ...

    def grad_inputs(grads, A, result, left, needs, xp):
        return solution_gradients(grads[0], A, result, left, needs, xp)


# --- symmetric matrices ---------------------------------------------------------------------------------------


@of_matrices(kernels.ldl_factor_ex, node="NotImplemented", outputs=("LD", "pivots", "info"), narrow="trivial")
class linalg_ldl_factor_ex:
    """The factors of `linalg.ldl_factor`, and the position of each matrix's first zero pivot, or 0.

    Raises:
        RuntimeError: if a pivot is zero and `check_errors` is true.
    """

    nondifferentiable = ("pivots", "info")

    def forward(self: Array, *, hermitian: Bool = False, check_errors: Bool = False): ...

    grad_self = underived("linalg_ldl_factor_ex.out")


LDL_FACTOR = return_type("linalg_ldl_factor", "LD", "pivots")


@public(namespace="linalg", numpy_names=True)
def ldl_factor(input, *, hermitian=False, out=None):
    """The factors of symmetric (or Hermitian) matrices. The results are L and D in one matrix, and the pivots.

    Only the lower triangle is read.

    This is the Bunch-Kaufman factorization in LAPACK's form. `linalg.ldl_solve` accepts the result.

    Raises:
        RuntimeError: if a pivot is zero.
    """
    LD, pivots, info = linalg_ldl_factor_ex(input, hermitian=hermitian)
    PUBLIC["aten"]["_linalg_check_errors"](info, "torch.linalg.ldl_factor", is_matrix=not info._array.ndim)
    if out is None:
        return LDL_FACTOR(LD, pivots)
    return LDL_FACTOR.out(*all_stored("linalg_ldl_factor", (LD, pivots), out, STRICT))


@of_matrices(kernels.ldl_solve, node="NotImplemented", batch=None)
class linalg_ldl_solve:
    """The solution of symmetric (or Hermitian) systems from the result of `linalg.ldl_factor`."""

    def forward(LD: Array, pivots: Array, B: Array, *, hermitian: Bool = False): ...

    grad_LD = grad_B = underived("linalg_ldl_solve.out")
