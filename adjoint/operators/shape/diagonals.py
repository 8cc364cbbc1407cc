"""Triangles and diagonals of matrices, and differences of neighbours."""

from __future__ import annotations

from ...aten.torch_dispatch import zeros_like
from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Int
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.out import SCALAR_TYPE, STRICT, stored
from ...kernels.shape import joining as kernels
from ...tensor import wrap_dim
from .joining import cat
from .parts import slice
from .view_copies import diagonal_copy

# --- triangles and diagonals ----------------------------------------------------------------------------------


def _triangle(kernel, inplace):
    kernel = Kernel(kernel, inplace=inplace, quiet=True)
    return operator(kernel=kernel, inplace=True, same_out=STRICT, tangent="linear", batch="leading", narrow="halves")


@_triangle(kernels.tril, kernels.tril_)
class tril:
    """The lower triangle of matrices, up to `diagonal`, with zeros elsewhere."""

    def forward(self: Array, diagonal: Int = 0): ...

    def grad_self(grad, diagonal, xp):
        return xp.tril(grad, diagonal)


@_triangle(kernels.triu, kernels.triu_)
class triu:
    """The upper triangle of matrices, from `diagonal`, with zeros elsewhere."""

    def forward(self: Array, diagonal: Int = 0): ...

    def grad_self(grad, diagonal, xp):
        return xp.triu(grad, diagonal)


@operator(kernel=kernels.diag_embed, out=False, tangent="linear", batch="result dims", narrow="moves")
class diag_embed:
    """Matrices with the last dimension of the tensor on a diagonal."""

    def forward(self: Array, offset: Int = 0, dim1: Int = -2, dim2: Int = -1): ...

    def grad_self(grad, offset, dim1, dim2, xp):
        return xp.diagonal(grad, offset, dim1, dim2)


@public(method=True, numpy_names=True)
def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input._array.ndim == 1:
        result = diag_embed(input, diagonal)
    elif input._array.ndim == 2:
        result = diagonal_copy(input, diagonal)
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    return stored("diag", result, out, STRICT, underived=True)


@public(method=True, numpy_names=True)
def diagflat(input, offset=0):
    """The matrix with the flattened tensor on a diagonal."""
    return diag_embed(input.reshape((-1,)), offset)


@operator(kernel=kernels.trace, out=False, tangent="linear")
class trace:
    """The sum of the diagonal of a matrix."""

    def grad_self(grad, self_shape, xp):
        count = min(self_shape)
        return xp.diagonal_backward(xp.expand(grad, (count,)), self_shape, 0, 0, 1)

    def batch(op, batch, value):
        return tensors.diagonal(batch.first(value), 0, 1, 2).sum(-1)


def _check_beside(input, part, dim):
    """Raise an error unless `part` has the shape of `input` except in the dimension `dim`."""
    if part.ndim != input.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for axis, (own, other) in enumerate(zip(input.shape, part.shape, strict=True)):
        if own != other and axis != dim:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                f"dimension; input.size({axis}) = {own}, but got tensor.size({axis}) = {other}"
            )


@public(method=True, numpy_names=True)
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The differences of neighbours along `dim`, computed `n` times."""
    if input._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    dim = wrap_dim(dim, input._array.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for part in (prepend, append):
        if part is not None:
            _check_beside(input, part, dim)
    if n == 0:
        return stored("diff", zeros_like(input).copy_(input), out, SCALAR_TYPE, recorded=True)
    result = input
    if not (prepend is append is None):
        result = cat([part for part in (prepend, input, append) if part is not None], dim)
    for _ in range(min(n, result._array.shape[dim])):
        size = result._array.shape[dim]
        later, earlier = slice(result, dim, 1, size, 1), slice(result, dim, 0, size - 1, 1)
        result = later ^ earlier if result._array.dtype.kind == "b" else later - earlier
    return result if out is None else stored("sub", result, out)
