"""Reductions: sums, products, extrema and truth over some dimensions or all."""

from __future__ import annotations

import math

from ...codegen.kernel import SMALL, Kernel
from ...dispatch.annotations import Array, Bool, Dims, Dtype, Int
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import AMAX, STRICT, TRUTH
from ...kernels.reduce import reduction as kernels
from ...kernels.reduce import scan
from ...kernels.reduce.reduction import kept_shape
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.shapes import names_all, normalize_dims
from ..declaring.reductions import batch_over, reduction


@public(namespace=None, on_arrays=kernels.spread)
def spread(grad, shape, dim, keepdim):
    """The transpose of a sum over `dim`: `grad` repeated along the dimensions that were summed."""
    return tensors.expand(kept(grad, shape, dim, keepdim), shape)


@public(namespace=None, on_arrays=kernels.kept)
def kept(value, shape, dim, keepdim):
    """Return a reduced `value` with the reduced dimensions as size 1. The result broadcasts with the input."""
    for each in () if keepdim or names_all(dim) else normalize_dims(dim, len(shape)):
        value = value.unsqueeze(each)
    return value


@public(namespace=None, on_arrays=kernels.in_dtype_of)
def in_dtype_of(value, other):
    """Return `value` in the dtype of `other`. A 32-bit array divided by counts has 64-bit elements."""
    return value


def element_count(shape, dim):
    """Return how many elements of an array of `shape` a reduction over `dim` combines into one element."""
    count = 1
    for size, kept_size in zip(shape, kept_shape(shape, dim), strict=True):
        count *= size if kept_size != size else 1
    return count


def _batch_of_position(op, batch, value, dim, keepdim):
    """Reduce a batch over one dimension, or over all elements of the flattened tensors."""
    if dim is not None:
        return batch.by("dims", op, (value, dim, keepdim))
    return None if keepdim else op.apply(batch.rows(value), 1, False)


# --- sum and mean ---------------------------------------------------------------------------------------------


@reduction(
    kernels.sum,
    whole=Kernel(kernels.sum, small=kernels.total, quiet=SMALL),
    whole_options={"out": False, "sparse": "reductions.total"},
    tangent="linear",
    out="decides",
    overloaded=True,
    aten="dim_IntList",
    sparse="reductions.sum_dims",
)
class sum:
    """The sum over `dim` (one or several), or of all elements.

    Integers are summed in int64.

    >>> import adjoint as torch
    >>> torch.tensor([[1, 2], [3, 4]]).sum(dim=0)
    tensor([4, 6])
    """

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad, self_shape, dim, keepdim)

    def grad_all(grad, self_shape, xp):
        return xp.expand(grad, self_shape)


@reduction(
    kernels.mean,
    whole=Kernel(kernels.mean, small=kernels.total_mean, quiet=SMALL),
    whole_options={"out": "decides"},
    tangent="linear",
    out="decides",
    overloaded=True,
    aten="dim",
)
class mean:
    """The mean over `dim` (one or several), or of all elements, of a floating-point or complex tensor."""

    saved_display = {"self_sym_numel": lambda node: math.prod(node.saved_self_shape)}

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...

    def check_out(input, out):
        kernels.require_inexact("Input", input._array.dtype)

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad / (element_count(self_shape, dim) or 1), self_shape, dim, keepdim)

    def grad_all(grad, self_shape, xp):
        return xp.expand(grad / (element_count(self_shape, None) or 1), self_shape)


