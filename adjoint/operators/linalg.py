"""Linear algebra: solving, determinants, factorizations and the norms of matrices (`adjoint.linalg`)."""

from __future__ import annotations

import functools
import warnings

from ..kernels import linalg as kernels
from ..kernels import products
from ..kernels.broadcast import broadcast_shapes
from ..tensor import wrap_dim
from .build import operator, public, tensors
from .out import STRICT
from .return_types import return_type


def _adjoint(matrix):
    return matrix.mT.conj()


# --- solving --------------------------------------------------------------------------------------------------


@operator(kernel=kernels.inv, namespace=None, method=False, node="LinalgInvExBackward0")
class linalg_inv:
    """The inverse of square matrices."""

    def forward(self: Array): ...

    def grad_self(grad, result):
        inverse = _adjoint(result)
        return -(inverse @ grad @ inverse)


@public(namespace="linalg")
def inv(A, *, out=None):
    """The inverse of (a stack of) square matrices.

    Raises:
        LinAlgError: if one is singular.
    """
    return linalg_inv(A, out=out)


@public(method=True)
def inverse(input, *, out=None):
    """The inverse of (a stack of) square matrices: `linalg.inv`."""
    return linalg_inv(input, out=out)


@operator(kernel=kernels.solve, namespace=None, method=False, node="LinalgSolveExBackward0")
class linalg_solve:
    """The solution of linear systems."""

    def forward(A: Array, B: Array, left=True): ...

    differentiable = ("A", "B")

    def grad_inputs(grad, A, B_shape, result, left, needs, xp):
        vector = len(B_shape) == 1 or tuple(B_shape) == tuple(A.shape[:-1])
        to_b = xp.linalg_solve(_adjoint(A), grad, left)
        if not needs[0]:
            return None, to_b
        g, x = (to_b[..., None], result[..., None]) if vector else (to_b, result)
        to_a = -(g @ _adjoint(x)) if left else -(_adjoint(x) @ g)
        return to_a, to_b if needs[1] else None


@public(namespace="linalg")
def solve(A, B, *, left=True, out=None):
    """X with `A @ X = B` (or `X @ A = B` if not `left`), for matrices or vectors B.

    >>> import adjoint as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])

    Raises:
        LinAlgError: if A is singular.
    """
    return linalg_solve(A, B, left, out=out)


# --- determinants ---------------------------------------------------------------------------------------------


@public(namespace=None, on_arrays=lambda matrix: kernels.cofactors(matrix).conj())
def conjugate_cofactors(matrix):
    """The conjugate of the derivative of the determinant."""
    return linalg_det(matrix)[..., None, None].conj() * _adjoint(linalg_inv(matrix))


@operator(kernel=kernels.det, namespace=None, method=False, node="LinalgDetBackward0")
class linalg_det:
    """The determinant of square matrices."""

    def forward(A: Array): ...

    def grad_A(grad, A, xp):
        return grad.reshape((*grad.shape, 1, 1)) * xp.conjugate_cofactors(A)


@public(namespace="linalg")
def det(A, *, out=None):
    """The determinant of (a stack of) square matrices."""
    return linalg_det(A, out=out)


@public(name="det", method=("det",))
def det_function(input):
    """The determinant of (a stack of) square matrices: `linalg.det`."""
    return linalg_det(input)


@operator(
    kernel=kernels.slogdet,
    namespace=None,
    method=False,
    name="linalg_slogdet",
    outputs=("sign", "logabsdet"),
    returns=return_type("linalg_slogdet", "sign", "logabsdet"),
)
class linalg_slogdet:
    """The sign and the logarithm of the absolute value of the determinant."""

    def forward(A: Array): ...

    def grad_A(grads, A, sign, xp):
        to_sign, to_log = grads
        total = to_log
        if to_sign is not None and A.dtype in _COMPLEX:
            turn = xp.imag_part(to_sign.conj() * sign) * (-1j)
            total = turn if total is None else total + turn
        if total is None:
            return A * 0
        return total.reshape((*total.shape, 1, 1)) * _adjoint(xp.linalg_inv(A))


def _complex_types():
    from .. import dtypes

    kinds = (dtypes.complex64, dtypes.complex128)
    return (*kinds, *(kind.numpy for kind in kinds))


_COMPLEX = _complex_types()


@public(namespace=None, on_arrays=lambda value: value.imag)
def imag_part(value):
    """The imaginary part."""
    return tensors.imag(value)


@public(namespace="linalg")
def slogdet(A, *, out=None):
    """The sign (or phase) of the determinant and the logarithm of its absolute value."""
    return linalg_slogdet(A, out=out)


