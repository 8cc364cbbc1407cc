"""Solving with matrices: triangular systems, Cholesky factors, the pseudo-inverse, least squares, rank and condition."""

from __future__ import annotations

import functools
import math

from ..._runtime.tracebacks import warn_once
from ...dispatch.annotations import Array, Bool
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import STRICT, Castable, stored
from ...kernels.linalg import decompositions as kernels
from ...tape.saved import unpack
from ...tensor import Tensor
from ..declaring.formulas import added
from .decompositions import cholesky_gradient, conjugate_transpose, of_matrices


def _triangle(matrix, upper, unitriangular, xp):
    return xp.triu(matrix, int(unitriangular)) if upper else xp.tril(matrix, -int(unitriangular))


@internal(kernels.solve_triangular, same_out=STRICT, batch="broadcast")
class linalg_solve_triangular:
    """The solution of linear systems of triangular matrices."""

    def forward(self: Array, B: Array, upper, left=True, unitriangular=False): ...

    differentiable = ("self", "B")

    def grad_inputs(grad, self, result, upper, left, unitriangular, needs, xp):
        to_b = xp.linalg_solve_triangular(conjugate_transpose(self), grad, not upper, left, unitriangular)
        if not needs[0]:
            return None, to_b
        product = to_b @ conjugate_transpose(result) if left else conjugate_transpose(result) @ to_b
        return -_triangle(product, upper, unitriangular, xp), to_b if needs[1] else None


@public(namespace="linalg")
def solve_triangular(A, B, *, upper: bool, left: bool = True, unitriangular: bool = False, out=None):
    """Find X with `A @ X = B` or, if `left` is false, with `X @ A = B`.

    Only the upper (or lower) triangle of A is read.

    If `unitriangular` is true, the diagonal is assumed to be 1, and is not read.

    >>> import adjoint as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.0, 1.0], [0.0, 4.0]]), torch.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [1.]])
    """
    return tensors.linalg_solve_triangular(A, B, upper, left, unitriangular, out=out)


_OLDER = """torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand \
will be removed in a future PyTorch release.
torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.
X = torch.triangular_solve(B, A).solution
should be replaced with
X = torch.linalg.solve_triangular(A, B)."""


@internal(
    kernels.triangular_solve,
    function_name="triangular_solve",
    node="TriangularSolveBackward0",
    outputs=("solution", "cloned_coefficient"),
    returns="triangular_solve",
    same_out=STRICT,
)
class solve_with_triangular:
    """The solution of linear systems of triangular matrices, and a copy of the matrices."""

    def forward(self: Array, A: Array, upper, transpose, unitriangular): ...

    differentiable = ("self", "A")

    def grad_inputs(grads, self, A, solution, upper, transpose, unitriangular, needs, xp):
        to_self = to_matrix = None
        if grads[0] is not None:
            matrix = A.mT if transpose else A
            to_self = xp.linalg_solve_triangular(
                conjugate_transpose(matrix), grads[0], upper == transpose, True, unitriangular
            )
        if needs[1] and to_self is not None:
            product = _triangle(-to_self @ conjugate_transpose(solution), upper != transpose, unitriangular, xp)
            to_matrix = product.mT if transpose else product
        if needs[1] and grads[1] is not None:
            to_matrix = added(to_matrix, grads[1])
        return to_self, to_matrix


@public(method=True)
def triangular_solve(input, A, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out=None):
    """The solution of `A @ X = input` and a copy of A. Use `linalg.solve_triangular` instead.

    If `transpose` is true, A is transposed first.
    """
    warn_once("torch.triangular_solve", _OLDER)
    return tensors.solve_with_triangular(input, A, upper, transpose, unitriangular, out=out)


@operator(kernel=kernels.cholesky_solve, same_out=Castable("cholesky_solve"), batch="broadcast")
class cholesky_solve:
    """The solution X of `L @ L.mH @ X = self` or, if `upper` is true, of `L.mH @ L @ X = self`.

    >>> import adjoint as torch
    >>> torch.cholesky_solve(torch.tensor([[4.0], [8.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """

    def forward(self: Array, input2: Array, upper: Bool = False): ...

    differentiable = ("self", "input2")

    def grad_inputs(grad, input2, result, upper, needs, xp):
        to_self = xp.cholesky_solve(grad, input2, upper)
        if not needs[1]:
            return to_self, None
        product = to_self @ conjugate_transpose(result)
        total = product + conjugate_transpose(product)
        factor = _triangle(input2, upper, False, xp)
        to_factor = factor @ total if upper else total @ factor
        return to_self if needs[0] else None, -_triangle(to_factor, upper, False, xp)


