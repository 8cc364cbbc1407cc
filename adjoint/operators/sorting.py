"""Scans along a dimension, sorting and selecting, unique elements and counting."""

from __future__ import annotations

from ..kernels import counting, scan, picking, sorting
from ..tensor import Tensor, wrap_dim
from .build import operator, public, tensors
from .return_types import return_type

# ruff: noqa: D101, N801, F821, A001  (declarations are named as the functions they become)


# --- scans ----------------------------------------------------------------------------------------------------


@operator(inplace=True)
class cumsum:
    """Sums of each element and all before it along `dim`."""

    def forward(self: Array, dim, *, dtype=None):
        return scan.cumsum(self, dim, dtype and dtype.numpy)

    def grad_self(grad, dim, xp):
        return xp.reversed_cumsum(grad, dim)


@public(namespace=None, on_arrays=picking.reversed_cumsum)
def reversed_cumsum(input, dim):
    """Sums of each element and all after it along `dim`."""
    return input if input._array.ndim == 0 else cumsum(input.flip((dim,)), dim).flip((dim,))


@operator(inplace=True)
class cumprod:
    """Products of each element and all before it along `dim`."""

    def forward(self: Array, dim, *, dtype=None):
        return scan.cumprod(self, dim, dtype and dtype.numpy)

    def grad_self(grad, self, result, dim, xp):
        return xp.cumprod_backward(grad, self, result, dim)


@public(namespace=None, on_arrays=picking.cumprod_backward)
def cumprod_backward(grad, self, result, dim):
    """The gradient of `cumprod` in differentiable operations: a sum over all later products, each without the element."""
    if self._array.ndim == 0:
        return grad
    dim = wrap_dim(dim, self._array.ndim)
    size = self._array.shape[dim]
    parts, before = [], None
    for i in range(size):
        first = tensors.ones_like(self.narrow(dim, 0, 1)) if before is None else before
        products = tensors.cat([first, self.narrow(dim, i + 1, size - i - 1)], dim)
        parts.append((grad.narrow(dim, i, size - i) * cumprod(products, dim).conj()).sum(dim, True))
        before = first * self.narrow(dim, i, 1)
    return tensors.cat(parts, dim) if parts else tensors.zeros_like(self)


@public(namespace=None, on_arrays=picking.others_product)
def others_product(input, dim):
    """For each element the product of the others along `dim`."""
    size = input._array.shape[dim]
    if size == 0:
        return tensors.ones_like(input)
    one = tensors.ones_like(input.narrow(dim, 0, 1))
    before = cumprod(tensors.cat([one, input.narrow(dim, 0, size - 1)], dim), dim)
    after = cumprod(tensors.cat([one, input.narrow(dim, 1, size - 1).flip((dim,))], dim), dim).flip((dim,))
    return before * after


@operator(outputs=("values", "indices"), returns=return_type("cummax", "values", "indices"))
class cummax:
    """The largest element so far along `dim`, and where it is."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim):
        return scan.cummax(self, dim)

    def grad_self(grads, self_shape, indices, dim, xp):
        return xp.add_at_selected(grads[0], self_shape, dim, indices)


@operator(outputs=("values", "indices"), returns=return_type("cummin", "values", "indices"))
class cummin:
    """The smallest element so far along `dim`, and where it is."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim):
        return scan.cummin(self, dim)

    def grad_self(grads, self_shape, indices, dim, xp):
        return xp.add_at_selected(grads[0], self_shape, dim, indices)


@operator(namespace=None, method=False)
class add_at_selected:
    """Zeros of `shape` to which `input` is added at `indices` along `dim`."""

    def forward(self: Array, shape, dim, indices: Array):
        return picking.add_at_selected(self, shape, dim, indices)

    def grad_self(grad, dim, indices, xp):
        return xp.gathered(grad, dim, indices)


@operator(namespace=None, method=False)
class gathered:
    """The elements at `indices` along `dim`."""

    def forward(self: Array, dim, indices: Array):
        return picking.gathered(self, dim, indices)

    def grad_self(grad, self_shape, dim, indices, xp):
        return xp.add_at_selected(grad, self_shape, dim, indices)


@operator()
class logcumsumexp:
    """The logarithm of cumulative sums of exponentials along `dim`."""

    def forward(self: Array, dim):
        return scan.logcumsumexp(self, dim)

    def grad_self(grad, self, result, dim, xp):
        # d/dx_i of the k-th result is exp(x_i - result_k) for k >= i; positive and negative parts apart, in logarithms.
        if len(self.shape) == 0:
            return grad
        peak = xp.amax(xp.real(result), dim, True)
        peak = xp.where(xp.isfinite(peak), peak, peak * 0)
        weights = grad * xp.exp(peak - result).conj()
        return xp.exp(self - peak).conj() * xp.reversed_cumsum(weights, dim)


