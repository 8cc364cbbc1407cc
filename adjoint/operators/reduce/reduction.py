"""Reductions: sums, products, extrema, moments and norms over some dimensions or all."""

from __future__ import annotations

import math

from ... import dtypes
from ...codegen.kernel import SMALL, Kernel
from ...dispatch.annotations import Array, Bool, Dims, Dtype, Int, Number
from ...dispatch.arguments import MISSING, invalid_arguments
from ...dispatch.decorators import operator, public, tensors, with_numpy_names
from ...dispatch.out import AMAX, STRICT, TRUTH, stored
from ...dispatch.return_types import return_type
from ...kernels.reduce import moments, reduction, scan
from ...kernels.shape import view as view_kernels
from ...tape.saved import unpack
from ...tensor import Tensor, wrap_dim


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


# --- sum and mean ---------------------------------------------------------------------------------------------


@operator(
    kernel=Kernel(reduction.sum, small=reduction.total, quiet=SMALL),
    namespace=None,
    method=False,
    node="SumBackward0",
    called="sum",
    tangent="linear",
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
    called="sum",
    out_decides=True,
    overloaded=True,
    tangent="linear",
)
class sum_dim:
    """The sum over some dimensions."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype=None): ...

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad, self_shape, dim, keepdim)


def _given(dim, keepdim):
    """`keepdim` as it counts for the arguments given: after a `dim` it has a default."""
    return False if keepdim is MISSING and dim is not MISSING else keepdim


@public(method=True, on_arrays=reduction.sum)
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
    called="mean",
    tangent="linear",
)
class mean_all:
    """The mean of all elements."""

    shown = {"self_sym_numel": _element_count}

    def forward(self: Array, *, dtype=None): ...

    def grad_self(grad, self_shape, xp):
        return xp.expand(grad / (element_count(self_shape, None) or 1), self_shape)


@operator(
    kernel=reduction.mean,
    namespace=None,
    method=(),
    node="MeanBackward1",
    called="mean",
    out_decides=True,
    overloaded=True,
    tangent="linear",
)
class mean_dim:
    """The mean over some dimensions."""

    shown = {"self_sym_numel": _element_count}

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype=None): ...

    def grad_self(grad, self_shape, dim, keepdim, xp):
        return xp.spread(grad, self_shape, dim, keepdim) / element_count(self_shape, dim)


@public(method=True, on_arrays=reduction.mean)
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


@operator(kernel=reduction.prod, namespace=None, method=False, node="ProdBackward0", called="prod")
class prod_all:
    """The product of all elements."""

    def forward(self: Array, *, dtype=None): ...

    def grad_self(grad, self, result, xp):
        if len(self.shape) == 0:
            return grad
        flat = self.reshape((int(math.prod(self.shape)),))
        return (grad * xp.others_product(flat, 0).conj()).reshape(tuple(self.shape))


@operator(kernel=reduction.prod, namespace=None, method=False, node="ProdBackward1", called="prod", out_decides=True)
class prod_dim:
    """The product over one dimension."""

    def forward(self: Array, dim, keepdim=False, *, dtype=None): ...

    def grad_self(grad, self, result, dim, keepdim, xp):
        if len(self.shape) == 0:
            return grad
        return xp.kept(grad, tuple(self.shape), dim, keepdim) * xp.others_product(self, dim).conj()


@public(method=True, on_arrays=reduction.prod)
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


@operator(kernel=Kernel(reduction.largest, quiet=True), namespace=None, method=False, node="MaxBackward1", called="max")
class max_all:
    """The largest of all elements."""

    def forward(self: Array): ...

    def grad_self(grad, self, result, xp):
        return _shared(grad, self, result, None, False, xp)


@operator(
    kernel=Kernel(reduction.smallest, quiet=True), namespace=None, method=False, node="MinBackward1", called="min"
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
    called="max",
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
    called="min",
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


@operator(namespace=None, method=False)
class value_selecting_backward:
    """Zeros of `shape` with `input` at the `indices` along `dim` that a selection picked."""

    def forward(self: Array, shape, dim, indices: Array, keepdim):
        return scan.value_selecting_backward(self, shape, dim, indices, keepdim)

    def grad_self(grad, dim, indices, keepdim, xp):
        return xp.selected_values(grad, dim, indices, keepdim)


@operator(namespace=None, method=False)
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
    return public(method=True)(function)


max = _extremum("max", max_all, max_dim, lambda: tensors.maximum)
min = _extremum("min", min_all, min_dim, lambda: tensors.minimum)


@operator(outputs=("min", "max"), returns=return_type("aminmax", "min", "max"), same_out=STRICT)
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


@operator(same_out=STRICT)
class argmax:
    """The index of the first largest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False):
        return reduction.argmax(self, dim, keepdim)