@public(name="slogdet", method=("slogdet",))
def slogdet_function(input):
    """The sign (or phase) of the determinant and the logarithm of its absolute value: `linalg.slogdet`."""
    return linalg_slogdet(input)


@public(method=True, numpy_names=True)
def logdet(input):
    """The logarithm of the determinant; NaN where it is negative."""
    sign, log = linalg_slogdet(input)
    if input._array.dtype.kind == "c":
        return log + sign.log()
    return tensors.where(sign == -1.0, float("nan"), log)


# --- factorizations -------------------------------------------------------------------------------------------


@operator(
    kernel=kernels.cholesky, namespace=None, method=False, name="linalg_cholesky", node="LinalgCholeskyExBackward0"
)
class linalg_cholesky:
    """The triangular factor of positive-definite matrices."""

    def forward(self: Array, upper=False): ...

    def grad_self(grad, result, upper, xp):
        # Murray (2016), "Differentiation of the Cholesky decomposition": L^-H Phi(L^H grad) L^-1, symmetrized.
        lower, grad = (_adjoint(result), _adjoint(grad)) if upper else (result, grad)
        inner = xp.tril(_adjoint(lower) @ grad, 0)
        inner = (inner + _adjoint(xp.tril(inner, -1))) * 0.5
        left = xp.linalg_solve(_adjoint(lower), inner, True)
        return xp.linalg_solve(lower, left, False)


@public(namespace="linalg", name="cholesky")
def cholesky_lower(A, *, upper=False, out=None):
    """The lower (or upper) triangular L with `A = L @ L.mH`.

    Raises:
        LinAlgError: if A is not positive-definite.
    """
    return linalg_cholesky(A, upper, out=out)


@public(name="cholesky", method=("cholesky",))
def cholesky(input, upper=False, *, out=None):
    """The triangular factor of positive-definite matrices: `linalg.cholesky`."""
    return linalg_cholesky(input, upper, out=out)


@operator(
    kernel=kernels.svd,
    namespace=None,
    method=False,
    name="linalg_svd",
    outputs=("U", "S", "Vh"),
    returns=return_type("linalg_svd", "U", "S", "Vh"),
)
class linalg_svd:
    """The singular value decomposition."""

    def forward(self: Array, full_matrices=True): ...

    def grad_self(grads, U, S, Vh, xp):
        return _svd_gradient(grads, U, S, Vh, xp)


def _svd_gradient(grads, U, S, Vh, xp):
    """Wan & Zhang (2019), "Automatic differentiation for complex valued SVD"; only the leading singular vectors count."""
    to_u, to_s, to_vh = grads
    k = S.shape[-1]
    u, vh = U[..., :, :k], Vh[..., :k, :]
    if to_u is None and to_vh is None:
        return (u * to_s[..., None, :]) @ vh
    square = S * S
    difference = square[..., None, :] - square[..., :, None]
    identity = difference == 0
    spread = xp.where(identity, difference * 0, 1 / xp.where(identity, difference * 0 + 1, difference))
    inner = u * 0
    inner = _adjoint(u) @ inner
    if to_s is not None:
        inner = inner + xp.diag_embed(to_s, 0, -2, -1)
    if to_u is not None:
        skew = _adjoint(u) @ to_u[..., :, :k]
        skew = skew - _adjoint(skew)
        inner = inner + (spread * skew) * S[..., None, :]
    if to_vh is not None:
        skew = vh @ _adjoint(to_vh[..., :k, :])
        skew = skew - _adjoint(skew)
        inner = inner + S[..., :, None] * (spread * skew)
    result = u @ inner @ vh
    if to_vh is not None and u.dtype != S.dtype:  # complex vectors have phases, which are determined in pairs only
        phase = xp.diagonal(vh @ _adjoint(to_vh[..., :k, :]), 0, -2, -1)
        result = result + (u * ((phase.conj() - phase) / (2 * S))[..., None, :]) @ vh
    if to_u is not None and u.shape[-2] > k:
        part = to_u[..., :, :k] / S[..., None, :]
        result = result + (part - u @ (_adjoint(u) @ part)) @ vh
    if to_vh is not None and vh.shape[-1] > k:
        part = to_vh[..., :k, :] / S[..., :, None]
        result = result + u @ (part - (part @ _adjoint(vh)) @ vh)
    return result


@public(namespace="linalg")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """The singular value decomposition `A = U @ diag(S) @ Vh`."""
    return linalg_svd(A, full_matrices, out=out)


@public(namespace="linalg")
def svdvals(A, *, driver=None, out=None):
    """The singular values, descending."""
    values = linalg_svd(A, False).S
    return values if out is None else out.copy_(values)


