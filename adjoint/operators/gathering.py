"""Reading and writing elements at indices along a dimension: gather, scatter and their relatives."""

from __future__ import annotations

import numpy

from ..kernels import joining as kernels
from ..kernels import scatter as scatter_kernels
from ..tensor import Tensor, wrap_dim
from .build import operator, public, tensors

# --- gathering and scattering ---------------------------------------------------------------------------------


def _gather(self, dim, index, *, sparse_grad=False):
    """`gather` of arrays; gradients are never sparse."""
    return scatter_kernels.gather(self, dim, index)


@operator(kernel=_gather)
class gather:
    """The elements at `index` along `dim`: `out[i][j] = input[index[i][j]][j]` for `dim` 0.

    >>> import adjoint as torch
    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """

    def forward(self: Array, dim, index: Array, *, sparse_grad=False): ...

    def grad_self(grad, self_shape, dim, index, xp):
        return xp.gather_backward(grad, self_shape, dim, index)


@operator(namespace=None, method=False)
class gather_backward:
    """Zeros of `shape` to which `input` is added at `index` along `dim`."""

    def forward(self: Array, shape, dim, index: Array):
        return scatter_kernels.scatter_add_(numpy.zeros(shape, self.dtype), dim, index, self)

    def grad_self(grad, dim, index, xp):
        return xp.gather(grad, dim, index)


@operator(namespace=None, method=False, name="scatter", node="ScatterBackward0", inplace=True)
class scatter_source:
    """A copy with `src` at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, src: Array):
        return scatter_kernels.scatter(self, dim, index, src)

    def grad_self(grad, dim, index, xp):
        return xp.scatter_number(grad, dim, index, 0)

    def grad_src(grad, dim, index, src_shape, xp):
        return _fitted(xp.gather(grad, dim, index), src_shape, xp)


def _fitted(grad, shape, xp):
    """The gradient of a source of which only the part of the index's shape was used."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    for dim, (have, want) in enumerate(zip(grad.shape, shape, strict=True)):
        if have != want:
            grad = xp.slice_backward(grad, (*grad.shape[:dim], want, *grad.shape[dim + 1 :]), dim, 0, have, 1)
    return grad


@operator(namespace=None, method=False, name="scatter_number", node="ScatterBackward1", inplace=True)
class scatter_value:
    """A copy with a number at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, value):
        return scatter_kernels.scatter(self, dim, index, value)

    def grad_self(grad, dim, index, xp):
        return xp.scatter_number(grad, dim, index, 0)


_SCATTER_REDUCE = {"add": "sum", "multiply": "prod"}


def _scatter(input, dim, index, src, reduce, value, plain, number, reducing):
    if src is None:
        src = value
    if reduce is not None:
        if reduce not in _SCATTER_REDUCE:
            raise RuntimeError("reduce argument must be either add or multiply.")
        if not isinstance(src, Tensor):
            src = tensors.full(index._array.shape, src, dtype=input.dtype)
        return reducing(input, dim, index, src, _SCATTER_REDUCE[reduce], include_self=True)
    return plain(input, dim, index, src) if isinstance(src, Tensor) else number(input, dim, index, src)


@public(name="scatter", method=("scatter",))
def scatter_function(input, dim, index, src=None, *, reduce=None, value=None, out=None):
    """A copy with `src` (a tensor or number) at `index` along `dim`: `out[index[i][j]][j] = src[i][j]` for `dim` 0."""
    result = _scatter(input, dim, index, src, reduce, value, scatter_source, scatter_value, scatter_reduce)
    return result if out is None else tensors.copy_out(result, out)


@public(namespace=None, method=("scatter_",))
def scatter_inplace(input, dim, index, src=None, *, reduce=None, value=None):
    """`scatter`, in place."""
    return _scatter(
        input,
        dim,
        index,
        src,
        reduce,
        value,
        scatter_source.operator.inplace_function,
        scatter_value.operator.inplace_function,
        scatter_reduce.operator.inplace_function,
    )


@operator(kernel=scatter_kernels.scatter_add, inplace=True, changing=scatter_kernels.scatter_add_)
class scatter_add:
    """A copy to which `src` is added at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, src: Array): ...

    def grad_self(grad):
        return grad

    def grad_src(grad, dim, index, src_shape, xp):
        return _fitted(xp.gather(grad, dim, index), src_shape, xp)