@operator(same_out=STRICT)
class argmin:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""

    def forward(self: Array, dim: Int = None, keepdim: Bool = False):
        return reduction.argmin(self, dim, keepdim)


# --- truth ----------------------------------------------------------------------------------------------------


@operator(same_out=TRUTH)
class all:
    """Whether all elements are nonzero, along `dim` or of all; bool, of uint8 uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False):
        return reduction.all(self, dim, keepdim)


@operator(same_out=TRUTH)
class any:
    """Whether any element is nonzero, along `dim` or of all; bool, of uint8 uint8."""

    def forward(self: Array, dim: Dims = None, keepdim: Bool = False):
        return reduction.any(self, dim, keepdim)


@operator(out=False)
class count_nonzero:
    """How many elements are not 0, along `dim` or of all."""

    def forward(self: Array, dim: Dims = None):
        return reduction.count_nonzero(self, dim)


# --- moments --------------------------------------------------------------------------------------------------


def _variance_gradient(grad, self, dim, correction, keepdim, xp):
    """The gradient of the variance: twice the deviation from the mean, over the degrees of freedom."""
    shape = tuple(self.shape)
    degrees = element_count(shape, dim) - (1 if correction is None else correction)
    deviation = self - xp.mean(self, dim, True)
    factor = 2 / degrees if degrees > 0 else float("inf") if degrees == 0 else 2 / degrees
    return (factor * xp.kept(grad, shape, dim, keepdim)) * deviation


def _over_twice(grad, deviation, xp):
    """`grad / (2 * deviation)`, by the slope of the root that it is; where it is 0, that is 0 in any order."""
    zero = deviation == 0
    return xp.where(zero, grad * 0, grad / (2 * xp.where(zero, deviation * 0 + 1, deviation)))


def _no_complex_moment(result, given, inputs):
    """Moments of real numbers, if there are several, are not computed into a complex tensor."""
    if given.is_complex and not inputs[0].dtype.is_complex and result.size > 1:
        raise NotImplementedError(f"\"std_cpu\" not implemented for '{given.scalar_type}'")


@operator(namespace=None, method=(), node="VarBackward0", called="var", overloaded=True, same_out=_no_complex_moment)
class var_correction:
    """The variance with a correction to the degrees of freedom."""

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False):
        return moments.var(self, dim, 1 if correction is None else correction, keepdim)

    def grad_self(grad, self, dim, correction, keepdim, xp):
        return _variance_gradient(grad, self, dim, correction, keepdim, xp)


@operator(namespace=None, method=(), node="StdBackward0", called="std", overloaded=True, same_out=_no_complex_moment)
class std_correction:
    """The standard deviation with a correction to the degrees of freedom."""

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False):
        return moments.std(self, dim, 1 if correction is None else correction, keepdim)

    def grad_self(grad, self, result, dim, correction, keepdim, xp):
        scaled = _over_twice(grad, result, xp)
        return _variance_gradient(scaled, self, dim, correction, keepdim, xp)


@operator(
    namespace=None, method=(), node="VarMeanBackward0", called="var_mean", overloaded=True, outputs=("var", "mean")
)
class var_mean_correction:
    """Variance and mean."""

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False):
        return moments.var_mean(self, dim, 1 if correction is None else correction, keepdim)

    def grad_self(grads, self, dim, correction, keepdim, xp):
        total = None
        if grads[0] is not None:
            total = _variance_gradient(grads[0], self, dim, correction, keepdim, xp)
        return _plus_mean(total, grads[1], self, dim, keepdim, xp)


@operator(
    namespace=None, method=(), node="StdMeanBackward0", called="std_mean", overloaded=True, outputs=("std", "mean")
)
class std_mean_correction:
    """Standard deviation and mean."""

    shown = {"std": None, "result0": lambda node: unpack(node, "std")}

    def forward(self: Array, dim: Dims = None, *, correction: Number = None, keepdim: Bool = False):
        return moments.std_mean(self, dim, 1 if correction is None else correction, keepdim)

    def grad_self(grads, self, std, dim, correction, keepdim, xp):
        total = None
        if grads[0] is not None:
            scaled = _over_twice(grads[0], std, xp)
            total = _variance_gradient(scaled, self, dim, correction, keepdim, xp)
        return _plus_mean(total, grads[1], self, dim, keepdim, xp)


def _plus_mean(total, grad, self, dim, keepdim, xp):
    if grad is None:
        return total
    shape = tuple(self.shape)
    of_mean = xp.spread(xp.kept(grad, shape, dim, keepdim), shape, dim, True) / element_count(shape, dim)
    return of_mean if total is None else total + of_mean


def _moment_function(name, target, doc):
    def function(input=MISSING, dim=MISSING, unbiased=MISSING, keepdim=False, *, correction=MISSING, out=None, **names):
        if names:
            return with_numpy_names(function, names, input, dim, unbiased, keepdim, correction=correction, out=out)
        if type(dim) is bool and unbiased is MISSING:
            dim, unbiased = MISSING, dim
        if type(dim) is list:
            dim = tuple(dim)
        if unbiased is not MISSING:
            if correction is not MISSING or type(unbiased) is not bool:
                raise invalid_arguments(name, dim, unbiased)
            correction = int(unbiased)
        elif correction is MISSING:
            correction = None if dim is MISSING else 1
        keywords = {} if out is None else {"out": out}
        return target(input, None if dim is MISSING else dim, correction=correction, keepdim=keepdim, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(method=name in ("var", "std"))(function)


_ABOUT = " over `dim`, or of all elements; `correction` (1, or 0 if not `unbiased`) is subtracted from the number of elements."
var = _moment_function("var", var_correction, "The variance" + _ABOUT)
std = _moment_function("std", std_correction, "The standard deviation" + _ABOUT)
var_mean = _moment_function("var_mean", var_mean_correction, "Variance and mean" + _ABOUT)
std_mean = _moment_function("std_mean", std_mean_correction, "Standard deviation and mean" + _ABOUT)


# --- norms ----------------------------------------------------------------------------------------------------


@operator(namespace=None, method=(), same_out=STRICT)
class linalg_vector_norm:
    """The `ord`-norm of the elements over `dim`."""

    def forward(self: Array, ord: Number = 2, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
        return moments.norm(self, ord, dim, keepdim, dtype and dtype.numpy)

    def grad_self(grad, self, result, ord, dim, keepdim, xp):
        return norm_gradient(grad, self, result, ord, dim, keepdim, xp)


def norm_gradient(grad, self, result, ord, dim, keepdim, xp):
    """The gradient of the norm of order `ord` over `dim`; at a norm of 0, which has a corner there, it is 0."""
    shape = tuple(self.shape)
    dim = None if dim == () else dim
    grad, norm = xp.kept(grad, shape, dim, keepdim), xp.kept(result, shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return xp.sgn(self) * grad
    if ord == 2:
        return self * (grad * xp.where(norm == 0, norm * 0, 1 / norm))
    size = xp.abs(self)
    if ord in (float("inf"), float("-inf")):
        equal = (size == norm) | ((size != size) & (norm != norm))
        return xp.sgn(self) * (equal * (grad / xp.sum(equal, dim, True)))
    if ord < 1:
        scaled = xp.sgn(self) * xp.where(size == 0, size * 0, xp.pow_number(size, ord - 1))
        return scaled * (grad / xp.pow_number(norm, ord - 1))
    zero = norm == 0
    share = grad / xp.pow_number(xp.where(zero, xp.ones_like(norm), norm), ord - 1)  # a number, also its derivatives
    if ord < 2:
        scaled = xp.sgn(self) * xp.pow_number(size, ord - 1)
        return xp.where(zero, scaled * 0, scaled * share)
    return self * xp.pow_number(size, ord - 2) * xp.where(zero, grad * 0, share)


@public(method=True)
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The `p`-norm over `dim`, or of all elements: a number, `"fro"` (2) or `"nuc"`.

    >>> import adjoint as torch
    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if isinstance(p, str) and p != "fro":
        result = tensors.linalg_matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
        return stored(
            "linalg_matrix_norm",
            result,
            out,
            "linalg.matrix_norm expected out tensor dtype {wanted} but got: {given}",
            recorded=True,
        )
    return linalg_vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)
