"""Scans along a dimension, sorting and selecting, unique elements and counting."""

from __future__ import annotations

from ... import dtypes
from ..._runtime.tracebacks import warn_once
from ...dispatch.annotations import Array, Bool, Dtype, Int, Number
from ...dispatch.arguments import invalid_arguments, is_number
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import SCALAR_TYPE, STRICT, stored
from ...dispatch.sequential import is_readable
from ...kernels.memory.copying import widen
from ...kernels.reduce import counting, scan, sorting
from ...kernels.runtime.floating import HALVES
from ...tape.edges import has_no_history, is_plain
from ...tape.versions import shared_counter
from ...tensor import Tensor, wrap, wrap_dim
from ..math.pointwise import is_complex
from .reduction import selection, shared_by_all

# --- scans ----------------------------------------------------------------------------------------------------


_SEARCH = "*, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None"


@operator(kernel=scan.cumsum, inplace=True, out="decides", tangent="linear", narrow="trivial cumsum_out_cpu")
class cumsum:
    """The cumulative sums along `dim`: each element plus all elements before it."""

    def forward(self: Array, dim: Int, *, dtype: Dtype = None): ...

    def grad_self(grad, dim, xp):
        return xp.reversed_cumsum(grad, dim)


@public(namespace=None, on_arrays=scan.reversed_cumsum)
def reversed_cumsum(input, dim):
    """The reversed cumulative sums along `dim`: each element plus all elements after it."""
    return input if input._array.ndim == 0 else cumsum(input.flip((dim,)), dim).flip((dim,))


@operator(kernel=scan.cumprod, inplace=True, out="decides", narrow="trivial cumprod_out_cpu")
class cumprod:
    """The cumulative products along `dim`: each element times all elements before it."""

    def forward(self: Array, dim: Int, *, dtype: Dtype = None): ...

    def grad_self(grad, self, result, dim, xp):
        return xp.cumprod_backward(grad, self, result, dim)


@public(namespace=None, on_arrays=scan.cumprod_backward)
def cumprod_backward(grad, self, result, dim):
    """Compute the gradient of `cumprod` by differentiable operations, from products of all elements except one."""
    if self._array.size <= 1:
        return grad
    dim = wrap_dim(dim, self._array.ndim)
    size = self._array.shape[dim]
    parts, before = [], None
    for i in range(size):
        first = tensors.ones_like(self.narrow(dim, 0, 1)) if before is None else before
        products = tensors.cat([first, self.narrow(dim, i + 1, size - i - 1)], dim)
        parts.append((grad.narrow(dim, i, size - i) * cumprod(products, dim).conj()).sum(dim, True))
        before = first * self.narrow(dim, i, 1)
    return tensors.cat(parts, dim)


@public(namespace=None, on_arrays=scan.others_product)
def others_product(input, dim):
    """For each element, the product of the other elements along `dim`."""
    size = input._array.shape[dim]
    if size == 0:
        return input
    one = tensors.ones_like(input.narrow(dim, 0, 1))
    before = cumprod(tensors.cat([one, input.narrow(dim, 0, size - 1)], dim), dim)
    after = cumprod(tensors.cat([one, input.narrow(dim, 1, size - 1).flip((dim,))], dim), dim).flip((dim,))
    return before * after


def _to_extrema(grads, self, indices, dim, xp):
    return xp.gather_backward(grads[0], tuple(self.shape), dim, indices)


@selection(scan.cummax, same_out=SCALAR_TYPE, narrow="trivial")
class cummax:
    """The largest element up to each position along `dim`, and its index."""

    def forward(self: Array, dim: Int): ...

    grad_self = _to_extrema


@selection(scan.cummin, same_out=SCALAR_TYPE, narrow="trivial")
class cummin:
    """The smallest element up to each position along `dim`, and its index."""

    def forward(self: Array, dim: Int): ...

    grad_self = _to_extrema