@operator(inplace=True)
class scatter_reduce:
    """A copy into which the elements of `src` are reduced at `index` along `dim`: sum, prod, mean, amax or amin."""

    def forward(self: Array, dim, index: Array, src: Array, reduce, *, include_self=True):
        return scatter_kernels.scatter_reduce(self, dim, index, src, reduce, include_self)

    differentiable = ("self", "src")

    def grad_inputs(grad, self, dim, index, src, reduce, include_self, result, needs, xp):
        return _scatter_reduce_gradients(grad, self, dim, index, src, reduce, include_self, result, xp)


def _scatter_reduce_gradients(grad, self, dim, index, src, reduce, include_self, result, xp):
    """The gradients of `scatter_reduce`, by what is reduced."""
    ones = xp.zeros_like(src) + 1
    if reduce in ("sum", "mean"):
        to_self, to_src = grad, xp.gather(grad, dim, index)
        if reduce == "mean":
            start = xp.zeros_like(self) + (1 if include_self else 0)
            count = xp.scatter_add(start, dim, index, ones)
            count = xp.where(count == 0, count * 0 + 1, count)
            to_self, to_src = grad / count, xp.gather(grad / count, dim, index)
    elif reduce == "prod":
        to_self, to_src = _scattered_product_gradients(grad, self, dim, index, src, include_self, result, xp)
    else:
        own = self == result
        theirs = src == xp.gather(result, dim, index)
        start = (own if include_self else own & (own != own)) * (xp.zeros_like(self) + 1)
        ties = xp.scatter_add(start, dim, index, theirs * ones)
        share = grad / ties
        to_self, to_src = own * share, theirs * xp.gather(share, dim, index)
    if not include_self:
        to_self = xp.scatter_number(to_self, dim, index, 0)
    return to_self, _fitted(to_src, tuple(src.shape), xp)


def _scattered_product_gradients(grad, self, dim, index, src, include_self, result, xp):
    """Each factor's gradient is the product of the others: the result over it, or, of a single zero, the product without it."""
    zero_src = src == 0
    ones = xp.zeros_like(src) + 1
    base = self if include_self else xp.scatter_number(self, dim, index, 1)
    zeros = xp.scatter_add((base == 0) * (xp.zeros_like(self) + 1), dim, index, zero_src * ones)
    without = xp.scatter_reduce(
        xp.where(base == 0, base * 0 + 1, base), dim, index, xp.where(zero_src, ones, src), "prod"
    )
    single = xp.where(zeros == 1, without, without * 0)
    to_src = xp.where(
        zero_src,
        xp.gather(grad * single, dim, index),
        xp.gather(grad * result, dim, index) / xp.where(zero_src, ones, src),
    )
    to_self = xp.where(base == 0, grad * single, (grad * result) / xp.where(base == 0, base * 0 + 1, base))
    return to_self, to_src


@operator(kernel=scatter_kernels.index_select)
class index_select:
    """The slices at `index` along `dim`."""

    def forward(self: Array, dim, index: Array): ...

    def grad_self(grad, self_shape, dim, index, xp):
        return xp.index_select_backward(grad, self_shape, dim, index)


@operator(namespace=None, method=False)
class index_select_backward:
    """Zeros of `shape` to which the slices of `input` are added at `index` along `dim`."""

    def forward(self: Array, shape, dim, index: Array):
        return scatter_kernels.index_add_(numpy.zeros(shape, self.dtype), dim, index, self)

    def grad_self(grad, dim, index, xp):
        return xp.index_select(grad, dim, index)


