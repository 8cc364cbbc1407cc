"""Linear algebra: solving, determinants, factorizations and the cross product (`adjoint.linalg`)."""

from __future__ import annotations

import functools

import numpy

from ..._runtime.tracebacks import warn_once
from ...dispatch.annotations import Array, Bool, Int, Str
from ...dispatch.arguments import require
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.out import STRICT, all_stored, stored
from ...dispatch.return_types import return_type
from ...kernels.linalg import decompositions as kernels
from ...kernels.linalg import matmul
from ...kernels.linalg.elimination import lu_factor
from ...kernels.linalg.factored import older_cholesky
from ...kernels.runtime.shapes import broadcast_shapes
from ...tape.modes import FLAGS, is_recording
from ...tape.saved import unpack
from ...tensor import Tensor, wrap
from ..math.pointwise import is_complex


def conjugate_transpose(matrix):
    """Return each matrix of a stack transposed and conjugated. The argument is an array or a tensor."""
    return matrix.mT.conj()


def factors_shown(transposed):
    """Return attributes for nodes that show the factors of Gaussian elimination, computed on access."""

    def shown(position, node):
        matrix = unpack(node, "A")._array  # type: ignore[union-attr]
        return wrap(lu_factor(matrix.mT if transposed else matrix)[position])

    return {"LU": functools.partial(shown, 0), "pivots": functools.partial(shown, 1)}


def of_matrices(kernel, **options):
    """Declare a function of `linalg` on stacks of matrices. The named tuple of `outputs` has the operator's name."""

    def declare(declaration):
        shared = {"namespace": "linalg", "same_out": STRICT, "batch": "leading"}
        if "outputs" in options:
            shared["returns"] = declaration.__name__
        return operator(kernel=kernel, **{**shared, **options})(declaration)

    return declare


# --- solving --------------------------------------------------------------------------------------------------


@of_matrices(kernels.inv, node="LinalgInvExBackward0")
class linalg_inv:
    """The inverse of (a stack of) square matrices.

    Raises:
        LinAlgError: if a matrix is singular.
    """

    saved_display = {"result": None, "inverse": functools.partial(unpack, item="result")}

    def forward(A: Array): ...

    def grad_A(grad, result):
        inverse = conjugate_transpose(result)
        return -(inverse @ grad @ inverse)


@public(method=True, numpy_names=True)
def inverse(input, *, out=None):
    """The inverse of (a stack of) square matrices; see `linalg.inv`."""
    return linalg_inv(input, out=out)


def batch_of_systems(op, batch, matrix, right, *options):
    """Apply an operator that solves linear systems to a batch. The right-hand sides are vectors or matrices."""
    left = options[0]
    if right._array.ndim > 1:
        if right._array.ndim != matrix._array.ndim:
            return None
        return op.apply(batch.expanded(matrix), batch.expanded(right), *options)
    if matrix._array.ndim != 2:
        return None
    side = -1 if left else -2
    results = op.apply(batch.expanded(matrix), batch.expanded(right).unsqueeze(side), *options)
    return (results[0].squeeze(side), *results[1:]) if op.outputs else results.squeeze(side)


def solution_gradients(grad, A, result, left, needs, xp):
    """Return the gradients of the matrices and of the right-hand sides of linear systems."""
    vector = len(result.shape) == len(A.shape) - 1
    to_b = xp.linalg_solve_ex(conjugate_transpose(A), grad, left=left)[0]
    if not needs[0]:
        return None, to_b
    g, x = (to_b[..., None], result[..., None]) if vector else (to_b, result)
    to_a = -(g @ conjugate_transpose(x)) if left else -(conjugate_transpose(x) @ g)
    return to_a, to_b if needs[1] else None


@of_matrices(kernels.solve, node="LinalgSolveExBackward0", batch=batch_of_systems, narrow="trivial")
class linalg_solve:
    """X with `A @ X = B` or, if `left` is false, with `X @ A = B`. B contains matrices or vectors.

    >>> import adjoint as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])

    Raises:
        LinAlgError: if A is singular.
    """

    saved_display = factors_shown(transposed=False)

    def forward(A: Array, B: Array, *, left: Bool = True): ...

    differentiable = ("A", "B")
    grad_inputs = solution_gradients