@operator(
    kernel=kernels.eigh,
    namespace=None,
    method=False,
    name="linalg_eigh",
    outputs=("eigenvalues", "eigenvectors"),
    returns=return_type("linalg_eigh", "eigenvalues", "eigenvectors"),
)
class linalg_eigh:
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    def forward(self: Array, UPLO="L"): ...

    def grad_self(grads, eigenvalues, eigenvectors, xp):
        to_values, to_vectors = grads
        adjoint = _adjoint(eigenvectors)
        if to_vectors is None:
            return (eigenvectors * to_values[..., None, :]) @ adjoint
        difference = eigenvalues[..., None, :] - eigenvalues[..., :, None]
        same = difference == 0
        inner = adjoint @ to_vectors
        inner = xp.where(same, inner * 0, inner / xp.where(same, difference * 0 + 1, difference))
        if to_values is not None:
            inner = inner + xp.diag_embed(to_values, 0, -2, -1)
        return eigenvectors @ inner @ adjoint


@public(namespace="linalg")
def eigh(A, UPLO="L", *, out=None):
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    return linalg_eigh(A, UPLO, out=out)


@public(namespace="linalg")
def eigvalsh(A, UPLO="L", *, out=None):
    """The eigenvalues of Hermitian matrices, ascending."""
    values = linalg_eigh(A, UPLO).eigenvalues
    return values if out is None else out.copy_(values)


@operator(
    kernel=kernels.qr,
    namespace=None,
    method=False,
    name="linalg_qr",
    outputs=("Q", "R"),
    returns=return_type("linalg_qr", "Q", "R"),
)
class linalg_qr:
    """An orthonormal and an upper triangular factor."""

    def forward(A: Array, mode="reduced"): ...

    def grad_A(grads, Q, R, mode, xp):
        # Walter & Lehmann (2013), "Algorithmic differentiation of linear algebra functions": for matrices at least as
        # tall as wide.
        if mode == "r" or Q.shape[-2] < R.shape[-1] or (mode == "complete" and Q.shape[-2] != R.shape[-1]):
            raise RuntimeError(
                f"The derivative of linalg.qr depends on Q, or is not defined, for mode='{mode}' and matrices of this shape"
            )
        to_q, to_r = grads
        inner = None
        if to_r is not None:
            inner = R @ _adjoint(to_r)
        if to_q is not None:
            part = _adjoint(to_q) @ Q
            inner = -part if inner is None else inner - part
        symmetric = xp.tril(inner, -1)
        diagonal = xp.diagonal(inner, 0, -2, -1).real  # that of R is real
        symmetric = symmetric + _adjoint(symmetric) + xp.diag_embed(diagonal, 0, -2, -1)
        total = Q @ symmetric if to_q is None else to_q + Q @ symmetric
        return xp.linalg_solve(_adjoint(R), total, False)


@public(namespace="linalg")
def qr(A, mode="reduced", *, out=None):
    """An orthonormal Q and an upper triangular R with `A = Q @ R`; `mode` "reduced", "complete" or "r" (R alone)."""
    return linalg_qr(A, mode, out=out)


@public(name="qr", method=("qr",))
def qr_function(input, some=True, *, out=None):
    """An orthonormal and an upper triangular factor: `linalg.qr`."""
    return linalg_qr(input, "reduced" if some else "complete", out=out)


# --- norms ----------------------------------------------------------------------------------------------------