@operator(kernel=scan.logcumsumexp, same_out=SCALAR_TYPE)
class logcumsumexp:
    """The logarithm of cumulative sums of exponentials along `dim`."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, self, result, dim, xp):
        # The derivative of the k-th result with respect to each x_i before it is exp(x_i - result_k). The gradient is a reversed
        # sum of exponentials, computed with logarithms for each sign, so that nothing overflows or cancels.
        if len(self.shape) == 0:
            return grad
        wide = xp.in_float32(self)
        if wide is not self:  # exponentials of differences of rounded numbers would be inaccurate
            grad, self, result = xp.in_float32(grad), wide, xp.logcumsumexp(wide, dim)
        if is_complex(self):
            weights = _reversed_logcumsumexp(xp.log(grad.conj()) - result, dim, xp)
            return xp.exp(weights + self).conj()
        least = xp.zeros_like(self) + _least(self)
        ones = xp.ones_like(self)  # the logarithm of 0 would make even unused derivatives NaN
        positive = xp.where(grad > 0, xp.log(xp.where(grad > 0, grad, ones)), least)
        negative = xp.where(grad < 0, xp.log(xp.where(grad < 0, -grad, ones)), least)
        up = xp.exp(_reversed_logcumsumexp(positive - result, dim, xp) + self)
        return up - xp.exp(_reversed_logcumsumexp(negative - result, dim, xp) + self)


@public(namespace=None, on_arrays=widen)
def in_float32(x):
    """Return half-precision values in float32, and other values unchanged."""
    return x.float() if x._array.dtype in HALVES else x


def _least(x):
    """Return the least finite number of a dtype."""
    return dtypes.finfo(dtypes.from_numpy(getattr(x, "_array", x).dtype)).min


def _reversed_logcumsumexp(x, dim, xp):
    return xp.flip(xp.logcumsumexp(xp.flip(x, (dim,)), dim), (dim,))


# --- sorting and selecting ------------------------------------------------------------------------------------


def _sorting(name, node):
    return {"name": name, "function_name": "sort", "namespace": None, "method": (), "node": node, "same_out": STRICT}


@selection(sorting.sort, **_sorting("sort_default", "SortBackward0"), narrow="trivial sorting_kernel_method_name")
class sort_default:
    """The elements in order along `dim`, and their original indices."""

    def forward(self: Array, dim: Int = -1, descending: Bool = False): ...


@selection(sorting.sort, **_sorting("sort_stable", "SortBackward1"), narrow="trivial sorting_kernel_method_name")
class sort_stable:
    """The elements in order along `dim`, and their original indices. Equal elements keep their order."""

    def forward(self: Array, dim: Int = -1, descending: Bool = False, stable: Bool = True): ...


@public(method=True, numpy_names=True)
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """The elements in ascending (or `descending`) order along `dim`, and their indices.

    >>> import adjoint as torch
    >>> torch.tensor([3, 1, 2]).sort().indices
    tensor([1, 2, 0])
    """
    if stable is None:
        return sort_default(input, dim, descending, out=out)
    return sort_stable(input, dim, descending, stable, out=out)


@public(method=True, numpy_names=True)
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort the tensor along `dim`."""
    return sort(input, dim, descending, stable=stable).indices


@public(method=True, numpy_names=True)
def msort(input, *, out=None):
    """The elements in ascending order along the first dimension."""
    return stored("msort", sort_default(input, 0).values, out, STRICT)


@selection(sorting.topk, same_out=STRICT, narrow="trivial")
class topk:
    """The `k` largest (or smallest) elements along `dim`, and their indices."""

    def forward(self: Array, k: Int, dim: Int = -1, largest: Bool = True, sorted: Bool = True): ...


@selection(sorting.kthvalue, out="disjoint", same_out="output values must be of same type as input", narrow="trivial")
class kthvalue:
    """The `k`th smallest element along `dim`, counted from 1, and its index."""

    def forward(self: Array, k: Int, dim: Int = -1, keepdim: Bool = False): ...


@selection(
    sorting.mode, same_out="expected scalar type '{wanted}' but got '{given}' for {result} output", narrow="trivial"
)
class mode:
    """The most frequent element along `dim`, and its index. Of equally frequent elements, the smallest is returned."""

    def forward(self: Array, dim: Int = -1, keepdim: Bool = False): ...


def _check_median(result, given, inputs):
    """Raise an error unless `out=` has the dtype of the operand for the values and int64 for the indices."""
    wanted, operand = dtypes.from_numpy(result.dtype), inputs[0].dtype
    if wanted is given:
        return
    if wanted is operand:
        raise RuntimeError(
            "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
            f"torch.{given.scalar_type}Tensor does not equal torch.{operand.scalar_type}Tensor "
            "(while checking arguments for median)"
        )
    raise RuntimeError(
        f"Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{given.scalar_type}Tensor "
        "instead (while checking arguments for median)"
    )


_MEDIAN = {"same_out": _check_median, "whole_options": {"out": False, "batch": None}}


@selection(sorting.median, whole=sorting.median_of_all, **_MEDIAN)
class median:
    """The median along `dim` with its index, or the median of all elements.

    For an even number of elements, the median is the lower of the two middle elements.
    """

    def forward(self: Array, dim: Int, keepdim: Bool = False): ...

    grad_all = shared_by_all