@reduction(
    kernels.nansum,
    out="decides",
    same_out="{name}: provided dtype must match dtype of result. Got {given} and {wanted}.",
)
class nansum:
    """The sum over `dim`. NaNs count as 0."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...

    def check_out(input, out):
        if input.dtype.is_floating_point and not out.dtype.is_floating_point:  # the sum is floating-point
            raise refuse("nansum_cpu", out._array)

    def grad_self(grad, self, dim, keepdim, xp):
        return xp.zero_where(xp.spread(grad, tuple(self.shape), dim, keepdim), self != self)


@public(method=True, numpy_names=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean over `dim` of the elements that are not NaN."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_type}"
        )
    count = tensors.sum_dim(input == input, dim, keepdim)
    total = nansum(input, dim, keepdim, dtype=dtype, out=out)
    return total / count if out is None else total.div_(count)


# --- product --------------------------------------------------------------------------------------------------


@reduction(kernels.prod_along, whole=kernels.prod, whole_options={"out": False}, out="decides", overloaded=True)
class prod:
    """The product over dimension `dim`, or of all elements. Integers are multiplied in int64."""

    def forward(self: Array, dim: Int, keepdim: Bool = False, *, dtype: Dtype = None): ...

    def grad_self(grad, self, result, dim, keepdim, xp):
        if len(self.shape) == 0:
            return grad
        return xp.kept(grad, tuple(self.shape), dim, keepdim) * xp.others_product(self, dim).conj()

    def grad_all(grad, self, result, xp):
        if len(self.shape) == 0:
            return grad
        flat = self.reshape((int(math.prod(self.shape)),))
        return (grad * xp.others_product(flat, 0).conj()).reshape(tuple(self.shape))


# --- extrema --------------------------------------------------------------------------------------------------


def shared(grad, self, result, dim, keepdim, xp, nan_is_one=True):
    """Share the gradient equally among the elements that equal the extremum, which may be NaN."""
    shape = tuple(self.shape)
    extremum = xp.kept(result, shape, dim, keepdim)
    equal = self == extremum
    if nan_is_one:
        equal = equal | ((self != self) & (extremum != extremum))
    count = xp.sum(equal, dim, True)
    nobody = count == 0  # the extremum is NaN: 0 / 0
    share = xp.in_dtype_of(xp.zero_where(xp.kept(grad, shape, dim, keepdim), nobody) / count, grad)
    return xp.zero_where(xp.expand(share, shape), xp.logical_not(equal | nobody))


def _shared_over_dims(grad, self, result, dim, keepdim, xp):
    return shared(grad, self, result, None if names_all(dim) else dim, keepdim, xp, nan_is_one=False)


def shared_by_all(grad, self, result, xp):
    """The gradient of an extremum of all elements, or of the median of all elements."""
    return shared(grad, self, result, None, False, xp)


@reduction(kernels.amax, same_out=AMAX)
class amax:
    """The largest elements over `dim` (one, several, or all). Ties share the gradient equally."""

    def forward(self: Array, dim: Dims = (), keepdim: Bool = False): ...

    grad_self = _shared_over_dims


@reduction(kernels.amin, same_out=AMAX)
class amin:
    """The smallest elements over `dim` (one, several, or all). Ties share the gradient equally."""

    def forward(self: Array, dim: Dims = (), keepdim: Bool = False): ...

    grad_self = _shared_over_dims


def _to_selected(grads, self_shape, indices, dim, keepdim, xp):
    return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


def _to_permuted(grads, self_shape, indices, dim, xp):
    return xp.value_selecting_backward(grads[0], self_shape, dim, indices, True)


def selection(kernel, **options):
    """Declare a function that selects or sorts elements along `dim`, and returns the elements and their indices."""

    def declare(declaration):
        forward = declaration.__dict__["forward"]
        declaration.nondifferentiable = ("indices",)
        if "grad_self" not in vars(declaration):
            declaration.grad_self = _to_selected if "keepdim" in forward.__code__.co_varnames else _to_permuted
        return reduction(kernel, fields=("values", "indices"), **options)(declaration)

    return declare


def _extremum(kernel, whole, over_dims, pairwise):
    """Declare a function that selects an extremum, with the operators of extrema over dimensions and of two tensors."""
    options = {"whole_options": {"batch": batch_over(over_dims)}, "whole_node": 1, "pairwise": pairwise}
    return selection(kernel, whole=Kernel(whole, quiet=True), overloaded=True, same_out=STRICT, **options)


@_extremum(kernels.max_with_indices, kernels.largest, "amax", "maximum")
class max:
    """The largest of all elements or, along `dim`, the largest elements with their indices.

    With a second tensor, the elementwise maximum.

    >>> import adjoint as torch
    >>> torch.tensor([1, 5, 3]).max()
    tensor(5)
    """

    def forward(self: Array, dim: Int, keepdim: Bool = False): ...

    grad_all = shared_by_all


@_extremum(kernels.min_with_indices, kernels.smallest, "amin", "minimum")
class min:
    """The smallest of all elements or, along `dim`, the smallest elements with their indices.

    With a second tensor, the elementwise minimum.

    >>> import adjoint as torch
    >>> torch.tensor([1, 5, 3]).min()
    tensor(1)
    """

    def forward(self: Array, dim: Int, keepdim: Bool = False): ...

    grad_all = shared_by_all


@internal(scan.value_selecting_backward, batch="expanded")
class value_selecting_backward:
    """A tensor of `shape` with `input` at the selected `indices` along `dim`, and zeros elsewhere."""

    def forward(self: Array, shape, dim, indices: Array, keepdim): ...

    def grad_self(grad, dim, indices, keepdim, xp):
        return xp.selected_values(grad, dim, indices, keepdim)


@internal(scan.selected_values, batch="expanded")
class selected_values:
    """The elements at `indices` along `dim`."""

    def forward(self: Array, dim, indices: Array, keepdim): ...

    def grad_self(grad, self_shape, dim, indices, keepdim, xp):
        return xp.value_selecting_backward(grad, self_shape, dim, indices, keepdim)


@reduction(kernels.aminmax, fields=("min", "max"), same_out=STRICT, batch=_batch_of_position)
class aminmax:
    """The smallest and the largest elements along `dim`, or of all elements."""

    def forward(self: Array, *, dim: Int = None, keepdim: Bool = False): ...

    def grad_self(grads, self, min, max, dim, keepdim, xp):
        parts = [
            shared(grad, self, extremum, dim, keepdim, xp, nan_is_one=False)
            for grad, extremum in zip(grads, (min, max), strict=True)
            if grad is not None
        ]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@reduction(kernels.argmax, same_out=STRICT, batch=_batch_of_position)
class argmax:
    """The index of the first largest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False): ...


