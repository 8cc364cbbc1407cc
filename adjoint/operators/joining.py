"""Joining tensors, repeating, reordering, gathering and scattering their elements."""

from __future__ import annotations

import numpy

from ..kernels import indexing as indexing_kernels
from ..kernels import joining as kernels
from ..kernels import scatter as scatter_kernels
from ..tensor import Tensor, wrap_dim
from .build import operator, public, tensors
from .parts import slice
from .view import checked_sizes, sizes_of

# --- joining --------------------------------------------------------------------------------------------------


@operator(promote="common", method=False)
class cat:
    """The tensors one after the other along `dim`.

    >>> import adjoint as torch
    >>> torch.cat([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """

    def forward(tensors: Arrays, dim=0):
        return kernels.cat(tensors, dim)

    def grad_tensors(grad, tensors_shape, dim, xp):
        return kernels.cat_backward(grad, tensors_shape, dim)


@public(alias=("concatenate",))
def concat(tensors, dim=0, *, out=None):
    """The tensors one after the other along `dim`: `cat`."""
    return cat(tensors, dim, out=out)


@operator(promote="common", method=False)
class stack:
    """The tensors along a new dimension `dim`."""

    def forward(tensors: Arrays, dim=0):
        return kernels.stack(tensors, dim)

    def grad_tensors(grad, dim):
        return list(grad.unbind(dim)) if hasattr(grad, "unbind") else kernels.unstack(grad, dim)


def _at_least(ndim, name):
    def function(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tuple(tensors[0])
            return tuple(_extended(item, ndim) for item in tensors)
        return _extended(tensors[0], ndim) if len(tensors) == 1 else tuple(_extended(item, ndim) for item in tensors)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Each tensor as one of at least {ndim} dimension{'s' if ndim > 1 else ''}."
    return public()(function)


def _extended(tensor, ndim):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"atleast_{ndim}d(): argument must be Tensor, not {type(tensor).__name__}")
    own = tensor._array.ndim
    if own >= ndim:
        return tensor
    if own == 0:
        return tensor.reshape((1,) * ndim)
    if ndim == 2:
        return tensor.unsqueeze(0)
    return tensor.unsqueeze(0).unsqueeze(-1) if own == 1 else tensor.unsqueeze(-1)


atleast_1d = _at_least(1, "atleast_1d")
atleast_2d = _at_least(2, "atleast_2d")
atleast_3d = _at_least(3, "atleast_3d")


@public()
def hstack(tensors, *, out=None):
    """The tensors side by side: along the second dimension, vectors along their only one."""
    parts = atleast_1d(list(tensors))
    return cat(parts, 0 if parts and parts[0]._array.ndim == 1 else 1, out=out)


@public(alias=("row_stack",))
def vstack(tensors, *, out=None):
    """The tensors below each other, vectors as rows."""
    return cat(atleast_2d(list(tensors)), 0, out=out)


@public()
def dstack(tensors, *, out=None):
    """The tensors behind each other, along the third dimension."""
    return cat(atleast_3d(list(tensors)), 2, out=out)


@public()
def column_stack(tensors, *, out=None):
    """The tensors side by side, vectors as columns."""
    columns = [t.reshape((-1, 1)) if t._array.ndim <= 1 else t for t in tensors]
    return hstack(columns, out=out)


@public()
def block_diag(*tensors):
    """The matrices along the diagonal of one, zeros elsewhere."""
    matrices = [item.reshape((1, -1)) if item._array.ndim < 2 else item for item in tensors]
    width = sum(item._array.shape[1] for item in matrices)
    rows, left = [], 0
    for item in matrices:
        columns = item._array.shape[1]
        rows.append(_padded_columns(item, left, width - left - columns))
        left += columns
    return cat(rows, 0)


def _padded_columns(matrix, left, right):
    height = matrix._array.shape[0]
    return cat([matrix.new_zeros((height, left)), matrix, matrix.new_zeros((height, right))], 1)


# --- repeating and reordering ---------------------------------------------------------------------------------


@operator(namespace=None, method=False, out=False)
class repeat:
    """The tensor repeated along each dimension."""

    def forward(self: Array, repeats):
        return kernels.repeat(self, repeats)

    def grad_self(grad, self_shape, repeats, xp):
        lead = len(repeats) - len(self_shape)
        shape = (1,) * lead + tuple(self_shape)
        if 0 in repeats:
            return xp.zeros_like_shape(grad, self_shape)
        split = tuple(size for pair in zip(repeats, shape, strict=True) for size in pair)
        return xp.sum(grad.reshape(split), tuple(range(0, len(split), 2)), False).reshape(tuple(self_shape))