@selection(sorting.nanmedian, whole=sorting.nanmedian_of_all, **_MEDIAN)
class nanmedian:
    """The `median` of the elements that are not NaN."""

    def forward(self: Array, dim: Int, keepdim: Bool = False): ...

    grad_all = shared_by_all


# --- quantiles ------------------------------------------------------------------------------------------------


_LEVELS = 'int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None'


def _quantile(name, ignore_nan):
    def function(input, q, dim=None, keepdim: bool = False, *, interpolation="linear", out=None):
        if not isinstance(q, (Tensor, int, float)):
            raise invalid_arguments(name, input, q)
        levels = q._array if isinstance(q, Tensor) else q
        readable = not isinstance(q, Tensor) or is_readable(q)
        sorting.check_quantile(input._array, levels, dim, interpolation, readable=readable)
        if type(q) is float and out is None and not ignore_nan and has_no_history(input):
            result = wrap(sorting.quantile(input._array, q, dim, keepdim, interpolation))
            # PyTorch computes partly in place.
            shared_counter(result)[0] = 1 + (interpolation not in sorting.CHOICES)
            return result
        return _interpolated(input, q, dim, keepdim, interpolation, ignore_nan, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "The `q`-quantiles along `dim`, or of all elements, between neighbours as `interpolation` says: linear, lower, higher, "
        "midpoint or nearest" + ("; NaNs are left out." if ignore_nan else ".")
    )
    return public(
        method=True, numpy_names=True, forms=tuple(f"Tensor input, {q} q, {_LEVELS}" for q in ("Tensor", "float"))
    )(function)


def _interpolated(input, q, dim, keepdim, interpolation, ignore_nan, out):
    shape = input._array.shape
    last = len(shape) - 1
    if dim is None:
        ordered, kept = input.flatten(), (1,) * len(shape) if keepdim else ()
    else:
        dim = wrap_dim(dim, len(shape))
        kept = (*shape[:dim], 1, *shape[dim + 1 :]) if keepdim and shape else (*shape[:dim], *shape[dim + 1 :])
        ordered = input if dim == last else input.unsqueeze(-1).transpose(dim, -1)
    ordered = sort_default(ordered, -1, False).values
    size = ordered._array.shape[-1] if ordered._array.ndim else 1
    ordered = ordered.view((*kept, size))
    several = isinstance(q, Tensor) and q._array.ndim > 0
    levels = q if isinstance(q, Tensor) else tensors.scalar_tensor(q, dtype=input.dtype, device=input.device)
    levels = levels if several else levels.unsqueeze(0)
    if is_plain(ordered) and has_no_history(levels):
        found = sorting.neighbours(ordered._array, levels._array, interpolation, ignore_nan)
        below, above, weight = [each if each is None else wrap(each) for each in found]
    else:
        below, above, weight = _neighbours(ordered, levels, interpolation, ignore_nan)
    values = ordered.gather(-1, below)
    if above is not None:
        values.lerp_(ordered.gather(-1, above), weight)
    if several:
        values.unsqueeze_(0).transpose_(0, -1)
    return stored(
        "quantile",
        values.squeeze_(-1),
        out,
        same="quantile() out tensor must be same dtype as the input tensor",
        recorded=True,
    )


def _neighbours(ordered, levels, interpolation, ignore_nan):
    """Do the same as `sorting.neighbours` for tensors: modes see the steps, and levels may have a history."""
    last = ordered._array.shape[-1] - 1
    nan = ordered != ordered
    if ignore_nan:
        rank = levels * (nan.logical_not().sum(-1, True) - 1)
        rank.masked_fill_(rank < 0, 0)
    else:
        undefined = nan.any(-1, True)
        rank = tensors.mul_number(levels, last)
        if undefined._array.ndim > 1:
            rank = tensors.expand(rank, (*undefined._array.shape[:-1], rank._array.shape[-1]))
        rank = rank.masked_fill(undefined, last)
    rounded = {"lower": rank.floor_, "higher": rank.ceil_, "nearest": rank.round_}.get(interpolation)
    if rounded is not None:
        return rounded().long(), None, None
    below = rank.long()
    weight = tensors.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below.to(rank.dtype)
    return below, rank.ceil().long(), weight


quantile = _quantile("quantile", False)
nanquantile = _quantile("nanquantile", True)


# --- unique elements and counting -----------------------------------------------------------------------------


def _unique(kernel, node, aten_name):
    """Declare an operator that finds unique elements. The operator is recorded, but has no derivative."""

    def grad_self(grads):
        raise NotImplementedError(f"the derivative for '{aten_name}' is not implemented.")

    def declare(declaration):
        declaration.nondifferentiable = ("inverse", "counts")
        declaration.grad_self = grad_self
        return operator(
            kernel=kernel,
            namespace=None,
            method=False,
            node=node,
            outputs=("output", "inverse", "counts"),
            batch="dynamic",
            aten_name=aten_name,
            shape_of_elements=True,
        )(declaration)

    return declare