# --- factorizations -------------------------------------------------------------------------------------------


@of_matrices(kernels.cholesky, node="LinalgCholeskyExBackward0", narrow="trivial")
class linalg_cholesky:
    """The lower (or upper) triangular L with `input = L @ L.mH`.

    Raises:
        LinAlgError: if the matrix is not positive-definite.
    """

    saved_display = {"result": None, "L": functools.partial(unpack, item="result")}

    def forward(self: Array, *, upper: Bool = False): ...

    def grad_self(grad, result, upper, xp):
        return cholesky_gradient(grad, result, upper, xp)


def cholesky_gradient(grad, result, upper, xp):
    """L^-H Phi(L^H grad) L^-1, symmetrized (Murray, 2016, "Differentiation of the Cholesky decomposition")."""
    lower, grad = (conjugate_transpose(result), conjugate_transpose(grad)) if upper else (result, grad)
    inner = xp.tril(conjugate_transpose(lower) @ grad, 0)
    inner = (inner + conjugate_transpose(xp.tril(inner, -1))) * 0.5
    left = xp.linalg_solve_triangular(conjugate_transpose(lower), inner, True, True, False)
    return xp.linalg_solve_triangular(lower, left, False, False, False)


@operator(kernel=older_cholesky, batch="leading", narrow="trivial")
class cholesky:
    """The triangular factor of positive-definite matrices; see `linalg.cholesky`."""

    def forward(self: Array, upper: Bool = False): ...

    def grad_self(grad, result, upper, xp):
        return cholesky_gradient(grad, result, upper, xp)


@of_matrices(kernels.svd, namespace=None, outputs=("U", "S", "Vh"), narrow="trivial", aten_name="_linalg_svd")
class linalg_svd:
    """The singular value decomposition."""

    def forward(self: Array, full_matrices=True, compute_uv=True): ...

    saved_display = {"S_sym_argsize_minus_1": lambda node: unpack(node, "S")._array.shape[-1]}  # type: ignore[union-attr]

    def grad_self(grads, U, S, Vh, full_matrices, xp):
        return _svd_gradient(grads, U, S, Vh, xp)


def _svd_gradient(grads, U, S, Vh, xp):
    """Return the gradient (Wan & Zhang, 2019, "Automatic differentiation for complex valued SVD").

    Only the leading singular vectors have derivatives.
    """
    to_u, to_s, to_vh = grads
    k = S.shape[-1]
    u, vh = U[..., :, :k], Vh[..., :k, :]
    if to_u is None and to_vh is None:
        return (u * to_s[..., None, :]) @ vh
    # For complex numbers, opposite changes of phase of a vector of U and a vector of V change A too. Real numbers have no phase,
    # so nothing is divided by the diagonal.
    difference, turned = _differences(S * S), xp.diag_embed(4 * S * S if is_complex(U) else S * 0 + 1, 0, -2, -1)
    inner = 0
    along_u = 0 if to_u is None else conjugate_transpose(u) @ to_u[..., :, :k]
    along_v = 0 if to_vh is None else vh @ conjugate_transpose(to_vh[..., :k, :])
    if is_complex(U):
        check_phases("svd_backward: The singular vectors", "this phase term, making it", along_u + along_v, grads, xp)
    if to_s is not None:
        inner = inner + xp.diag_embed(to_s, 0, -2, -1)
    if to_u is not None:
        inner = inner + _skew(along_u) / (difference + turned) * S[..., None, :]
    if to_vh is not None:
        inner = inner + S[..., :, None] * (_skew(along_v) / (difference - turned))
    result = u @ inner @ vh
    if to_u is not None and u.shape[-2] > k:
        part = to_u[..., :, :k] / S[..., None, :]
        result = result + (part - u @ (conjugate_transpose(u) @ part)) @ vh
    if to_vh is not None and vh.shape[-1] > k:
        part = to_vh[..., :k, :] / S[..., :, None]
        result = result + u @ (part - (part @ conjugate_transpose(vh)) @ vh)
    return result