@public(namespace=None, method=("repeat",))
def repeat_method(input, *repeats, **names):
    """The tensor repeated along each dimension; new dimensions come first."""
    repeats = sizes_of(repeats, names, "repeat", "repeats")
    if len(repeats) < input._array.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(count < 0 for count in repeats):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(repeats)}: {list(repeats)}")
    return repeat(input, repeats)


@public()
def tile(input, dims):
    """The tensor repeated along each dimension; missing repetitions of leading dimensions are 1."""
    dims = checked_sizes(dims, "tile", "dims", 2)
    return repeat_method(input, (1,) * (input._array.ndim - len(dims)) + tuple(dims))


@public(namespace=None, method=("tile",))
def tile_method(input, *dims, **names):
    """The method of `adjoint.tile`: repetitions one by one or as a sequence."""
    return tile(input, sizes_of(dims, names, "tile", "dims"))


@public(method=True)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice of `dim`) repeated in place; with one tensor, its indices repeated as often as it says."""
    if repeats is None:
        return tensors.arange(input._array.size).repeat_interleave(input)
    counts = repeats._array if isinstance(repeats, Tensor) else numpy.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise RuntimeError("repeats has to be Long or Int tensor")
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if dim is None:
        input, dim = input.flatten(), 0
    size = input._array.shape[wrap_dim(dim, input._array.ndim)] if input._array.ndim else 1
    if counts.ndim == 1 and counts.size not in (1, size):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size({dim}) = {size}"
        )
    positions = numpy.repeat(numpy.arange(size), counts)
    return index_select(input, dim, tensors.from_numpy(positions))


@operator(out=False, namespace=None, method=False)
class roll:
    """The elements shifted along dimensions; what leaves at one end comes in at the other."""

    def forward(self: Array, shifts, dims):
        return kernels.roll(self, shifts, dims)

    def grad_self(grad, shifts, dims, xp):
        return xp.roll(grad, tuple(-shift for shift in shifts), dims)


@public(name="roll", method=("roll",))
def roll_function(input, shifts, dims=()):
    """The elements shifted along `dims` (or through the flattened tensor); what leaves at one end comes in at the other."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims and len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not dims and len(shifts) != 1:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
    return roll(input, shifts, dims)


@operator(out=False, namespace=None, method=False)
class flip:
    """The order of the elements reversed along dimensions."""

    def forward(self: Array, dims):
        return kernels.flip(self, dims)

    def grad_self(grad, dims, xp):
        return xp.flip(grad, dims)


@public(name="flip")
def flip_function(input, dims):
    """The order of the elements reversed along `dims`; a copy."""
    return flip(input, (dims,) if isinstance(dims, int) else tuple(dims))


@public(namespace=None, method=("flip",))
def flip_method(input, *dims, **names):
    """The method of `adjoint.flip`: dimensions one by one or as a sequence."""
    return flip(input, sizes_of(dims, names, "flip", "dims"))


@public(method=True)
def fliplr(input):
    """The columns in reverse order."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@public(method=True)
def flipud(input):
    """The rows in reverse order."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@operator(out=False, node="Rot900Backward0".replace("Rot900", "Rot90"))
class rot90:
    """The plane of two dimensions turned by `k` quarter turns, from the first towards the second."""

    def forward(self: Array, k=1, dims=(0, 1)):
        return kernels.rot90(self, k, dims)

    def grad_self(grad, k, dims, xp):
        return xp.rot90(grad, -k, dims)


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


# --- masks ----------------------------------------------------------------------------------------------------


@operator(namespace=None, method=False, name="masked_fill_number", node="MaskedFillBackward0", inplace=True)
class masked_fill_value:
    """A copy with a number where the mask is true."""

    def forward(self: Array, mask: Array, value):
        return kernels.masked_fill(self, mask, value)

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)


@operator(namespace=None, method=False, name="masked_fill_tensor", node="MaskedFillBackward1", inplace=True)
class masked_fill_tensor:
    """A copy with a zero-dimensional tensor where the mask is true."""

    def forward(self: Array, mask: Array, value: Array):
        return kernels.masked_fill(self, mask, value)

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_value(grad, mask, xp):
        return xp.sum(grad * mask, None, False)


@public(method=True)
def masked_fill(input, mask, value):
    """A copy with `value` where `mask`, broadcast with the tensor, is true."""
    return (
        masked_fill_tensor(input, mask, value) if isinstance(value, Tensor) else masked_fill_value(input, mask, value)
    )