@_unique(counting.unique, "Unique2Backward0", "_unique2")
class unique_all:
    """Unique elements, the position of each element among them, and the number of occurrences of each unique element."""

    def forward(self: Array, sorted=True, return_inverse=True, return_counts=True): ...


@_unique(counting.unique_slices, "UniqueDimBackward0", "unique_dim")
class unique_dim:
    """Unique slices of a dimension, the position of each slice among them, and their counts."""

    def forward(self: Array, dim, sorted=True, return_inverse=True, return_counts=True): ...


@_unique(counting.unique_consecutive, "UniqueConsecutiveBackward0", "unique_consecutive")
class unique_runs:
    """The first element of each run of equal neighbours, the number of the run of each element, and the lengths of the runs."""

    def forward(self: Array, dim=None, return_inverse=True, return_counts=True): ...


def _wanted(results, return_inverse, return_counts):
    output, inverse, counts = results
    if not return_inverse and not return_counts:
        return output
    return (output, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


@public(method=True)
def unique(input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim=None):
    """The unique elements, or the unique slices of `dim`.

    Optionally, return also each element's index among the unique elements, and the counts.
    """
    wanted = bool(return_inverse), bool(return_counts)
    results = unique_all(input, sorted, *wanted) if dim is None else unique_dim(input, dim, sorted, *wanted)
    return _wanted(results, *wanted)


@public(method=True)
def unique_consecutive(input, return_inverse: bool = False, return_counts: bool = False, dim=None):
    """The tensor without repeated neighbours: only the first of equal neighbours remains."""
    wanted = bool(return_inverse), bool(return_counts)
    return _wanted(unique_runs(input, dim, *wanted), *wanted)


_WRONG_INDEX = (
    "{name}(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 "
    "flag is True, but we got output tensor's dtype {given} and out_int32 flag is {wanted}"
)


@operator(
    kernel=counting.histc,
    same_out=(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {wanted_c} and hist "
        "{given_c}"
    ),
)
class histc:
    """The number of elements in each of `bins` equal parts of the range from `min` to `max`."""

    def forward(self: Array, bins: Int = 100, min: Number = 0, max: Number = 0): ...


@operator(kernel=counting.bincount, out=False, shape_of_elements=True)
class bincount:
    """The number of occurrences of each number from 0 upwards, or the sum of their weights."""

    def forward(self: Array, weights: Array | None = None, minlength: Int = 0): ...


@internal(counting.searchsorted, function_name="torch.searchsorted", aten_name="searchsorted", same_out=_WRONG_INDEX)
class searchsorted_tensor:
    """The indices at which elements would be inserted into a sorted sequence."""

    def forward(
        sorted_sequence: Array, self: Array, *, out_int32=False, right=False, side=None, sorter: Array | None = None
    ): ...

    def batch(op, batch, sequence, values, *rest):
        if not sequence._array.size or not values._array.size or rest[op.names.index("sorter") - 2] is not None:
            return None
        if not batch.has(sequence) and sequence._array.ndim == 1:
            return op.apply(sequence, batch.first(values), *rest)
        sequences, wanted = batch.expanded(sequence), batch.expanded(values)
        if sequence._array.ndim > 1:
            return op.apply(sequences, wanted, *rest)
        return op.apply(sequences, batch.flat(wanted), *rest).reshape(wanted.shape)


@public(
    forms=(
        f"Tensor sorted_sequence, Tensor input, {_SEARCH}",
        f"Tensor sorted_sequence, Number self, {_SEARCH}",
    )
)
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """The indices at which the elements of `input` would be inserted to keep the innermost dimension sorted."""
    if not isinstance(sorted_sequence, Tensor) or not (isinstance(input, Tensor) or is_number(input)):
        raise invalid_arguments("searchsorted", sorted_sequence, input)
    values = input if isinstance(input, Tensor) else tensors.scalar_tensor(input, dtype=sorted_sequence.dtype)
    for name, each in (("input value", values), ("boundary", sorted_sequence), ("sorter", sorter)):
        if each is not None and not each.is_contiguous():
            warn_once(
                f"searchsorted {name}",
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra data copy "
                f"when converting non-contiguous tensor to contiguous, please use contiguous {name} tensor if possible. This "
                "message will only appear once per program.",
            )
    return searchsorted_tensor(
        sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter, out=out
    )


@public()
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The index of the bucket that contains each element. `boundaries` are the limits of the buckets in ascending order."""
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