def check_phases(begin, end, along, grads, xp):
    """Raise an error if a loss depends on the phases of complex vectors, which are arbitrary.

    The imaginary part of the diagonal of `along` is the derivative with respect to the phases. Nothing is checked if `grads`
    require grad, because a product that is transposed has arbitrary gradients.
    """
    if any(getattr(grad, "requires_grad", False) for grad in grads):
        return
    turning = xp.diagonal(along, 0, -2, -1).imag
    turning = getattr(turning, "_array", turning)
    if type(turning) is numpy.ndarray and (abs(turning) > 1e-2).any():  # a batch and `meta` have no elements to read
        raise RuntimeError(
            f"{begin} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function "
            f"depends on {end} ill-defined."
        )


def _skew(matrix):
    return matrix - conjugate_transpose(matrix)


def _differences(values):
    """Return all differences `values[j] - values[i]`, which are divisors in the gradients of vectors."""
    return values[..., None, :] - values[..., :, None]


@public(namespace="linalg")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """The singular value decomposition `A = U @ diag(S) @ Vh`."""
    _no_driver(driver)
    return linalg_svd(A, full_matrices, out=out)


@public(name="svd", method=("svd",), numpy_names=True)
def svd_function(input, some: bool = True, compute_uv: bool = True, *, out=None):
    """The singular value decomposition `input = U @ diag(S) @ V.mH`. `linalg.svd` returns the adjoint of V instead.

    If `compute_uv` is false, U and V are zeros.
    """
    U, S, Vh = linalg_svd(input, not some or not compute_uv)
    V = Vh.mH
    if not compute_uv:
        U, V = tensors.zeros_like(U), tensors.zeros_like(V)
    if out is None:
        return SVD(U, S, V)
    return SVD.out(*all_stored("svd", (U, S, V), out, STRICT))


def _no_driver(driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@public(namespace="linalg")
def svdvals(A, *, driver=None, out=None):
    """The singular values, in descending order."""
    _no_driver(driver)
    return stored("linalg_svdvals", linalg_svd(A, False, _counts_for_gradients(A)).S, out, STRICT)


def _counts_for_gradients(input):
    """Return whether vectors must be computed even if they are not requested, because derivatives of values use them."""
    return bool(FLAGS.special) or not isinstance(input, Tensor) or (input.requires_grad and is_recording())


@of_matrices(
    kernels.eigh, namespace=None, outputs=("eigenvalues", "eigenvectors"), narrow="trivial", aten_name="_linalg_eigh"
)
class linalg_eigh:
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    def forward(self: Array, UPLO="L", compute_v=True): ...

    def grad_self(grads, eigenvalues, eigenvectors, xp):
        to_values, to_vectors = grads
        adjoint = conjugate_transpose(eigenvectors)
        if to_vectors is None:
            return (eigenvectors * to_values[..., None, :]) @ adjoint
        gaps = _differences(eigenvalues) + xp.diag_embed(eigenvalues * 0 + 1, 0, -2, -1)
        along = adjoint @ to_vectors
        if is_complex(along):
            check_phases("linalg_eigh_backward: The eigenvectors", "this quantity, so it is", along, grads, xp)
        inner = _skew(along) * 0.5 / gaps
        inner = inner - xp.diag_embed(xp.diagonal(inner, 0, -2, -1), 0, -2, -1)  # the phase of a vector is arbitrary
        if to_values is not None:
            inner = inner + xp.diag_embed(to_values, 0, -2, -1)
        return eigenvectors @ inner @ adjoint


@public(namespace="linalg", numpy_names=True)
def eigh(input, UPLO="L", *, out=None):
    """Eigenvalues in ascending order and eigenvectors of Hermitian matrices. Only one triangle of each matrix is read."""
    return linalg_eigh(input, UPLO, out=out)


@public(namespace="linalg", numpy_names=True)
def eigvalsh(input, UPLO="L", *, out=None):
    """The eigenvalues of Hermitian matrices, in ascending order."""
    return stored("linalg_eigvalsh", linalg_eigh(input, UPLO, _counts_for_gradients(input)).eigenvalues, out, STRICT)


@of_matrices(kernels.qr, outputs=("Q", "R"))
class linalg_qr:
    """An orthonormal Q and an upper triangular R with `A = Q @ R`. `mode` is "reduced", "complete" or "r" (only R)."""

    def forward(A: Array, mode: Str = "reduced"): ...

    def grad_A(grads, Q, R, mode, xp):
        if mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
                "mode='reduced') if you are going to differentiate through linalg.qr."
            )
        rows, columns = Q.shape[-2], R.shape[-1]
        if mode == "complete" and rows > columns:
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
        to_q, to_r = grads
        if rows >= columns:
            return _qr_gradient(to_q, to_r, Q, R, xp)
        # Roberts & Roberts (2020), "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep
        # matrices": the first columns determine Q, which turns the other columns into the rest of R.
        if to_r is None:
            return xp.cat([_qr_gradient(to_q, None, Q, R[..., :, :rows], xp), R[..., :, rows:] * 0], -1)
        rest, to_rest = R[..., :, rows:], to_r[..., :, rows:]
        turned = Q @ (rest @ conjugate_transpose(to_rest))
        first = _qr_gradient(turned if to_q is None else to_q + turned, to_r[..., :, :rows], Q, R[..., :, :rows], xp)
        return xp.cat([first, Q @ to_rest], -1)