@operator(inplace=True)
class index_add:
    """A copy to which `alpha` times the slices of `source` are added at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, source: Array, *, alpha=1):
        return scatter_kernels.index_add(self, dim, index, source, alpha)

    def grad_self(grad):
        return grad

    def grad_source(grad, dim, index, source_shape, alpha, xp):
        return (xp.index_select(grad, dim, index) * alpha).reshape(tuple(source_shape))


@operator(kernel=scatter_kernels.index_copy, inplace=True, changing=scatter_kernels.index_copy_)
class index_copy:
    """A copy with the slices of `source` at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, source: Array): ...

    def grad_self(grad, dim, index, xp):
        return xp.index_fill_number(grad, dim, index, 0)

    def grad_source(grad, dim, index, source_shape, xp):
        return xp.index_select(grad, dim, index).reshape(tuple(source_shape))


@operator(namespace=None, method=False, name="index_fill_number", node="IndexFillBackward0", inplace=True)
class index_fill_value:
    """A copy with a number in the slices at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, value):
        return scatter_kernels.index_fill(self, dim, index, value)

    def grad_self(grad, dim, index, xp):
        return xp.index_fill_number(grad, dim, index, 0)


@operator(namespace=None, method=False, name="index_fill_tensor", node="IndexFillBackward1", inplace=True)
class index_fill_tensor:
    """A copy with a zero-dimensional tensor in the slices at `index` along `dim`."""

    def forward(self: Array, dim, index: Array, value: Array):
        return scatter_kernels.index_fill(self, dim, index, value)

    def grad_self(grad, dim, index, xp):
        return xp.index_fill_number(grad, dim, index, 0)

    def grad_value(grad, dim, index, xp):
        return xp.sum(xp.index_select(grad, dim, index), None, False)


@public(method=True)
def index_fill(input, dim, index, value):
    """A copy with `value` in the slices at `index` along `dim`."""
    return (
        index_fill_tensor(input, dim, index, value)
        if isinstance(value, Tensor)
        else index_fill_value(input, dim, index, value)
    )


@public(namespace=None, method=("index_fill_",))
def index_fill_inplace(input, dim, index, value):
    """`index_fill`, in place."""
    chosen = index_fill_tensor if isinstance(value, Tensor) else index_fill_value
    return chosen.operator.inplace_function(input, dim, index, value)


@operator(kernel=scatter_kernels.take)
class take:
    """The elements at `index` of the flattened tensor."""

    def forward(self: Array, index: Array): ...

    def grad_self(grad, self_shape, index, xp):
        return xp.take_backward(grad, self_shape, index)


@operator(namespace=None, method=False)
class take_backward:
    """Zeros of `shape` to which `input` is added at `index` of the flattened tensor."""

    def forward(self: Array, shape, index: Array):
        return scatter_kernels.put(numpy.zeros(shape, self.dtype), index, self, True)

    def grad_self(grad, index, xp):
        return xp.take(grad, index)


@operator(kernel=scatter_kernels.put, inplace=True, changing=scatter_kernels.put_)
class put:
    """A copy with `source` at (or added at) `index` of the flattened tensor."""

    def forward(self: Array, index: Array, source: Array, accumulate=False): ...

    def grad_self(grad, index, source_shape, accumulate, xp):
        return grad if accumulate else xp.put(grad, index, xp.zeros_like(xp.take(grad, index)), False)

    def grad_source(grad, index, source_shape, xp):
        return xp.take(grad, index).reshape(tuple(source_shape))


@public(method=True)
def take_along_dim(input, indices, dim=None, *, out=None):
    """The elements at `indices` along `dim`, other dimensions broadcast; of the flattened tensor without `dim`."""
    if indices._array.dtype != numpy.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_type}"
        )
    if dim is None:
        return gather(input.reshape((-1,)), 0, indices.reshape((-1,)), out=out)
    a, b = input._array, indices._array
    if a.ndim != b.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {a.ndim} "
            f"dimensions for input, and {b.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, a.ndim)
    shape = kernels.broadcast_except(a.shape, b.shape, dim)
    return gather(
        tensors.expand(input, (*shape[:dim], a.shape[dim], *shape[dim + 1 :])),
        dim,
        tensors.expand(indices, (*shape[:dim], b.shape[dim], *shape[dim + 1 :])),
        out=out,
    )