@reduction(kernels.argmin, same_out=STRICT, batch=_batch_of_position)
class argmin:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False): ...


# --- truth ----------------------------------------------------------------------------------------------------


@reduction(kernels.all, whole=True, same_out=TRUTH, narrow="reads")
class all:
    """Whether all elements are nonzero, along `dim` or of the whole tensor. The result is bool; for uint8 it is uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False): ...


@reduction(kernels.any, whole=True, same_out=TRUTH, sparse="reductions.any_element", narrow="reads")
class any:
    """Whether any element is nonzero, along `dim` or of the whole tensor. The result is bool; for uint8 it is uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False): ...


@reduction(kernels.count_nonzero, out=False, narrow="halves")
class count_nonzero:
    """The number of nonzero elements along `dim`, or of the whole tensor."""

    def forward(self: Array, dim: Dims = None): ...


def _only_xor(self, dim=(), keepdim=False, mode=0):
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode {mode}; only mode=0 (reduction via xor) is supported")


@operator(
    kernel=kernels.hash_tensor, check=_only_xor, same_out="Expected result to be of dtype uint64, but got {given}"
)
class hash_tensor:
    """The bitwise exclusive or of all elements, or of the elements along `dim`, as float64 or int64.

    The result is uint64.

    >>> import adjoint as torch
    >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """

    def forward(self: Array, dim=(), *, keepdim: Bool = False, mode: Int = 0): ...
