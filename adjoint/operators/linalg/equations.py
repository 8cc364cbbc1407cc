"""Linear equations between tensors of any number of dimensions, matrices of powers, and older names of products and norms."""

from __future__ import annotations

from math import prod

from ..._runtime.tracebacks import warn_once
from ...dispatch.arguments import require_tensors
from ...dispatch.decorators import public, tensors
from ...dispatch.out import Castable, stored
from ...kernels.linalg import LinAlgError
from ...kernels.runtime.floating import is_inexact
from ...tensor import wrap_dim
from ..reduce.moments import norm
from .matrices import matrix_norm, multi_dot


@public(namespace="linalg", numpy_names=True)
def tensorinv(input, ind=2, *, out=None):
    """The tensor that undoes `tensordot` with `input`.

    The first `ind` dimensions are the rows of a matrix, and the other dimensions are the columns.

    Raises:
        LinAlgError: if the matrix is singular.

    >>> import adjoint as torch
    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = input._array.shape
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    rows, columns = prod(shape[:ind]), prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    try:
        inverse = tensors.linalg_inv_ex(input.reshape((columns, rows)), check_errors=True)[0]
    except LinAlgError as error:
        raise LinAlgError(str(error).replace("linalg.inv_ex", "inv", 1)) from None
    return stored(
        "linalg_tensorinv", inverse.reshape((*shape[ind:], *shape[:ind])), out, Castable("tensorinv"), recorded=True
    )


@public(namespace="linalg", numpy_names=True)
def tensorsolve(input, other, dims=None, *, out=None):
    """Find X with `tensordot(input, X, X.ndim) = other`.

    The dimensions `dims` of `input` are moved to the end first.

    Raises:
        LinAlgError: if the matrix of the equations is singular.

    >>> import adjoint as torch
    >>> torch.linalg.tensorsolve(torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3))
    tensor([1., 1., 1., 1., 1., 1.])
    """
    moved = input
    ndim = input._array.ndim
    if dims is not None:
        last = [wrap_dim(dim, ndim) for dim in dims]
        moved = input.movedim(tuple(last), tuple(range(ndim - len(last), ndim)))
    shape = moved._array.shape[other._array.ndim :]
    rows, columns = other._array.size, prod(shape)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{columns} != {rows}"
        )
    result = tensors.linalg_solve(moved.reshape((columns, columns)), other.flatten())
    return stored("linalg_tensorsolve", result.reshape(shape), out, Castable("tensorsolve"), recorded=True)


@public(namespace="linalg")
def vander(x, *, N=None):
    """Matrices of the powers of the elements of `x`, from 0 to `N - 1`. By default, `N` is the number of elements.

    >>> import adjoint as torch
    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    kind = x._array.dtype
    if kind.kind == "b" or (is_inexact(kind) and kind.itemsize == 2):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_type}"
        )
    columns = (x if x._array.ndim else x.unsqueeze(0)).unsqueeze(-1)
    count = columns._array.shape[-2] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = columns.expand((*columns.shape[:-1], count - 1)).cumprod(-1)
    return tensors.cat([columns.new_ones(columns.shape), powers], -1)


_OLDER_PRODUCT = """torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot \
instead, which accepts a list of two or more tensors rather than multiple parameters."""


@public()
def chain_matmul(*matrices, out=None):
    """The product of several matrices. Use `linalg.multi_dot` instead."""
    warn_once("torch.chain_matmul", _OLDER_PRODUCT)
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    require_tensors(matrices)
    for matrix in matrices:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return stored("chain_matmul", matrices[0].clone() if out is None else matrices[0], out, recorded=True)
    return multi_dot(list(matrices), out=out)


def _warn_of_older_norm(name, instead):
    warn_once(
        name,
        f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch release. "
        f"Please use `linalg.{instead}` instead",
    )


@public()
def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The root of the sum of squares over one or two dimensions; see `linalg.vector_norm`."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    _warn_of_older_norm("frobenius_norm", "vector_norm(A, 2., dim, keepdim)")
    return norm(input, 2, dims or None, keepdim, out=out)


@public()
def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):
    """The sum of the singular values of matrices, which is `linalg.matrix_norm` with "nuc"."""
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    _warn_of_older_norm("nuclear_norm", "matrix_norm(A, 'nuc', dim, keepdim)")
    return matrix_norm(input, "nuc", (dim,) if isinstance(dim, int) else tuple(dim), keepdim, out=out)
