"""Reading and writing at tensors of indices: `gather`, `scatter`, `index_select`, `take`, `put`, and lookups in tables."""

from __future__ import annotations

import numpy

from ..._runtime.tracebacks import warn
from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Bool, Int, Number, Str
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import STRICT, shares_elements, written_repeatedly
from ...dispatch.sequential import is_readable, read_array
from ...kernels.index import flattened as flattened_kernels
from ...kernels.index import indexing as indexing_kernels
from ...kernels.index import scatter as scatter_kernels
from ...kernels.reduce import counting
from ...kernels.shape import joining as kernels
from ...tape import modes
from ...tensor import Tensor, wrap, wrap_dim
from ..declaring.formulas import same, underived
from ..declaring.overloads import pair
from ..declaring.slopes import with_transpose
from . import batched_indexing

# --- one index for each element ---------------------------------------------------------------------------------


@operator(
    kernel=Kernel(scatter_kernels.gather, quiet=True),
    same_out=STRICT,
    out="disjoint input",
    tangent="linear",
    batch="expanded",
    narrow="trivial",
)
@with_transpose(flattened_kernels.gather_backward)
class gather:
    """The elements at `index` along `dim`. For `dim` 0: `out[i][j] = input[index[i][j]][j]`.

    >>> import adjoint as torch
    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """

    def forward(self: Array, dim: Int, index: Array, *, sparse_grad: Bool = False): ...

    def grad_self(grad, self, dim, index, sparse_grad, xp):
        shape = tuple(self.shape)
        if sparse_grad:
            return xp.gather_sparse_backward(grad, dim, index, shape)
        return xp.gather_backward(grad, shape, dim, index)


def _writing(kernel, **options):
    """Declare an operator that writes at indices. No operand may share memory with the changed tensor."""
    return operator(kernel=kernel, inplace="disjoint", same_out=STRICT, **options)


def _scatter(kernel, **options):
    """Declare one of the operators that `scatter` chooses among."""
    return _writing(kernel, batch="expanded", function_name="scatter", namespace=None, method=(), **options)


_PUT = Kernel(scatter_kernels.scatter, inplace=scatter_kernels.scatter_)


@_scatter(_PUT, node="ScatterBackward0", tangent="linear", aten="default, src")
class scatter_source:
    """A copy with `src` at `index` along `dim`."""

    saved_display = {"src_sym_sizes": None}

    def forward(self: Array, dim: Int, index: Array, src: Array): ...

    def grad_self(grad, dim, index, xp):
        return xp.scatter_number(grad, dim, index, 0)

    def grad_src(grad, dim, index, src_shape, xp):
        return _fitted(xp.gather(grad, dim, index, sparse_grad=False), src_shape, xp)


