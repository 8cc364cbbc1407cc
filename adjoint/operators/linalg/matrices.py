"""Functions of matrices: products of several matrices, powers, the exponential, eigenvalues, norms (`adjoint.linalg`)."""

from __future__ import annotations

import functools

from ...dispatch.arguments import require
from ...dispatch.decorators import add_method, operator, public, publish, tensors
from ...dispatch.numpy_names import taking_numpy_names
from ...dispatch.out import STRICT, Castable, stored
from ...kernels.linalg import decompositions as kernels
from ...kernels.runtime.floating import c_name, is_inexact
from ...kernels.shape.view import inverse_permutation
from ...tensor import wrap_dim
from ..reduce.moments import linalg_vector_norm
from ..shape.view import reshaped
from .decompositions import check_phases, conjugate_transpose, of_matrices
from .matmul import check_tensors, mm, vdot
from .matmul import matmul as general_product

MULTI_DOT = "multi_dot(): expected out tensor to have dtype {wanted_c} but got {given_c}"
EIGVALS = Castable("torch.linalg.eigvals", "eigenvalues")
VECDOT = "linalg.vecdot: Expected out of dtype{wanted} but found {given}"


publish("linalg", retried=False, matmul=taking_numpy_names(general_product))


@public(namespace="linalg")
def multi_dot(tensors, *, out=None):
    """The product of several matrices, in the order that needs the fewest multiplications (Cormen et al., chapter 15.2).

    The first and the last factor may be vectors.

    >>> import adjoint as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
    tensor([12., 12.])
    """
    factors = list(tensors)
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    shape = []
    for which, factor in (("first", factors[0]), ("last", factors[-1])):
        if factor._array.ndim == 0:
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got 0D")
    if factors[0]._array.ndim == 1:
        factors[0] = factors[0].unsqueeze(0)
    else:
        shape.append(factors[0]._array.shape[0])
    if factors[-1]._array.ndim == 1:
        factors[-1] = factors[-1].unsqueeze(-1)
    else:
        shape.append(factors[-1]._array.shape[-1])
    _check_chain(tensors, factors)
    splits = _best_splits((*[factor._array.shape[0] for factor in factors], factors[-1]._array.shape[1]))
    result = _product(factors, splits, 0, len(factors) - 1)
    result = reshaped(result, tuple(shape))
    return stored("multi_dot", result, out, MULTI_DOT)


def _check_chain(given, factors):
    """Raise an error unless `factors`, the matrices made from `given`, can be multiplied in their order."""
    last = len(factors) - 1
    for index, factor in enumerate(factors):
        if factor._array.ndim != 2:
            which = "the first tensor" if index == 0 else "the last tensor" if index == last else f"tensor {index}"
            dims = "1D or 2D" if index in (0, last) else "2D"
            raise RuntimeError(f"multi_dot(): {which} must be {dims} but got {factor._array.ndim}D")
        if factor._array.dtype is not factors[0]._array.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {c_name(factors[0]._array.dtype)} and "
                f"tensor {index} {c_name(factor._array.dtype)}"
            )
    for index in range(last):
        if factors[index]._array.shape[1] != factors[index + 1]._array.shape[0]:
            shapes = [list(item._array.shape) for item in given[index : index + 2]]
            raise RuntimeError(
                f"multi_dot(): tensors {index} and {index + 1} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )


@functools.lru_cache(64)
def _best_splits(sizes):
    """Return the split position of each run of factors that minimizes the number of multiplications."""
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            options = [
                cost[start][middle] + cost[middle + 1][stop] + sizes[start] * sizes[middle + 1] * sizes[stop + 1]
                for middle in range(start, stop)
            ]
            cost[start][stop] = least = min(options)
            # If all orders cost the same, PyTorch begins with the first two of three factors, or with the last two of more
            # factors.
            split[start][stop] = stop - 1 if count == 3 and options[-1] == least else start + options.index(least)
    return split


def _product(factors, split, start, stop):
    if start == stop:
        return factors[start]
    middle = split[start][stop]
    return mm(_product(factors, split, start, middle), _product(factors, split, middle + 1, stop))


@public(namespace="linalg", numpy_names=True)
def matrix_power(input, n, *, out=None):
    """Square matrices to the power `n`, by repeated squaring.

    If `n` is negative, the inverse is raised to the power `-n`.

    >>> import adjoint as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    require("Int", n, "linalg_matrix_power", "n", 2)
    kernels.check_matrix("matrix_power", input._array, square=True, floating=False)
    if n in (0, 1):
        return stored(
            "matrix_power", _trivial_power(input if out is None or n else input.detach(), n), out, recorded=True
        )
    base = tensors.linalg_inv(input) if n < 0 else input
    return stored("matrix_power", _power(base, abs(n)), out, STRICT)


def _trivial_power(input, n):
    result = input.clone()
    return result if n else result.copy_(tensors.eye(input._array.shape[-1], dtype=input.dtype))


def _power(base, n):
    if n == 1:
        return base
    if n == 3:
        return general_product(general_product(base, base), base)
    result = None
    while n:
        if n & 1:
            result = base if result is None else general_product(result, base)
        n >>= 1
        if n:
            base = general_product(base, base)
    return result


publish("torch", retried=False, matrix_power=taking_numpy_names(matrix_power))
add_method("matrix_power", matrix_power, retried=True)


@public(namespace="linalg")
def vecdot(x, y, *, dim=-1, axis=None, out=None):
    """The sums of the products of two tensors' elements along `dim`. The first tensor is conjugated."""
    check_tensors("linalg_vecdot", x=x, y=y)
    if not is_inexact(x._array.dtype):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_type}"
        )
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_type} and y of type "
            f"{y.dtype.scalar_type} instead"
        )
    if x._array.ndim == 1 == y._array.ndim:
        result = vdot(x, y)
    else:
        result = tensors.sum(x.conj() * y, dim if axis is None else axis)
    return stored("linalg_vecdot", result, out, VECDOT)