def _qr_gradient(to_q, to_r, Q, R, xp):
    """Return the gradient for square or tall matrices.

    Walter & Lehmann (2013), "Algorithmic differentiation of linear algebra functions".

    The part above the diagonal of the product of Q and `to_q` cancels. Omitting this part avoids a rounding error.
    """
    inner = 0
    if to_r is not None:
        product = R @ conjugate_transpose(to_r)
        below = xp.tril(product, -1)
        diagonal = xp.diagonal(product, 0, -2, -1).real  # the diagonal of R is real
        inner = inner + below + conjugate_transpose(below) + xp.diag_embed(diagonal, 0, -2, -1)
    if to_q is not None:
        within = conjugate_transpose(Q) @ to_q
        skew = _skew(within)
        inner = inner + xp.tril(skew, -1) + xp.diag_embed(xp.diagonal(skew, 0, -2, -1) / 2, 0, -2, -1)
    total = Q @ inner
    if to_q is not None and Q.shape[-2] > Q.shape[-1]:
        total = total + (to_q - Q @ within)
    return xp.linalg_solve_triangular(conjugate_transpose(R), total, False, False, False)


_OLDER_QR = """torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.
The boolean parameter 'some' has been replaced with a string parameter 'mode'.
Q, R = torch.qr(A, some)
should be replaced with
Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"""


@public(name="qr", method=("qr",), numpy_names=True)
def qr_function(input, some: bool = True, *, out=None):
    """An orthonormal and an upper triangular factor; see `linalg.qr`."""
    warn_once("torch.qr", _OLDER_QR)
    return named(QR, linalg_qr(input, "reduced" if some else "complete", out=out), out)


QR = return_type("qr", "Q", "R")
SVD = return_type("svd", "U", "S", "V")


def named(cls, results, out):
    """Return the results of a function of `linalg` with the field names of the older function."""
    return (cls if out is None else cls.out)(*results)


# --- products -------------------------------------------------------------------------------------------------


@of_matrices(matmul.cross, tangent="multilinear", batch="expanded")
class linalg_cross:
    """The cross product of vectors with three elements along `dim`.

    >>> import adjoint as torch
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """

    def forward(self: Array, other: Array, *, dim: Int = -1): ...

    def grad_self(grad, other, dim, xp):
        return xp.linalg_cross(other.conj(), grad, dim=dim)

    def grad_other(grad, self, dim, xp):
        return xp.linalg_cross(grad, self.conj(), dim=dim)


_DEFAULT_DIM = """Using torch.cross without specifying the dim arg is deprecated.
Please either pass the dim explicitly or simply use torch.linalg.cross.
The default value of dim will change to agree with that of linalg.cross in a future release."""


@public(name="cross", method=("cross",), numpy_names=True)
def cross_function(input, other, dim=None, *, out=None):
    """The cross product of vectors along `dim`. By default, `dim` is the first dimension of size 3."""
    if dim is None:
        warn_once("torch.cross", _DEFAULT_DIM)
        if input._array.ndim == other._array.ndim:
            sizes = broadcast_shapes(input._array.shape, other._array.shape)
            dim = next((d for d, size in enumerate(sizes) if size == 3), None)
            if dim is None:
                raise RuntimeError("no dimension of size 3 in input")
    else:
        require("Int", dim, "cross", "dim", 3)
    return linalg_cross(input, other, dim=-1 if dim is None else dim, out=out)