@operator(kernel=kernels.cholesky_inverse, same_out=Castable("cholesky_inverse"), batch="leading")
class cholesky_inverse:
    """The inverse of matrices from their Cholesky factors."""

    def forward(self: Array, upper: Bool = False): ...

    def grad_self(grad, self, result, upper, xp):
        inner = result @ (grad + conjugate_transpose(grad)) @ result
        factor = _triangle(self, upper, False, xp)
        return -_triangle(factor @ inner if upper else inner @ factor, upper, False, xp)


@of_matrices(kernels.cholesky_ex, outputs=("L", "info"), narrow="trivial")
class linalg_cholesky_ex:
    """The triangular factor of `linalg.cholesky`, and the order of each matrix's first minor that is not positive, or 0.

    Raises:
        LinAlgError: if a matrix is not positive-definite and `check_errors` is true.
    """

    nondifferentiable = ("info",)
    saved_display = {"L": functools.partial(unpack, item="L")}

    def forward(self: Array, *, upper: Bool = False, check_errors: Bool = False): ...

    def grad_self(grads, L, upper, xp):
        return cholesky_gradient(grads[0], L, upper, xp)


def _by_tolerance(op, batch, value, atol, rtol, hermitian):
    """Compute the examples one by one if a tolerance has dimensions: these are dimensions of one example."""
    together = all(not hasattr(each, "shape") or each.shape == () for each in (atol, rtol))
    return batch.by("leading" if together else "sequential", op, (value, atol, rtol, hermitian))


@internal(kernels.pinv, same_out=Castable("linalg.pinv"), batch=_by_tolerance, aten="atol_rtol_tensor")
class linalg_pinv:
    """The pseudo-inverse of matrices."""

    def forward(self: Array, atol=None, rtol=None, hermitian=False): ...

    def grad_self(grad, self, result):
        return _pinv_gradient(grad, self, result)


def _pinv_gradient(grad, A, P):
    """The formula of Golub & Pereyra (1973), "The differentiation of pseudo-inverses". Products of small matrices come first."""
    turned, to_adjoint = conjugate_transpose(P), conjugate_transpose(grad)
    within = to_adjoint @ P
    outer = within @ turned
    total = outer - conjugate_transpose(within) @ turned - A @ (P @ outer)
    left = turned @ P
    rest = to_adjoint - (to_adjoint @ P) @ A
    return total + left @ rest


def _tolerance(function, name, value):
    """Return a tolerance in the form of the kernel's argument. A tensor has one tolerance per matrix."""
    if not isinstance(value, Tensor):
        return value
    if value.is_complex():
        raise RuntimeError(
            f"torch.linalg.{function}: {name} tensor of complex type is not supported. Got {value.dtype.scalar_type}"
        )
    return value.detach()._array


@public(namespace="linalg", numpy_names=True)
def pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudo-inverse.

    Singular values up to `max(atol, rtol * the largest)` count as zero.

    By default, `rtol` is the machine epsilon times the larger size, or 0 if `atol` is given. `rcond` is an older name
    of `rtol`.

    >>> import adjoint as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    relative = _tolerance("pinv", "rcond", rcond) if rtol is None else _tolerance("pinv", "rtol", rtol)
    return tensors.linalg_pinv(input, _tolerance("pinv", "atol", atol), relative, hermitian, out=out)


@public(method=True, numpy_names=True)
def pinverse(input, rcond=1e-15):
    """The pseudo-inverse; see `linalg.pinv`."""
    return tensors.linalg_pinv(input, None, rcond, False)