def _fitted(grad, shape, xp):
    """Return the gradient of a source of `shape`, if only the part with the shape of the index was used."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    for dim, (have, want) in enumerate(zip(grad.shape, shape, strict=True)):
        if have != want:
            grad = xp.slice_backward(grad, (*grad.shape[:dim], want, *grad.shape[dim + 1 :]), dim, 0, have, 1)
    return grad


@_scatter(_PUT, node="ScatterBackward1", aten="default, value")
class scatter_number:
    """A copy with a number at `index` along `dim`."""

    def forward(self: Array, dim: Int, index: Array, value: Number): ...

    def grad_self(grad, dim, index, xp):
        return xp.scatter_number(grad, dim, index, 0)


@_scatter(scatter_kernels.scatter, node="NotImplemented", aten="default, src")
class scatter_combined:
    """A copy with the elements at `index` along `dim` increased or multiplied by `src`."""

    def forward(self: Array, dim: Int, index: Array, src: Array, reduce: Str): ...

    grad_self = grad_src = underived("scatter")


@_scatter(scatter_kernels.scatter, node="NotImplemented", aten="default, value")
class scatter_number_combined:
    """A copy with the elements at `index` along `dim` increased or multiplied by a number."""

    def forward(self: Array, dim: Int, index: Array, value: Number, reduce: Str): ...

    grad_self = underived("scatter")


def _scatter_overload(src, reduce, value):
    """Return the operator for these arguments, and its last argument."""
    src = value if src is None else src
    several = isinstance(src, Tensor)
    if reduce is None:
        return (scatter_source if several else scatter_number), (src,)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if several:
        warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. "
            "Use torch.scatter_reduce instead for more reduction options."
        )
    return (scatter_combined if several else scatter_number_combined), (src, reduce)


@public(method=True, numpy_names=True)
def scatter(input, dim, index, src=None, *, reduce=None, value=None, out=None):
    """A copy with `src` (a tensor or number) at `index` along `dim`. For `dim` 0: `out[index[i][j]][j] = src[i][j]`."""
    overload, arguments = _scatter_overload(src, reduce, value)
    return overload(input, dim, index, *arguments, out=out)


@public(namespace=None, method=("scatter_",))
def scatter_inplace(input, dim, index, src=None, *, reduce=None, value=None):
    """`scatter`, in place."""
    overload, arguments = _scatter_overload(src, reduce, value)
    return overload.inplace(input, dim, index, *arguments)


@_writing(
    Kernel(scatter_kernels.scatter_add, inplace=scatter_kernels.scatter_add_),
    tangent="linear",
    batch="expanded",
    vmap_name="scatter_add_",
)
class scatter_add:
    """A copy with `src` added at `index` along `dim`."""

    saved_display = {"src_sym_sizes": None}

    def forward(self: Array, dim: Int, index: Array, src: Array): ...

    grad_self = same

    def grad_src(grad, dim, index, src_shape, xp):
        return _fitted(xp.gather(grad, dim, index, sparse_grad=False), src_shape, xp)


@_writing(scatter_kernels.scatter_reduce, batch="expanded", aten="default, two")
class scatter_reduce:
    """A copy that reduces elements of `src` into the elements at `index` along `dim`, by sum, prod, mean, amax or amin."""

    real_derivative = "scatter_reduce"

    def forward(self: Array, dim: Int, index: Array, src: Array, reduce: Str, *, include_self: Bool = True): ...

    differentiable = ("self", "src")

    def grad_inputs(grad, self, dim, index, src, reduce, include_self, result, needs, xp):
        reader = _Elements(dim, index, tuple(src.shape), xp)
        return _reduced_gradients(grad, self, reader, src, reduce, include_self, result, xp)


class _Elements:
    """Access to the elements at `index` along `dim`, with one index per element: read, add, multiply or write."""

    def __init__(self, dim, index, shape, xp):
        self.dim, self.index, self.shape, self.xp = dim, index, shape, xp

    def read(self, x):
        """Return the values for a source of `shape`, with 0 outside the shape of the index."""
        return _fitted(self.xp.gather(x, self.dim, self.index, sparse_grad=False), self.shape, self.xp)

    def add(self, x, src):
        return self.xp.scatter_add(x, self.dim, self.index, src)

    def multiply(self, x, src):
        return self.xp.scatter_reduce(x, self.dim, self.index, src, "prod", include_self=True)

    def write(self, x, value):
        return self.xp.scatter_number(x, self.dim, self.index, value)


class _Slices(_Elements):
    """Access like `_Elements`, with one index per slice."""

    def read(self, x):
        return self.xp.index_select(x, self.dim, self.index)

    def add(self, x, src):
        return self.xp.index_add(x, self.dim, self.index, src, alpha=1)

    def multiply(self, x, src):
        return self.xp.index_reduce(x, self.dim, self.index, src, "prod", include_self=True)

    def write(self, x, value):
        return self.xp.index_fill_number(x, self.dim, self.index, value)


def _reduced_gradients(grad, self, places, src, reduce, include_self, result, xp):
    """The gradients of `self` and `src` for all kinds of reduction."""
    ones = xp.ones_like(src)
    if reduce in ("sum", "mean"):
        to_self = grad
        if reduce == "mean":
            count = places.add(xp.zeros_like(self) + (1 if include_self else 0), ones)
            count = xp.where(count == 0, count * 0 + 1, count)
            to_self = grad / count
        to_src = places.read(to_self)
    elif reduce == "prod":
        to_self, to_src = _product_gradients(grad, self, places, src, include_self, result, xp)
    else:
        own = self == result
        theirs = src == places.read(result)
        ties = places.add(own * xp.ones_like(self), theirs * ones)
        share = grad / ties
        to_self = xp.zero_where(share, xp.logical_not(own | (ties == 0)))
        to_src = xp.zero_where(places.read(share), xp.logical_not(theirs | (places.read(ties) == 0)))
    if not include_self:
        to_self = places.write(to_self, 0)
    return to_self, to_src


def _product_gradients(grad, self, places, src, include_self, result, xp):
    """The gradients of products: for each factor, the product of the other factors, even if one factor is zero."""
    base = self if include_self else places.write(self, 1)
    zero_base, zero_src = base == 0, src == 0
    if type(zero_base) is numpy.ndarray is type(zero_src) and not (zero_base.any() or zero_src.any()):
        others = grad * result
        return others / base, places.read(others) / src
    ones = xp.ones_like(src)
    zeros = places.add(zero_base * xp.ones_like(self), zero_src * ones)
    nonzero_base = xp.where(zero_base, base * 0 + 1, base)
    nonzero_src = xp.where(zero_src, ones, src)
    without = places.multiply(nonzero_base, nonzero_src)
    single = grad * xp.where(zeros == 1, without, without * 0)
    # A zero factor equals the sum of both zero factors minus the other factor. This difference has a derivative.
    pair = grad * xp.where(zeros == 2, without, without * 0)
    added = places.add(xp.where(zero_base, base, base * 0), xp.where(zero_src, src, src * 0))
    at = places.read
    to_src = xp.where(zero_src, at(single) + at(pair) * (at(added) - src), at(grad * result) / nonzero_src)
    to_self = xp.where(zero_base, single + pair * (added - base), (grad * result) / nonzero_base)
    return to_self, to_src


@_writing(scatter_kernels.index_reduce)
class index_reduce:
    """A copy that reduces slices of `source` into the slices at `index` along `dim`, by prod, mean, amax or amin."""

    real_derivative = "index_reduce"

    def forward(self: Array, dim: Int, index: Array, source: Array, reduce: Str, *, include_self: Bool = True): ...

    differentiable = ("self", "source")

    def grad_inputs(grad, self, dim, index, source, reduce, include_self, result, needs, xp):
        places = _Slices(dim, index, tuple(source.shape), xp) if self.shape else _Elements(0, index.reshape(()), (), xp)
        return _reduced_gradients(grad, self, places, source, reduce, include_self, result, xp)


# --- one index for each slice -----------------------------------------------------------------------------------


@operator(
    kernel=Kernel(scatter_kernels.index_select, quiet=True),
    same_out="index_select(): self and result must have the same scalar type",
    out="disjoint",
    tangent="linear",
    batch=batched_indexing.index_select,
    sparse="shapes.index_select",
    narrow="moves",
)
@with_transpose(flattened_kernels.index_select_backward, batch=batched_indexing.at_indices, narrow="halves")
class index_select:
    """The slices at `index` along `dim`."""

    def forward(self: Array, dim: Int, index: Array): ...


@internal(counting.sum_of_runs, out=False, node="EmbeddingBagBackward0", tangent="linear")
@with_transpose(counting.sum_of_runs_backward, out=False, batch=None)
class sum_of_runs:
    """Sums or means of the slices `bounds[g]` to `bounds[g + 1]` of `input`, or of `input[index]`."""

    def forward(self: Array, bounds: Array, index: Array | None = None, mean=False): ...


@_writing(
    Kernel(scatter_kernels.index_add, inplace=scatter_kernels.index_add_),
    tangent="linear",
    batch=batched_indexing.at_indices,
    vmap_name="index_add_",
    narrow="halves",
)
class index_add:
    """A copy with `alpha` times the slices of `source` added at `index` along `dim`."""

    saved_display = {"source_dim": lambda node: len(node._grad_shape)}

    def forward(self: Array, dim: Int, index: Array, source: Array, *, alpha: Number = 1): ...

    grad_self = same

    def grad_source(grad, dim, index, source, alpha, xp):
        selected = xp.index_select(grad, dim, index)
        return (selected if alpha == 1 else selected * alpha).reshape(tuple(source.shape))


@_writing(
    Kernel(indexing_kernels.index_copy, inplace=indexing_kernels.index_copy_),
    tangent="linear",
    batch=batched_indexing.at_indices,
    narrow="halves",
)
class index_copy:
    """A copy with the slices of `source` at `index` along `dim`."""

    saved_display = {"source_dim": lambda node: len(node._grad_shape)}

    def forward(self: Array, dim: Int, index: Array, source: Array): ...

    def grad_self(grad, dim, index, xp):
        return xp.index_fill_number(grad, dim, index, 0)

    def grad_source(grad, dim, index, source, xp):
        return xp.index_select(grad, dim, index).reshape(tuple(source.shape))


@pair(
    Kernel(scatter_kernels.index_fill, inplace=scatter_kernels.index_fill_),
    by_tensor={"name": "index_fill_tensor", "node": "IndexFillBackward1", "aten": "default, int_Tensor"},
    by_number={
        "name": "index_fill_number",
        "node": "IndexFillBackward0",
        "values": {"value": "Number"},
        "aten": "default, int_Scalar",
        "inplace": "disjoint",
    },
    function_name="index_fill",
    vmap_name="index_fill_",
    inplace=True,
    out=False,
    elementwise=False,
    batch=batched_indexing.at_indices,
    narrow="halves",
)
class _index_fill:
    """A copy with a number, or a zero-dimensional tensor, in the slices at `index` along `dim`."""

    def forward(self: Array, dim: Int, index: Array, value: Array): ...

    def grad_self(grad, dim, index, xp):
        return xp.index_fill_number(grad, dim, index, 0)

    def grad_value(grad, dim, index, xp):
        elsewhere = xp.index_fill_number(xp.zeros_like(grad), dim, index, 1) == 0
        return xp.sum(xp.zero_where(grad, elsewhere), None, False)


index_fill_tensor, index_fill_number = _index_fill.by_tensor, _index_fill.by_number


@public(method=True, numpy_names=True)
def index_fill(input, dim, index, value):
    """A copy with `value` in the slices at `index` along `dim`."""
    return (index_fill_tensor if isinstance(value, Tensor) else index_fill_number)(input, dim, index, value)


@public(namespace=None, method=("index_fill_",))
def index_fill_inplace(input, dim, index, value):
    """`index_fill`, in place."""
    if shares_elements(input) and not isinstance(value, Tensor):
        return written_repeatedly(
            input,
            "index_fill_",
            "mask] = scalar",
            lambda array: scatter_kernels.index_fill_(array, dim, index._array, value),
        )
    return (index_fill_tensor if isinstance(value, Tensor) else index_fill_number).inplace(input, dim, index, value)


# --- the flattened tensor ---------------------------------------------------------------------------------------


@operator(
    kernel=Kernel(flattened_kernels.take, quiet=True),
    same_out="take(): self and out expected to have the same dtype, but got self.dtype = {wanted} and out.dtype = {given}",
    out="disjoint",
    tangent="linear",
    batch=batched_indexing.take,
)
@with_transpose(flattened_kernels.take_backward, batch=batched_indexing.take_backward)
class take:
    """The elements at `index` of the flattened tensor."""

    def forward(self: Array, index: Array): ...

    def grad_self(grad, self, index, xp):
        return xp.take_backward(grad, tuple(self.shape), index)


@operator(
    kernel=Kernel(flattened_kernels.put, inplace=flattened_kernels.put_),
    inplace="disjoint",
    out=False,
    batch=batched_indexing.put,
)
class put:
    """A copy with `source` written or added at `index` of the flattened tensor."""

    def forward(self: Array, index: Array, source: Array, accumulate: Bool = False): ...

    def grad_self(grad, index, source, accumulate, xp):
        return grad if accumulate else xp.put(grad, index, xp.zeros_like(source), False)

    def grad_source(grad, index, source, xp):
        return xp.take(grad, index).reshape(tuple(source.shape))


@public(method=True, numpy_names=True)
def take_along_dim(input, indices, dim=None, *, out=None):
    """The elements at `indices` along `dim`. The other dimensions broadcast.

    Without `dim`, `indices` select elements of the flattened tensor.
    """
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
    if modes.STATE.capture is not None or not is_readable(indices):
        indices = tensors.where(indices < 0, indices + a.shape[dim], indices)
    elif b.size and (read := read_array(indices)).item(read.argmin()) < 0:
        indices = wrap(numpy.where(b < 0, b + a.shape[dim], b))
    shape = kernels.broadcast_except(a.shape, b.shape, dim)
    whole, places = ((*shape[:dim], one.shape[dim], *shape[dim + 1 :]) for one in (a, b))
    if b.shape != places:
        indices = tensors.expand(indices, places)
    return gather(tensors.expand(input, whole), dim, indices, out=out)


@operator(
    kernel=indexing_kernels.embedding,
    method=False,
    out=False,
    tangent="linear",
    batch=batched_indexing.embedding,
    narrow="moves",
)
class embedding:
    """The rows of `weight` at `indices`. The row `padding_idx` gets no gradient."""

    real_derivative = "embedding"

    saved_display = {
        "weight_sym_sizes": None,
        "weight_sym_argsize_0": lambda node: node.saved_weight_shape[0],
        "padding_idx": lambda node: node.saved_padding_idx % 2**64,
    }

    def forward(weight: Array, indices: Array, padding_idx=-1, scale_grad_by_freq=False, sparse=False): ...

    def grad_weight(grad, weight_shape, indices, padding_idx, scale_grad_by_freq, sparse, xp):
        if sparse:
            if scale_grad_by_freq:
                raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
            return xp.embedding_sparse_backward(grad, indices, weight_shape[0], padding_idx)
        return xp.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


@internal(
    indexing_kernels.embedding_dense_backward,
    out=False,
    tangent="linear",
    batch=batched_indexing.embedding_backward,
    narrow="halves",
)
class embedding_dense_backward:
    """The gradient of the table. The gradients of equal rows are added up."""

    def forward(self: Array, indices: Array, num_weights, padding_idx, scale_grad_by_freq): ...

    def grad_self(grad, indices, padding_idx, scale_grad_by_freq, xp):
        rows = xp.embedding(grad, indices, padding_idx, scale_grad_by_freq, False)
        if padding_idx >= 0:
            rows = rows * (indices != padding_idx).reshape((*indices.shape, 1))
        return rows
