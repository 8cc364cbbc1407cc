"""Reductions: sums, products, extrema and truth over some dimensions or all."""

from __future__ import annotations

import math

from ... import dtypes
from ...codegen.kernel import SMALL, Kernel
from ...dispatch.annotations import Array, Bool, Dims, Dtype, Int
from ...dispatch.arguments import MISSING, invalid_arguments
from ...dispatch.declaration import OPERATORS
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.numpy_names import with_numpy_names
from ...dispatch.out import AMAX, STRICT, TRUTH
from ...dispatch.return_types import return_type
from ...dispatch.signatures import OUT
from ...kernels.reduce import reduction, scan
from ...kernels.shape import view as view_kernels
from ...tensor import Tensor, wrap_dim

_EXTREMUM = (
    f"Tensor input, {OUT}",
    f"Tensor input, Tensor other, {OUT}",
    "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
)
_TRUTH = (
    f"Tensor input, {OUT}",
    f"Tensor input, tuple of ints dim = None, bool keepdim = False, {OUT}",
    f"Tensor input, int dim, bool keepdim = False, {OUT}",
)
_OVER_DIMS = f"Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, {OUT[3:]}"


def _kept_shape(shape, dim):
    """`shape` with the sizes of the reduced dimensions made 1."""
    if dim is None or dim == ():
        return (1,) * len(shape)
    reduced = {wrap_dim(d, len(shape)) for d in ((dim,) if isinstance(dim, int) else dim)}
    return tuple(1 if d in reduced else size for d, size in enumerate(shape))


def _spread_array(grad, shape, dim, keepdim):
    if not keepdim and shape and dim is not None:
        grad = grad.reshape(_kept_shape(shape, dim))
    return view_kernels.expand(grad, shape)


@public(namespace=None, on_arrays=_spread_array)
def spread(grad, shape, dim, keepdim):
    """The transpose of a sum over `dim`: `grad` repeated along the dimensions that were summed."""
    if not keepdim and shape and dim is not None:
        grad = grad.reshape(_kept_shape(shape, dim))
    return tensors.expand(grad, shape)


def _kept_array(value, shape, dim, keepdim):
    return value if keepdim or not shape else value.reshape(_kept_shape(shape, dim))


@public(namespace=None, on_arrays=_kept_array)
def kept(value, shape, dim, keepdim):
    """A reduced `value` with the reduced dimensions back, of size 1, so that it broadcasts against the input."""
    return value if keepdim or not shape else value.reshape(_kept_shape(shape, dim))


def element_count(shape, dim):
    """How many elements of an array of `shape` each element of its reduction over `dim` comes from."""
    count = 1
    for size, kept_size in zip(shape, _kept_shape(shape, dim), strict=True):
        count *= size if kept_size != size else 1
    return count


def _batch_of_all(over_dims):
    """The batching rule of a reduction of all elements: that over dimensions, `over_dims`, of one row for each place."""

    def rule(op, batch, value, *rest):
        target = OPERATORS[over_dims]
        dim = (1,) if target.types.get("dim") == "Dims" else 1
        return batch.apply(target, (batch.flat(batch.first(value)), dim, False, *rest))

    return rule


def _batch_of_position(op, batch, value, dim, keepdim):
    """The batching rule of a reduction over one dimension, or, flattened, over all."""
    if dim is not None:
        return batch.by("dims", op, (value, dim, keepdim))
    return None if keepdim else batch.apply(op, (batch.flat(batch.first(value)), 1, False))


# --- sum and mean ---------------------------------------------------------------------------------------------


@operator(
    kernel=Kernel(reduction.sum, small=reduction.total, quiet=SMALL),
    namespace=None,
    method=False,
    node="SumBackward0",
    function_name="sum",
    tangent="linear",
    batch=_batch_of_all("sum_dim"),
)
class sum_all:
    """The sum of all elements."""

    def forward(self: Array, *, dtype=None): ...

    def grad_self(grad, self_shape, xp):
        return xp.expand(grad, self_shape)


