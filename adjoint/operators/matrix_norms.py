"""Norms of vectors and of matrices, as `adjoint.linalg` has them."""

from __future__ import annotations

from ..kernels import linalg as kernels
from ..kernels.view import inverse_permutation
from ..tensor import wrap_dim
from .build import public, tensors
from .out import stored


@public(namespace="linalg", numpy_names=True)
def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The `ord`-norm of the elements over `dim`, all by default.

    >>> import adjoint as torch
    >>> torch.linalg.vector_norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    dim = tuple(dim) if isinstance(dim, list) else dim
    return tensors.linalg_vector_norm(input, ord, dim, keepdim, dtype=dtype, out=out)


@public(namespace="linalg", numpy_names=True)
def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The norm of matrices: `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf."""
    result = linalg_matrix_norm(input, ord, dim, keepdim, dtype=dtype)
    words = "linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}"
    return stored("linalg_matrix_norm", result, out, words, recorded=True)


@public(namespace="linalg", numpy_names=True)
def norm(input, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of vectors (one `dim`) or matrices (two); by default that of all elements as a vector."""
    result = _norm(input, ord, dim, keepdim, dtype)
    words = "linalg.norm expected out tensor dtype {wanted} but got: {given}"
    return stored("linalg_norm", result, out, words, recorded=True)


def _norm(input, ord, dim, keepdim, dtype):
    if ord is None:
        return vector_norm(input, 2.0, dim, keepdim, dtype=dtype)
    if dim is None:
        ndim = input._array.ndim
        if ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D."
            )
        dim = (0, 1) if ndim == 2 else (0,)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if len(dims) == 2 or isinstance(ord, str):
        return linalg_matrix_norm(input, ord, dims, keepdim, dtype=dtype)
    return vector_norm(input, ord, dims, keepdim, dtype=dtype)


@public(namespace=None)
def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices in dimensions `dim`."""
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    kernels.check_matrix("matrix_norm", A._array, half=ord not in ("nuc", 2, -2))
    ndim = A._array.ndim
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    rows, columns = wrap_dim(dim[0], ndim), wrap_dim(dim[1], ndim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return tensors.linalg_vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        return _spectral_norm(A if dtype is None else A.to(dtype), ord, rows, columns, keepdim)
    if abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = tensors.linalg_vector_norm(A, 1.0, (summed,), keepdim, dtype=dtype)
    return _extreme(sums, kept - (not keepdim and summed < kept), keepdim, ord > 0)


def _spectral_norm(A, ord, rows, columns, keepdim):
    """The sum, the greatest or the least of the singular values."""
    order = (*(dim for dim in range(A._array.ndim) if dim not in (rows, columns)), rows, columns)
    values = tensors.svdvals(tensors.permute(A, order))
    result = tensors.sum(values, -1, keepdim) if ord == "nuc" else _extreme(values, -1, keepdim, ord > 0)
    return tensors.permute(result.unsqueeze(-1), inverse_permutation(order)) if keepdim else result


def _extreme(values, dim, keepdim, greatest):
    """The greatest or the least along `dim` of numbers that are not negative: of none, the greatest is 0."""
    if not greatest:
        return tensors.amin(values, dim, keepdim)
    shape = values._array.shape
    if shape[dim]:
        return tensors.amax(values, dim, keepdim)
    dim = wrap_dim(dim, len(shape))
    return tensors.empty((*shape[:dim], *((1,) * keepdim), *shape[dim + 1 :]), dtype=values.dtype).zero_()