@public(namespace="linalg")
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The `ord`-norm of the elements over `dim`, all by default."""
    dim = tuple(dim) if isinstance(dim, list) else dim
    return tensors.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype, out=out)


@public(namespace=None)
def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The norm of matrices: `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf."""
    ndim = A._array.ndim
    if ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    first, second = wrap_dim(dim[0], ndim), wrap_dim(dim[1], ndim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return tensors.linalg_vector_norm(A, 2, (first, second), keepdim, dtype=dtype, out=out)
    matrix = A if dtype is None else A.to(dtype)
    if ord == "nuc" or ord in (2, -2):
        values = svdvals(matrix.movedim((first, second), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            for position in sorted((first, second)):
                result = result.unsqueeze(position)
    elif isinstance(ord, str) or abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    else:
        summed, kept = (first, second) if abs(ord) == 1 else (second, first)
        sums = tensors.linalg_vector_norm(matrix, 1, summed, True)
        sums = sums.amax(kept, True) if ord > 0 else sums.amin(kept, True)
        result = sums if keepdim else sums.squeeze((first, second))
    return result if out is None else out.copy_(result)


@public(namespace="linalg")
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The norm of matrices: `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf."""
    return linalg_matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)


@public(namespace="linalg")
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of vectors (one `dim`) or matrices (two); by default that of all elements as a vector."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    if dim is None:
        if A._array.ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A._array.ndim}D."
            )
        dim = (0, 1) if A._array.ndim == 2 else (0,)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: If ord is a string, dim must be None or a 2-tuple, got {dims}")
    return vector_norm(A, ord, dims, keepdim, dtype=dtype, out=out)


# --- products -------------------------------------------------------------------------------------------------


@public(namespace="linalg")
def matmul(input, other, *, out=None):
    """The product of two tensors: `adjoint.matmul`."""
    return tensors.matmul(input, other, out=out)


@public(namespace="linalg")
def multi_dot(tensors_, *, out=None):
    """The product of several matrices, in the order of the fewest multiplications (Cormen et al., chapter 15.2)."""
    factors = list(tensors_)
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    first_vector, last_vector = factors[0]._array.ndim == 1, factors[-1]._array.ndim == 1
    if first_vector:
        factors[0] = factors[0].unsqueeze(0)
    if last_vector:
        factors[-1] = factors[-1].unsqueeze(-1)
    result = _product(
        factors, _best_splits([f._array.shape[0] for f in factors] + [factors[-1]._array.shape[1]]), 0, len(factors) - 1
    )
    if last_vector:
        result = result.squeeze(-1)
    if first_vector:
        result = result.squeeze(0)
    return result if out is None else out.copy_(result)


def _best_splits(sizes):
    count = len(sizes) - 1
    cost = [[0.0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            options = [
                cost[start][middle] + cost[middle + 1][stop] + sizes[start] * sizes[middle + 1] * sizes[stop + 1]
                for middle in range(start, stop)
            ]
            cost[start][stop] = min(options)
            split[start][stop] = start + options.index(cost[start][stop])
    return split


def _product(factors, split, start, stop):
    if start == stop:
        return factors[start]
    middle = split[start][stop]
    return tensors.mm(_product(factors, split, start, middle), _product(factors, split, middle + 1, stop))


@public(namespace="linalg")
def matrix_power(A, n, *, out=None):
    """Square matrices to the power `n`, by repeated squaring; of the inverse for negative `n`."""
    kernels.check_matrix("matrix_power", A._array, square=True)
    if n == 0:
        result = tensors.eye(A._array.shape[-1], dtype=A.dtype).expand(*A._array.shape).clone()
        return result if out is None else out.copy_(result)
    base = linalg_inv(A) if n < 0 else A
    result, n = None, abs(n)
    while n:
        if n & 1:
            result = base if result is None else tensors.matmul(result, base)
        n >>= 1
        if n:
            base = tensors.matmul(base, base)
    return result if out is None else out.copy_(result)


@public(name="matrix_power", method=("matrix_power",))
def matrix_power_function(input, n, *, out=None):
    """Square matrices to the power `n`: `linalg.matrix_power`."""
    return matrix_power(input, n, out=out)


@public(namespace="linalg")
def vecdot(x, y, *, dim=-1, out=None):
    """The sums of the products of two tensors' elements along `dim`, the first conjugated."""
    return tensors.sum(x.conj() * y, dim, out=out)


@operator(namespace=None, method=(), same_out=STRICT, kernel=products.cross)
class linalg_cross:
    """The cross product of vectors of three elements along `dim`."""

    def forward(self: Array, other: Array, dim: Int = -1): ...

    def grad_self(grad, other, dim, xp):
        return xp.linalg_cross(other.conj(), grad, dim)

    def grad_other(grad, self, dim, xp):
        return xp.linalg_cross(grad, self.conj(), dim)


@public(namespace="linalg", numpy_names=True)
def cross(input, other, *, dim=-1, out=None):
    """The cross product of vectors of three elements along `dim`.

    >>> import adjoint as torch
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return linalg_cross(input, other, dim, out=out)


_DEFAULT_DIM = """Using torch.cross without specifying the dim arg is deprecated.
Please either pass the dim explicitly or simply use torch.linalg.cross.
The default value of dim will change to agree with that of linalg.cross in a future release."""


@functools.cache
def _warn_of_default_dim():
    warnings.warn(_DEFAULT_DIM, UserWarning, stacklevel=4)


@public(name="cross", method=("cross",), numpy_names=True)
def cross_function(input, other, dim=None, *, out=None):
    """The cross product of vectors along `dim`, by default the first dimension of size 3."""
    if dim is None:
        _warn_of_default_dim()
        if input._array.ndim == other._array.ndim:
            sizes = broadcast_shapes(input._array.shape, other._array.shape)
            dim = next((d for d, size in enumerate(sizes) if size == 3), None)
            if dim is None:
                raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, -1 if dim is None else dim, out=out)