@operator(
    kernel=reduction.sum,
    namespace=None,
    method=(),
    node="SumBackward1",
    function_name="sum",
    out_decides=True,
    overloaded=True,
    tangent="linear",
    aten="dim_IntList",
)
class sum_dim:
    """The sum over some dimensions."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype=None): ...

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad, self_shape, dim, keepdim)


def _given(dim, keepdim):
    """`keepdim` as it counts for the arguments given: after a `dim` it has a default."""
    return False if keepdim is MISSING and dim is not MISSING else keepdim


@public(method=True, on_arrays=reduction.sum, forms=("Tensor input, *, torch.dtype dtype = None", _OVER_DIMS))
def sum(input=MISSING, dim=MISSING, keepdim=MISSING, *, dtype=None, out=None, **names):
    """The sum over `dim` (one or several), or of all elements; of integers in int64.

    >>> import adjoint as torch
    >>> torch.tensor([[1, 2], [3, 4]]).sum(dim=0)
    tensor([4, 6])
    """
    if names:
        return with_numpy_names(sum, names, input, dim, _given(dim, keepdim), dtype=dtype, out=out)
    if dtype is not None:
        dtype = element_type("sum", dtype)
    if dim is MISSING:
        if keepdim is not MISSING:
            raise invalid_arguments("sum", input, keepdim=keepdim)
        return sum_all(input, dtype=dtype, out=out)
    return sum_dim(input, dim, keepdim is not MISSING and keepdim, dtype=dtype, out=out)


def element_type(function, dtype):
    """The NumPy dtype of an argument `dtype`, which may be None.

    Raises:
        TypeError: if it is something else.
    """
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return dtype and dtype.numpy


def _element_count(node):
    return math.prod(node.saved_self_shape)


@operator(
    kernel=Kernel(reduction.mean, small=reduction.total_mean, quiet=SMALL),
    namespace=None,
    method=False,
    node="MeanBackward0",
    function_name="mean",
    tangent="linear",
    batch=_batch_of_all("mean_dim"),
)
class mean_all:
    """The mean of all elements."""

    saved_display = {"self_sym_numel": _element_count}

    def forward(self: Array, *, dtype=None): ...

    def grad_self(grad, self_shape, xp):
        return xp.expand(grad / (element_count(self_shape, None) or 1), self_shape)


@operator(
    kernel=reduction.mean,
    namespace=None,
    method=(),
    node="MeanBackward1",
    function_name="mean",
    out_decides=True,
    overloaded=True,
    tangent="linear",
    aten="dim",
)
class mean_dim:
    """The mean over some dimensions."""

    saved_display = {"self_sym_numel": _element_count}

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype=None): ...

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad, self_shape, dim, keepdim) / element_count(self_shape, dim)


@public(
    method=True, on_arrays=reduction.mean, forms=(f"Tensor input, *, torch.dtype dtype = None, {OUT[3:]}", _OVER_DIMS)
)
def mean(input=MISSING, dim=MISSING, keepdim=MISSING, *, dtype=None, out=None, **names):
    """The mean over `dim` (one or several), or of all elements, of a floating-point or complex tensor."""
    if names:
        return with_numpy_names(mean, names, input, dim, _given(dim, keepdim), dtype=dtype, out=out)
    if dtype is not None:
        dtype = element_type("mean", dtype)
    if dim is MISSING:
        if keepdim is not MISSING:
            raise invalid_arguments("mean", input, keepdim=keepdim)
        return mean_all(input, dtype=dtype, out=out)
    return mean_dim(input, dim, keepdim is not MISSING and keepdim, dtype=dtype, out=out)


def _only_of_floats(input, out):
    """Without `dtype`, the sum of floating-point numbers is one."""
    if input.dtype.is_floating_point and not out.dtype.is_floating_point:
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.scalar_type}'")


@operator(
    out_decides=_only_of_floats, same_out="{name}: provided dtype must match dtype of result. Got {given} and {wanted}."
)
class nansum:
    """The sum over `dim`, NaNs counted as 0."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
        return reduction.nansum(self, dim, keepdim, dtype and dtype.numpy)

    def grad_self(grad, self, dim, keepdim, xp):
        return xp.spread(grad, tuple(self.shape), dim, keepdim) * (self == self)


@public(method=True, numpy_names=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean over `dim` of what is not NaN."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_type}"
        )
    count = sum_dim(input == input, dim, keepdim)
    total = nansum(input, dim, keepdim, dtype=dtype, out=out)
    return total / count if out is None else total.div_(count)


# --- product --------------------------------------------------------------------------------------------------


@operator(
    kernel=reduction.prod,
    namespace=None,
    method=False,
    node="ProdBackward0",
    function_name="prod",
    batch=_batch_of_all("prod_dim"),
)
class prod_all:
    """The product of all elements."""

    def forward(self: Array, *, dtype=None): ...

    def grad_self(grad, self, result, xp):
        if len(self.shape) == 0:
            return grad
        flat = self.reshape((int(math.prod(self.shape)),))
        return (grad * xp.others_product(flat, 0).conj()).reshape(tuple(self.shape))