@internal(
    kernels.least_squares,
    outputs=("solution", "residuals", "rank", "singular_values"),
    returns="linalg_lstsq",
)
class linalg_lstsq:
    """The solution of least-squares problems."""

    differentiable = ("self", "b")
    nondifferentiable = ("rank", "singular_values")

    def forward(self: Array, b: Array, rcond, driver, vector): ...

    def grad_inputs(grads, self, b, solution, vector, needs, xp):
        to_self = to_b = None
        right = b[..., None] if vector else b
        if grads[0] is not None:
            grad = grads[0][..., None] if vector else grads[0]
            inverse = xp.linalg_pinv(self, None, None, False)
            to_self = _pinv_gradient(grad @ conjugate_transpose(right), self, inverse) if needs[0] else None
            to_b = conjugate_transpose(inverse) @ grad if needs[1] else None
        if grads[1] is not None and 0 not in grads[1].shape:
            # At its minimum, the sum of squares depends only on the inputs, not on the solution.
            found = solution[..., None] if vector else solution
            error = (self @ found - right) * (2 * grads[1])[..., None, :]
            if needs[0]:
                to_self = added(to_self, error @ conjugate_transpose(found))
            if needs[1]:
                to_b = added(to_b, -error)
        return to_self, to_b[..., 0] if vector and to_b is not None else to_b


@public(namespace="linalg", numpy_names=True)
def lstsq(input, b, rcond=None, *, driver=None, out=None):
    """X that minimizes the Frobenius norm of `input @ X - b`.

    The results are (solution, residuals, rank, singular values).

    The additional results depend on `driver`, which is "gelsy" by default.
    """
    vector = kernels.check_least_squares(input._array, b._array, driver)
    return tensors.linalg_lstsq(input, b, rcond, driver, vector, out=out)


@internal(
    kernels.matrix_rank,
    function_name="linalg.matrix_rank",
    same_out=Castable("torch.linalg.matrix_rank"),
    aten_name="linalg_matrix_rank",
    batch=_by_tolerance,
)
class linalg_matrix_rank:
    """The rank of matrices."""

    def forward(self: Array, atol=None, rtol=None, hermitian=False): ...


@public(namespace="linalg", numpy_names=True)
def matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The number of singular values above `max(atol, rtol * the largest)`. `tol` is an older name of `atol`."""
    if tol is not None:
        atol, rtol = tol, 0.0
    tolerances = [_tolerance("matrix_rank", name, value) for name, value in (("atol", atol), ("rtol", rtol))]
    return tensors.linalg_matrix_rank(input, *tolerances, hermitian, out=out)


@public(namespace="linalg", numpy_names=True)
def cond(input, p=None, *, out=None):
    """The condition number: the norm of the matrix times the norm of its inverse. The default is the 2-norm."""
    kernels.check_matrix("cond", input._array)
    if p in (None, 2, -2):
        values = tensors.linalg_svd(input, False).S
        if not values.shape[-1]:  # NaN
            return stored("linalg_cond", values.sum(-1), out, recorded=True)
        largest, smallest = values[..., :1], values[..., -1:]
        quotient = smallest / largest if p == -2 else largest / smallest
        return stored("linalg_cond", quotient.squeeze(-1), out, Castable("linalg.cond"), recorded=True)
    if not isinstance(p, str) and abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p not in ("fro", "nuc") and 0 in input._array.shape[-2:]:
        zeros = tensors.zeros_like(tensors.real(input) if input.is_complex() else input).sum((-2, -1))
        return stored("linalg_cond", zeros, out, recorded=True)
    rows, columns = input._array.shape[-2:]
    if rows != columns:
        named = f"{p:f}" if isinstance(p, float) else p
        raise RuntimeError(
            f"linalg.cond(ord={named}): A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    inverse, failed = tensors.linalg_inv_ex(input)
    singular = failed != 0
    inverse = tensors.masked_fill(inverse, singular.unsqueeze(-1).unsqueeze(-1), 0)
    result = tensors.masked_fill(tensors.linalg_matrix_norm(inverse, p), singular, math.inf)
    result = tensors.linalg_matrix_norm(input, p) * result
    if p != "nuc":
        result = tensors.nan_to_num(result, math.inf, math.inf, -math.inf)
    return stored("linalg_cond", result, out, Castable("linalg.cond"), recorded=True)


@public(namespace="linalg")
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, by default in the last two dimensions, as a view."""
    return tensors.diagonal(A, offset, dim1, dim2)