@public(namespace=None, method=("masked_fill_",))
def masked_fill_inplace(input, mask, value):
    """`masked_fill`, in place."""
    chosen = masked_fill_tensor if isinstance(value, Tensor) else masked_fill_value
    return chosen.operator.inplace_function(input, mask, value)


@operator(kernel=indexing_kernels.masked_select)
class masked_select:
    """The elements where `mask`, broadcast with the tensor, is true, in one dimension."""

    def forward(self: Array, mask: Array): ...

    def grad_self(grad, self_shape, mask, xp):
        return xp.masked_select_backward(grad, self_shape, mask)


@operator(namespace=None, method=False)
class masked_select_backward:
    """Zeros (of `shape` broadcast with `mask`) with `input` where `mask` is true."""

    def forward(self: Array, shape, mask: Array):
        return kernels.masked_select_backward(self, shape, mask)

    def grad_self(grad, mask, xp):
        return xp.masked_select(grad, mask)


@operator(kernel=indexing_kernels.masked_scatter, out=False, inplace=True)
class masked_scatter:
    """A copy with the elements of `source`, in their order, where `mask` is true."""

    def forward(self: Array, mask: Array, source: Array): ...

    def grad_self(grad, mask, xp):
        return xp.masked_fill_number(grad, mask, 0)

    def grad_source(grad, mask, source_shape, xp):
        return xp.front_of_zeros(xp.masked_select(grad, mask), source_shape)


@operator(namespace=None, method=False)
class front_of_zeros:
    """Zeros of `shape` that begin, flattened, with the elements of `input`."""

    def forward(self: Array, shape):
        return kernels.front_of_zeros(self, shape)

    def grad_self(grad, self_shape):
        return grad.reshape((-1,))[: self_shape[0]]


# --- triangles and diagonals ----------------------------------------------------------------------------------


@operator(inplace=True)
class tril:
    """The lower triangle of matrices, on and below `diagonal`; zeros elsewhere."""

    def forward(self: Array, diagonal=0):
        return kernels.tril(self, diagonal)

    def grad_self(grad, diagonal, xp):
        return xp.tril(grad, diagonal)


@operator(inplace=True)
class triu:
    """The upper triangle of matrices, on and above `diagonal`; zeros elsewhere."""

    def forward(self: Array, diagonal=0):
        return kernels.triu(self, diagonal)

    def grad_self(grad, diagonal, xp):
        return xp.triu(grad, diagonal)


@operator(out=False)
class diag_embed:
    """Matrices with the last dimension of the tensor on a diagonal."""

    def forward(self: Array, offset=0, dim1=-2, dim2=-1):
        return kernels.diag_embed(self, offset, dim1, dim2)

    def grad_self(grad, offset, dim1, dim2, xp):
        return xp.diagonal(grad, offset, dim1, dim2)


@operator(namespace=None, method=False, node="DiagonalBackward0_copy")
class diagonal_copy:
    """A copy of a diagonal."""

    def forward(self: Array, offset=0, dim1=0, dim2=1):
        return kernels.diagonal_copy(self, offset, dim1, dim2)

    def grad_self(grad, self_shape, offset, dim1, dim2, xp):
        return xp.diagonal_backward(grad, self_shape, offset, dim1, dim2)


@public(method=True)
def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input._array.ndim == 1:
        result = diag_embed(input, diagonal)
    elif input._array.ndim == 2:
        return diagonal_copy(input, diagonal, out=out)
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    return result if out is None else tensors.copy_out(result, out)


@public(method=True)
def diagflat(input, offset=0):
    """The matrix with the flattened tensor on a diagonal."""
    return diag_embed(input.reshape((-1,)), offset)


@operator(out=False)
class trace:
    """The sum of the diagonal of a matrix."""

    def forward(self: Array):
        return kernels.trace(self)

    def grad_self(grad, self_shape, xp):
        count = min(self_shape)
        return xp.diagonal_backward(xp.expand(grad, (count,)), self_shape, 0, 0, 1)


@public(method=True)
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The differences of neighbours along `dim`, `n` times."""
    if input._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [part for part in (prepend, input, append) if part is not None]
    result = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, result._array.shape[dim])):
        size = result._array.shape[dim]
        later, earlier = slice(result, dim, 1, size, 1), slice(result, dim, 0, size - 1, 1)
        result = later ^ earlier if result._array.dtype.kind == "b" else later - earlier
    if n > input._array.shape[dim]:
        result = slice(result, dim, 0, 0, 1)
    return result if out is None else tensors.copy_out(result, out)