@operator(
    kernel=reduction.prod, namespace=None, method=False, node="ProdBackward1", function_name="prod", out_decides=True
)
class prod_dim:
    """The product over one dimension."""

    def forward(self: Array, dim, keepdim=False, *, dtype=None): ...

    def grad_self(grad, self, result, dim, keepdim, xp):
        if len(self.shape) == 0:
            return grad
        return xp.kept(grad, tuple(self.shape), dim, keepdim) * xp.others_product(self, dim).conj()


@public(
    method=True,
    on_arrays=reduction.prod,
    forms=(
        "Tensor input, *, torch.dtype dtype = None",
        f"Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, {OUT[3:]}",
    ),
)
def prod(input=MISSING, dim=MISSING, keepdim=MISSING, *, dtype=None, out=None, **names):
    """The product over dimension `dim`, or of all elements; of integers in int64."""
    if names:
        return with_numpy_names(prod, names, input, dim, _given(dim, keepdim), dtype=dtype, out=out)
    if dtype is not None:
        dtype = element_type("prod", dtype)
    if dim is MISSING:
        if keepdim is not MISSING:
            raise invalid_arguments("prod", input, keepdim=keepdim)
        return prod_all(input, dtype=dtype, out=out)
    if type(dim) is not int:
        raise invalid_arguments("prod", dim)
    return prod_dim(input, dim, keepdim is not MISSING and keepdim, dtype=dtype, out=out)


# --- extrema --------------------------------------------------------------------------------------------------


def _shared(grad, self, result, dim, keepdim, xp, nan_is_one=True):
    """The gradient shared equally among the elements that equal the extremum, which may be nan."""
    shape = tuple(self.shape)
    equal = self == xp.kept(result, shape, dim, keepdim)
    if nan_is_one:
        equal = equal | (
            (self != self) & (xp.kept(result, shape, dim, keepdim) != xp.kept(result, shape, dim, keepdim))
        )
    share = xp.kept(grad, shape, dim, keepdim) / xp.sum(equal, dim, True)
    return share * equal


@operator(same_out=AMAX)
class amax:
    """The largest elements over `dim` (one, several, or all); ties share the gradient equally."""

    def forward(self: Array, dim: Dims = (), keepdim: Bool = False):
        return reduction.amax(self, dim, keepdim)

    def grad_self(grad, self, result, dim, keepdim, xp):
        return _shared(grad, self, result, None if dim == () else dim, keepdim, xp, nan_is_one=False)


@operator(same_out=AMAX)
class amin:
    """The smallest elements over `dim` (one, several, or all); ties share the gradient equally."""

    def forward(self: Array, dim: Dims = (), keepdim: Bool = False):
        return reduction.amin(self, dim, keepdim)

    def grad_self(grad, self, result, dim, keepdim, xp):
        return _shared(grad, self, result, None if dim == () else dim, keepdim, xp, nan_is_one=False)


@operator(
    kernel=Kernel(reduction.largest, quiet=True),
    namespace=None,
    method=False,
    node="MaxBackward1",
    function_name="max",
    batch=_batch_of_all("amax"),
)
class max_all:
    """The largest of all elements."""

    def forward(self: Array): ...

    def grad_self(grad, self, result, xp):
        return _shared(grad, self, result, None, False, xp)


@operator(
    kernel=Kernel(reduction.smallest, quiet=True),
    namespace=None,
    method=False,
    node="MinBackward1",
    function_name="min",
    batch=_batch_of_all("amin"),
)
class min_all:
    """The smallest of all elements."""

    def forward(self: Array): ...

    def grad_self(grad, self, result, xp):
        return _shared(grad, self, result, None, False, xp)