@public(namespace="linalg", numpy_names=True)
def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The norm of matrices: `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf."""
    result = linalg_matrix_norm(input, ord, dim, keepdim, dtype=dtype)
    words = "linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}"
    return stored("linalg_matrix_norm", result, out, words, recorded=True)


@public(namespace="linalg", numpy_names=True)
def norm(input, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of vectors (one `dim`) or matrices (two).

    The default is the norm of all elements as a vector.
    """
    result = _norm(input, ord, dim, keepdim, dtype)
    words = "linalg.norm expected out tensor dtype {wanted} but got: {given}"
    return stored("linalg_norm", result, out, words, recorded=True)


def _norm(input, ord, dim, keepdim, dtype):
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None:
        return linalg_vector_norm(input, 2.0, dim, keepdim, dtype=dtype)
    if dim is None:
        ndim = input._array.ndim
        if ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D."
            )
        dim = (0, 1) if ndim == 2 else (0,)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) == 2 or isinstance(ord, str):
        return linalg_matrix_norm(input, ord, dims, keepdim, dtype=dtype)
    return linalg_vector_norm(input, ord, dims, keepdim, dtype=dtype)


@public(namespace=None)
def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices in dimensions `dim`."""
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    kernels.check_matrix("matrix_norm", A._array, half=ord not in ("nuc", 2, -2))
    ndim = A._array.ndim
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = wrap_dim(dim[0], ndim), wrap_dim(dim[1], ndim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return linalg_vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        return _spectral_norm(A if dtype is None else A.to(dtype), ord, rows, columns, keepdim)
    if abs(ord) not in (1, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = linalg_vector_norm(A, 1.0, (summed,), keepdim, dtype=dtype)
    return _extreme(sums, kept - (not keepdim and summed < kept), keepdim, ord > 0)


def _spectral_norm(A, ord, rows, columns, keepdim):
    """The sum, the greatest or the least of the singular values."""
    order = (*(dim for dim in range(A._array.ndim) if dim not in (rows, columns)), rows, columns)
    values = tensors.svdvals(tensors.permute(A, order))
    result = tensors.sum(values, -1, keepdim) if ord == "nuc" else _extreme(values, -1, keepdim, ord > 0)
    return tensors.permute(result.unsqueeze(-1), inverse_permutation(order)) if keepdim else result


def _extreme(values, dim, keepdim, greatest):
    """Return the greatest or the least of nonnegative numbers along `dim`. The greatest of an empty set is 0."""
    if not greatest:
        return tensors.amin(values, dim, keepdim)
    shape = values._array.shape
    if shape[dim]:
        return tensors.amax(values, dim, keepdim)
    dim = wrap_dim(dim, len(shape))
    return tensors.empty((*shape[:dim], *((1,) * keepdim), *shape[dim + 1 :]), dtype=values.dtype).zero_()


@operator(kernel=kernels.matrix_exp, namespace="linalg", out=False, batch="leading")
class linalg_matrix_exp:
    """The exponential of (a stack of) square matrices.

    >>> import adjoint as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    def grad_self(grad, self, xp):
        """The gradient is a block of a larger exponential (Mathias, 1996, "A chain rule for matrix functions")."""
        turned, size = conjugate_transpose(self), self.shape[-1]
        above = xp.cat([turned, grad], -1)
        below = xp.cat([turned * 0, turned], -1)
        return xp.linalg_matrix_exp(xp.cat([above, below], -2))[..., :size, size:]


publish("torch", matrix_exp=linalg_matrix_exp)
add_method("matrix_exp", linalg_matrix_exp)


@of_matrices(kernels.eig, same_out=Castable("torch.linalg.eig"), outputs=("eigenvalues", "eigenvectors"))
class linalg_eig:
    """The eigenvalues and eigenvectors of square matrices, which are always complex."""

    def grad_self(grads, eigenvalues, eigenvectors, xp):
        """Return the gradient for vectors of length 1 and any phase.

        Boeddeker et al. (2019), "On the computation of complex-valued gradients".
        """
        to_values, to_vectors = grads
        turned = conjugate_transpose(eigenvectors)
        if to_vectors is None:
            return xp.linalg_solve_ex(turned, to_values[..., :, None] * turned)[0]
        gaps = (eigenvalues[..., None, :] - eigenvalues[..., :, None]).conj()
        gaps = gaps + xp.diag_embed(eigenvalues * 0 + 1, 0, -2, -1)
        product = turned @ to_vectors
        check_phases("linalg_eig_backward: The eigenvectors", "this quantity, so it is", product, grads, xp)
        along = xp.diagonal(product, 0, -2, -1).real
        inner = (product - (turned @ eigenvectors) * along[..., None, :]) / gaps
        inner = inner - xp.diag_embed(xp.diagonal(inner, 0, -2, -1), 0, -2, -1)
        if to_values is not None:
            inner = inner + xp.diag_embed(to_values, 0, -2, -1)
        return xp.linalg_solve_ex(turned, inner @ turned)[0]


@public(namespace="linalg", numpy_names=True)
def eigvals(input, *, out=None):
    """The eigenvalues of square matrices, which are always complex."""
    return stored("linalg_eigvals", linalg_eig(input).eigenvalues, out, EIGVALS, underived=True)