# --- sorting and selecting ------------------------------------------------------------------------------------


def _pair(name):
    return {"outputs": ("values", "indices"), "returns": return_type(name, "values", "indices")}


@operator(namespace=None, method=False, node="SortBackward0", **_pair("sort"))
class sort_default:
    """The elements in order along `dim`, and where they were."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim=-1, descending=False):
        return sorting.sort(self, dim, descending)

    def grad_self(grads, self_shape, indices, dim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, True)


@operator(namespace=None, method=False, node="SortBackward1", **_pair("sort"))
class sort_stable:
    """The same; equal elements stay in their order."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim=-1, descending=False, stable=True):
        return sorting.sort(self, dim, descending, True)

    def grad_self(grads, self_shape, indices, dim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, True)


@public(method=True)
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """The elements in ascending (or `descending`) order along `dim`, and their indices.

    >>> import adjoint as torch
    >>> torch.tensor([3, 1, 2]).sort().indices
    tensor([1, 2, 0])
    """
    if stable is None:
        return sort_default(input, dim, descending, out=out)
    return sort_stable(input, dim, descending, stable, out=out)


@public(method=True)
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort the tensor along `dim`."""
    return sort(input, dim, descending, stable=stable).indices


@public(method=True)
def msort(input, *, out=None):
    """The elements in ascending order along the first dimension."""
    return sort(input, 0, out=None if out is None else (out, tensors.empty_like(out).long())).values


@operator(**_pair("topk"))
class topk:
    """The `k` largest (or smallest) elements along `dim`, and where they are."""

    nondifferentiable = ("indices",)

    def forward(self: Array, k, dim=-1, largest=True, sorted=True):
        return sorting.topk(self, k, dim, largest, sorted)

    def grad_self(grads, self_shape, indices, dim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, True)


@operator(**_pair("kthvalue"))
class kthvalue:
    """The `k`th smallest element along `dim`, counted from 1, and where it is."""

    nondifferentiable = ("indices",)

    def forward(self: Array, k, dim=-1, keepdim=False):
        return sorting.kthvalue(self, k, dim, keepdim)

    def grad_self(grads, self_shape, indices, dim, keepdim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


@operator(**_pair("mode"))
class mode:
    """The most frequent element along `dim` (the smallest of several), and where it is."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim=-1, keepdim=False):
        return sorting.mode(self, dim, keepdim)

    def grad_self(grads, self_shape, indices, dim, keepdim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


def _median(name, kernel):
    def whole(self): ...

    whole = type(f"{name}_all", (), {"forward": lambda self: kernel(self)[0], "grad_self": _equal_share})
    whole.__dict__["forward"].__annotations__ = {"self": "Array"}
    whole.__doc__ = "The median of all elements."
    along = type(
        f"{name}_dim",
        (),
        {
            "forward": lambda self, dim, keepdim=False: kernel(self, dim, keepdim),
            "grad_self": _selected_share,
            "nondifferentiable": ("indices",),
        },
    )
    along.__dict__["forward"].__annotations__ = {"self": "Array"}
    along.__doc__ = "The median along one dimension, and where it is."
    title = name.capitalize()
    all_of = operator(namespace=None, method=False, node=f"{title}Backward0")(whole)
    one_dim = operator(namespace=None, method=False, node=f"{title}Backward1", **_pair(name))(along)

    def function(input, dim=None, keepdim=False, *, out=None):
        return all_of(input, out=out) if dim is None else one_dim(input, dim, keepdim, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "The median along `dim` with its index, or of all elements: of an even number the lower of the middle two"
        + ("; NaNs are left out." if name == "nanmedian" else ".")
    )
    return public(method=True)(function)


def _equal_share(grad, self, result, xp):
    equal = (self == result) | ((self != self) & (result != result))
    return (grad / xp.sum(equal, None, False)) * equal


def _selected_share(grads, self_shape, indices, dim, keepdim, xp):
    return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


median = _median("median", sorting.median)
nanmedian = _median("nanmedian", sorting.nanmedian)


# --- quantiles ------------------------------------------------------------------------------------------------


def _quantile(name, ignore_nan):
    def function(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
        kernel = sorting.nanquantile if ignore_nan else sorting.quantile
        levels = q._array if isinstance(q, Tensor) else q
        kernel(input._array, levels, dim, keepdim, interpolation=interpolation)  # raises for what cannot be
        return _interpolated(input, q, dim, keepdim, interpolation, ignore_nan, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "The `q`-quantiles along `dim`, or of all elements, between neighbours as `interpolation` says: linear, lower, higher, "
        "midpoint or nearest" + ("; NaNs are left out." if ignore_nan else ".")
    )
    return public(method=True)(function)


def _interpolated(input, q, dim, keepdim, interpolation, ignore_nan, out):
    ndim = input._array.ndim
    flat = dim is None
    ordered = sort_default(input.flatten() if flat else input.movedim(dim, -1), -1, False).values
    levels = q if isinstance(q, Tensor) else tensors.scalar_tensor(q, dtype=input.dtype)
    several = levels._array.ndim > 0
    levels = levels.reshape((-1,))
    size = ordered._array.shape[-1]
    if ignore_nan:
        count = (ordered == ordered).sum(-1, True)
        rank = levels * (count - 1).to(input.dtype)
        rank = rank.clamp(min=0)
    else:
        rank = (levels * (size - 1)).expand(*ordered._array.shape[:-1], levels._array.size)
        has_nan = (ordered != ordered).any(-1, True)
        rank = tensors.where(has_nan, tensors.full_like(rank, size - 1), rank)
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    below = rank.floor()
    values = ordered.gather(-1, below.long())
    if interpolation in ("linear", "midpoint"):
        weight = tensors.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
        values = values.lerp(ordered.gather(-1, rank.ceil().long()), weight)
    if keepdim:
        values = values.reshape((*(1,) * ndim, -1)) if flat else values.unsqueeze(dim if dim < 0 else dim - ndim)
        if flat:
            values = values.movedim(-1, 0)
        else:
            position = wrap_dim(dim, ndim)
            values = values.movedim(-1, 0) if position == ndim - 1 else values.movedim(-1, 0)
    else:
        values = values.movedim(-1, 0)
    values = values if several else values.squeeze(0)
    return values if out is None else tensors.copy_out(values, out)


quantile = _quantile("quantile", False)
nanquantile = _quantile("nanquantile", True)


# --- unique elements and counting -----------------------------------------------------------------------------


@operator(namespace=None, method=False, node="Unique2Backward0", outputs=("output", "inverse", "counts"))
class unique_all:
    """Unique elements, the positions of all elements among them, and how often each occurs."""

    nondifferentiable = ("inverse", "counts")

    def forward(self: Array, sorted=True):
        return counting.unique(self, sorted)

    def grad_self(grads):
        raise RuntimeError("derivative for aten::_unique2 is not implemented")


@operator(namespace=None, method=False, node="UniqueDimBackward0", outputs=("output", "inverse", "counts"))
class unique_dim:
    """The same for the slices of a dimension."""

    nondifferentiable = ("inverse", "counts")

    def forward(self: Array, dim, sorted=True):
        return counting.unique(self, sorted, dim)

    def grad_self(grads):
        raise RuntimeError("derivative for aten::unique_dim is not implemented")


@operator(namespace=None, method=False, node="UniqueConsecutiveBackward0", outputs=("output", "inverse", "counts"))
class unique_runs:
    """The same for runs of equal neighbours."""

    nondifferentiable = ("inverse", "counts")

    def forward(self: Array, dim=None):
        return counting.unique_consecutive(self, dim)

    def grad_self(grads):
        raise RuntimeError("derivative for aten::unique_consecutive is not implemented")


def _wanted(results, return_inverse, return_counts):
    output, inverse, counts = results
    if not return_inverse and not return_counts:
        return output
    return (output, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


@public(method=True)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The unique elements, or the unique slices of `dim`; also each element's place among them, and their counts."""
    results = unique_all(input, sorted) if dim is None else unique_dim(input, dim, sorted)
    return _wanted(results, return_inverse, return_counts)


@public(method=True)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The tensor with all but the first of equal neighbours left out."""
    return _wanted(unique_runs(input, dim), return_inverse, return_counts)


@operator()
class histc:
    """How many elements fall into each of `bins` equal parts of the range from `min` to `max`."""

    def forward(self: Array, bins=100, min=0, max=0):
        return counting.histc(self, bins, min, max)


@operator(out=False)
class bincount:
    """How often each number from 0 on occurs among the elements, or the sum of their weights."""

    def forward(self: Array, weights: Array | None = None, minlength=0):
        return counting.bincount(self, weights, minlength)


@operator(namespace=None, method=False)
class searchsorted_tensor:
    """Where elements would be inserted into a sorted sequence."""

    def forward(sorted_sequence: Array, self: Array, *, out_int32=False, right=False, side=None, sorter: Array | None = None):
        return counting.searchsorted(sorted_sequence, self, out_int32=out_int32, right=right, side=side, sorter=sorter)


@public()
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """The indices at which the elements of `input` would be inserted to keep the innermost dimension sorted."""
    values = input if isinstance(input, Tensor) else tensors.scalar_tensor(input, dtype=sorted_sequence.dtype)
    return searchsorted_tensor(sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter, out=out)


@public()
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The index of the bucket, between sorted `boundaries`, that each element falls into."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