@operator(
    namespace=None,
    method=(),
    node="MaxBackward0",
    function_name="max",
    overloaded=True,
    same_out=STRICT,
    outputs=("values", "indices"),
    returns=return_type("max", "values", "indices"),
)
class max_dim:
    """The largest elements along one dimension, and where they are."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim: Int, keepdim: Bool = False):
        return reduction.max_with_indices(self, dim, keepdim)

    def grad_self(grads, self_shape, indices, dim, keepdim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


@operator(
    namespace=None,
    method=(),
    node="MinBackward0",
    function_name="min",
    overloaded=True,
    same_out=STRICT,
    outputs=("values", "indices"),
    returns=return_type("min", "values", "indices"),
)
class min_dim:
    """The smallest elements along one dimension, and where they are."""

    nondifferentiable = ("indices",)

    def forward(self: Array, dim: Int, keepdim: Bool = False):
        return reduction.min_with_indices(self, dim, keepdim)

    def grad_self(grads, self_shape, indices, dim, keepdim, xp):
        return xp.value_selecting_backward(grads[0], self_shape, dim, indices, keepdim)


@operator(namespace=None, method=False, batch="expanded")
class value_selecting_backward:
    """Zeros of `shape` with `input` at the `indices` along `dim` that a selection picked."""

    def forward(self: Array, shape, dim, indices: Array, keepdim):
        return scan.value_selecting_backward(self, shape, dim, indices, keepdim)

    def grad_self(grad, dim, indices, keepdim, xp):
        return xp.selected_values(grad, dim, indices, keepdim)


@operator(namespace=None, method=False, batch="expanded")
class selected_values:
    """The elements at `indices` along `dim`."""

    def forward(self: Array, dim, indices: Array, keepdim):
        return scan.selected_values(self, dim, indices, keepdim)

    def grad_self(grad, self_shape, dim, indices, keepdim, xp):
        return xp.value_selecting_backward(grad, self_shape, dim, indices, keepdim)


def _extremum(name, whole, along, elementwise):
    def function(input=MISSING, dim=MISSING, keepdim=False, *, out=None, **names):
        if names:
            other = names.pop("other", None) if "other" in names else names.pop("x2", None)
            if isinstance(other, Tensor):
                dim = other
            elif other is not None:
                raise invalid_arguments(name, input, other)
            if names:
                return with_numpy_names(function, names, input, dim, keepdim, out=out)
        if not isinstance(input, Tensor) and dim is not MISSING:
            raise invalid_arguments(name, input, dim)
        if dim is MISSING:
            return whole(input, out=out)
        if isinstance(dim, Tensor):
            return elementwise()(input, dim, out=out)
        return along(input, dim, keepdim, out=out)

    function.__name__ = function.__qualname__ = name
    word = "largest" if name == "max" else "smallest"
    function.__doc__ = (
        f"The {word} of all elements; with `dim`, a named tuple of the {word} along it and their indices; with a second tensor, "
        f"the elementwise {name}imum.\n\n    >>> import adjoint as torch\n    >>> torch.tensor([1, 5, 3]).{name}()\n"
        f"    tensor({5 if name == 'max' else 1})\n    "
    )
    return public(method=True, forms=_EXTREMUM)(function)


max = _extremum("max", max_all, max_dim, lambda: tensors.maximum)
min = _extremum("min", min_all, min_dim, lambda: tensors.minimum)


@operator(
    outputs=("min", "max"), returns=return_type("aminmax", "min", "max"), same_out=STRICT, batch=_batch_of_position
)
class aminmax:
    """The smallest and the largest elements along `dim`, or of all."""

    def forward(self: Array, *, dim: Int = None, keepdim: Bool = False):
        return reduction.aminmax(self, dim, keepdim)

    def grad_self(grads, self, min, max, dim, keepdim, xp):
        parts = [
            _shared(grad, self, extremum, dim, keepdim, xp)
            for grad, extremum in zip(grads, (min, max), strict=True)
            if grad is not None
        ]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@operator(same_out=STRICT, batch=_batch_of_position)
class argmax:
    """The index of the first largest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False):
        return reduction.argmax(self, dim, keepdim)


@operator(same_out=STRICT, batch=_batch_of_position)
class argmin:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False):
        return reduction.argmin(self, dim, keepdim)


# --- truth ----------------------------------------------------------------------------------------------------


@operator(same_out=TRUTH, forms=_TRUTH)
class all:
    """Whether all elements are nonzero, along `dim` or of all; bool, of uint8 uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False):
        return reduction.all(self, dim, keepdim)


@operator(same_out=TRUTH, forms=_TRUTH)
class any:
    """Whether any element is nonzero, along `dim` or of all; bool, of uint8 uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False):
        return reduction.any(self, dim, keepdim)


@operator(out=False)
class count_nonzero:
    """How many elements are not 0, along `dim` or of all."""

    def forward(self: Array, dim: Dims = None):
        return reduction.count_nonzero(self, dim)
