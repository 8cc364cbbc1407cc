"""Views with another shape or another order of the dimensions.

The views share storage and version counter with the tensor.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._runtime.tracebacks import warn
from ...codegen.kernel import Kernel
from ...device import contiguous_format
from ...dispatch.annotations import Array, Int, Ints
from ...dispatch.arguments import MISSING, invalid_arguments, is_of_type, require, wrong_type
from ...dispatch.calls import call_of
from ...dispatch.decorators import internal, named, operator, public, tensors
from ...dispatch.leaves import as_operator
from ...dispatch.sequential import sequential_fallback
from ...kernels.runtime.sparse_array import SparseArray
from ...kernels.shape import view as kernels
from ...tape import modes
from ...tape.aliases import detached
from ...tape.inference_tensors import mark_inference
from ...tape.versions import shared_counter
from ...tensor import Tensor, wrap_dim
from ..declaring.formulas import same


def sizes_of(sizes: tuple[Any, ...], names: dict[str, Any], function: str, name: str = "size") -> tuple[int, ...]:
    """Return sizes given separately, as one sequence, or by a keyword in `names`. Raise TypeError for anything else."""
    if names and (sizes or len(names) > 1 or name not in names):
        raise _unexpected(sizes, names, function, name)
    if names:
        return checked_sizes(names[name], function, name, None)
    if not sizes:
        raise _unexpected(sizes, names, function, name)
    if len(sizes) == 1 and type(sizes[0]) is not int:
        one_by_one = type(sizes[0]) not in (tuple, list) and is_of_type(sizes[0], "Int")
        return checked_sizes(sizes if one_by_one else sizes[0], function, name, 1, one_by_one=one_by_one)
    return checked_sizes(sizes, function, name, 1, one_by_one=True)


def _unexpected(sizes: tuple[Any, ...], names: dict[str, Any], function: str, name: str) -> TypeError:
    """Return the error for unexpected keywords, or for sizes that are given twice."""
    if not sizes and name not in names:
        return TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    unknown = next((one for one in names if one != name), None)
    if unknown is None:
        return TypeError(f"{function}() got multiple values for argument '{name}'")
    return TypeError(f"{function}() got an unexpected keyword argument '{unknown}'")


def checked_sizes(
    sizes: Any, function: str, name: str, position: int | None, *, one_by_one: bool = False
) -> tuple[int, ...]:
    """Return sizes as a tuple of integers. Errors name the position of the argument (None for a keyword argument)."""
    if not isinstance(sizes, (tuple, list)):
        raise _no_sizes(sizes, function, name, position)
    for size in sizes:
        if type(size) is not int:
            return tuple(
                [_whole(size, index, sizes, function, name, position, one_by_one) for index, size in enumerate(sizes)]
            )
    return tuple(sizes)


def _whole(size, index, sizes, function, name, position, one_by_one):
    try:
        if isinstance(size, bool):
            raise TypeError
        return size.__index__()
    except (AttributeError, TypeError):
        given = size if one_by_one and index == 0 else sizes
        raise _no_sizes(given, function, name, position, index) from None


def _no_sizes(given: Any, function: str, name: str, position: int | None, wrong: int | None = None) -> TypeError:
    by_keyword = position is None or name in call_of(function).named
    return wrong_type(function, name, "" if by_keyword else f" (position {position})", "Ints", given, wrong)


# --- another shape --------------------------------------------------------------------------------------------


def _batch_reshaped(op, batch, value, size):
    if not value._array.size:
        return None
    first = batch.first(value)
    size = (first.shape[0], *size)
    return first.view(size) if op.view else first.reshape(size)


def _reshaped_copy(grad, self_shape, xp):
    """Return the gradient with another shape. If a copy is needed, several threads copy the elements."""
    return xp.reshape(grad, self_shape)


@internal(kernels.view, view=True, node="ViewBackward0", batch=_batch_reshaped, aten_name="view")
class view_shape:
    """`input` with another shape on the same memory."""

    def forward(self: Array, size): ...

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)

    large_grad_self = _reshaped_copy


@internal(kernels.view, view=True, batch=_batch_reshaped, aten_name="_reshape_alias")
class reshape_alias:
    """`input` with another shape, on the same memory. `reshape` uses this for views of tensors that are not contiguous."""

    def forward(self: Array, size): ...

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)

    large_grad_self = _reshaped_copy


@internal(
    Kernel(kernels.with_shape, quiet=True),
    tangent="linear",
    batch=_batch_reshaped,
    aten_name="_unsafe_view",
    narrow="moves",
)
class unsafe_view:
    """`input` with another shape, on the same memory. No other code may use `input` later."""

    def forward(self: Array, size): ...

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)

    large_grad_self = _reshaped_copy


@public(namespace=None, method=("view",), separate_sizes=view_shape, forms=("torch.dtype dtype", "tuple of ints size"))
def view(input, /, *size, dtype=None, **names):
    """The tensor with another shape, or its bytes as another dtype, on the same memory.

    >>> import adjoint as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if dtype is not None:
        names["dtype"] = dtype
    if len(size) + len(names) == 1:
        (only,) = size or (dtype,)
        if isinstance(only, dtypes.dtype):
            return view_dtype(input, only)
    try:
        return view_shape(input, sizes_of(size, names, "view"))
    except TypeError:
        raise invalid_arguments("view", *size, **dict(sorted(names.items()))) from None


@sequential_fallback
def view_dtype(input, dtype):
    """The bytes of `input` read as another dtype. As in PyTorch, the result is no view and not recorded."""
    return as_operator(read_as, input, dtype)


def read_as(input, dtype):
    """Return the bytes of a tensor as a tensor of another dtype."""
    if input.is_conj() or input.is_neg():
        what = "conjugate view tensors" if input.is_conj() else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")
    result = detached(input, [0, None] if input.is_inference() else shared_counter(input))
    result._array = kernels.view_dtype(input._array, dtype.numpy)
    if modes.STATE.inference:
        mark_inference(result)
    return result


def _other(name, other, x2):
    """Return the tensor that gives the shape, under either of its names."""
    other = x2 if other is MISSING else other
    if other is MISSING:
        raise TypeError(f'{name}() missing 1 required positional arguments: "other"')
    require("Tensor", other, name, "other", 1)
    return other


@public(namespace=None, method=("view_as",))
def view_as(input, /, other=MISSING, *, x2=MISSING):
    """The tensor viewed with the shape of `other`."""
    return view_shape(input, _other("view_as", other, x2)._array.shape)


@public(on_arrays=kernels.reshape, numpy_names=True)
def reshape(input, shape):
    """The tensor with another shape: a view if the strides allow it, otherwise a copy.

    >>> import adjoint as torch
    >>> torch.arange(4).reshape(2, 2).t().reshape(4)
    tensor([0, 2, 1, 3])
    """
    return reshaped(input, checked_sizes(shape, "reshape", "shape", 2))


@public(namespace=None, method=("reshape",), separate_sizes=view_shape, contiguous=True)
def reshape_method(input, /, *shape, **names):
    """The method of `adjoint.reshape`, with separate sizes or a sequence."""
    return reshaped(input, sizes_of(shape, names, "reshape", "shape"))


def reshaped(input, shape):
    """The tensor with the shape `shape`, a tuple, as a view if the strides allow it, otherwise as a copy."""
    array = input._array
    if array.flags.c_contiguous:
        return view_shape(input, shape)
    if type(array) is SparseArray:
        if modes.STATE.dense_if_refused:
            return view_shape(input.to_dense(), shape)
        raise RuntimeError("reshape is not implemented for sparse tensors")
    shape = kernels.infer_size(shape, array.size)
    if kernels.view_strides(array.shape, array.strides, shape) is not None:
        return reshape_alias(input, shape)
    return unsafe_view(input.clone(memory_format=contiguous_format), shape)


@public(namespace=None, method=("reshape_as",))
def reshape_as(input, /, other=MISSING, *, x2=MISSING):
    """The tensor reshaped to the shape of `other`."""
    return reshaped(input, _other("reshape_as", other, x2)._array.shape)


@public(method=True, numpy_names=True)
def flatten(input, start_dim=0, end_dim=-1):
    """The tensor with the dimensions from `start_dim` to `end_dim` flattened into one."""
    array = input._array
    shape = array.shape
    if start_dim == 0 and end_dim == -1 and len(shape) > 1 and array.size and array.flags.c_contiguous:
        return view_shape(input, (array.size,))
    ndim = len(shape)
    for position, (name, dim) in enumerate((("start_dim", start_dim), ("end_dim", end_dim)), start=1):
        if type(dim) is not int and not is_of_type(dim, "Int"):
            where = call_of("flatten").where(name, position, (input, start_dim, end_dim))
            raise wrong_type("flatten", name, where, "Int", dim)
    first, last = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return reshaped(input, (1,))
    if first == last:
        return input
    count = 1
    for size in shape[first : last + 1]:
        count *= size
    return reshaped(input, (*shape[:first], count, *shape[last + 1 :]))


@public(method=True, numpy_names=True)
def unflatten(input, dim, sizes):
    """The tensor with dimension `dim` split into several dimensions of the given sizes. One size may be -1."""
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    sizes = checked_sizes(sizes, "unflatten", "sizes", 2)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        sizes = kernels.infer_size(sizes, shape[dim])
    except RuntimeError as error:
        if not str(error).startswith("shape "):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        ) from None
    return view_shape(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))


@public(method=True, numpy_names=True)
def ravel(input):
    """The tensor with one dimension, as a view if it is contiguous."""
    return view_shape(input.contiguous(), (-1,)) if input._array.size else view_shape(input.contiguous(), (0,))


@operator(view=True, inplace=True, kernel=kernels.unsqueeze, batch="result dims", sparse="shapes.unsqueeze")
class unsqueeze:
    """The tensor with a dimension of size 1 inserted at `dim`."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, dim, xp):
        return xp.squeeze_dim(grad, dim)


def _squeezing(kernel, number, **options):
    """Declare one of the operators that `squeeze` chooses among."""
    names: dict[str, Any] = {"namespace": None, "method": (), "aten_name": "squeeze", "function_name": "squeeze"}
    nodes: dict[str, Any] = {"node": f"SqueezeBackward{number}, SqueezeBackward{number + 3}"}
    return operator(kernel=kernel, view=True, inplace=True, **names, **nodes, **options)


@_squeezing(kernels.squeeze_all, 0)
class squeeze_all:
    """The tensor without its dimensions of size 1."""

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)

    def batch(op, batch, value):
        dims = tuple(dim + 1 for dim, size in enumerate(value._array.shape) if size == 1)
        return tensors.squeeze_dims(batch.first(value), dims)


@_squeezing(kernels.squeeze_dim, 1, aten="default, dim")
class squeeze_dim:
    """The tensor without dimension `dim` if its size is 1."""

    def forward(self: Array, dim: Int): ...

    def grad_self(grad, self_shape, dim, xp):
        return grad if grad.ndim == len(self_shape) else xp.unsqueeze(grad, dim)


@_squeezing(kernels.squeeze, 2, aten="default, dims")
class squeeze_dims:
    """The tensor without the dimensions in `dim` whose size is 1."""

    def forward(self: Array, dim: Ints): ...

    def grad_self(grad, self_shape, dim):
        return grad.reshape(self_shape)


@public(method=True, forms=("Tensor input", "Tensor input, int dim", "Tensor input, tuple of ints dim"))
def squeeze(input=None, dim=None, **names):
    """The tensor without dimensions of size 1. With `dim`, all other dimensions remain."""
    if names:
        input, dim = names.pop("x", input), names.pop("axis", dim)
        if names:
            raise invalid_arguments("squeeze", input, dim)
    if dim is None:
        return squeeze_all(input)
    return squeeze_dim(input, dim) if type(dim) is int else squeeze_dims(input, _several(input, dim))


@public(namespace=None, method=("squeeze_",))
def squeeze_(input, /, dim=None):
    """`squeeze`, in place."""
    if dim is None:
        return squeeze_all.inplace(input)
    return squeeze_dim.inplace(input, dim) if type(dim) is int else squeeze_dims.inplace(input, _several(input, dim))


def _several(input, dim):
    """Return the dimensions as a tuple. A single dimension may be a NumPy integer."""
    if is_of_type(dim, "Int"):
        return (dim.__index__(),)
    if not isinstance(dim, (tuple, list)):
        raise invalid_arguments("squeeze", input, dim)
    return tuple(dim)


@internal(kernels.expand, view=True)
class expand:
    """The tensor with dimensions of size 1 repeated to the given sizes, without copying."""

    def forward(self: Array, size): ...

    def grad_self(grad, self_shape, xp):
        return xp.sum_to_size(grad, self_shape)

    def batch(op, batch, value, size):
        return batch.aligned(value, len(size)).expand((batch.size, *size))


@public(namespace=None, method=("expand",), separate_sizes=expand)
def expand_method(input, /, *size, implicit: bool = False, **names):
    """The tensor with dimensions of size 1 repeated to the given sizes, without copying. -1 keeps a size."""
    return expand(input, sizes_of(size, names, "expand"))


@public(namespace=None, method=("expand_as",))
def expand_as(input, /, other=MISSING, *, x2=MISSING):
    """The tensor expanded to the shape of `other`."""
    return expand(input, _other("expand_as", other, x2)._array.shape)


@public(numpy_names=True)
def broadcast_to(input, size):
    """The tensor broadcast to `size` without copying."""
    return expand(input, checked_sizes(size, "broadcast_to", "size", 2))


@public(namespace=None, method=("broadcast_to",))
def broadcast_to_method(input, /, *size, **names):
    """The tensor broadcast to `size` without copying."""
    return expand(input, sizes_of(size, names, "broadcast_to"))


# --- another order --------------------------------------------------------------------------------------------


@operator(view=True, inplace=True, alias=("swapdims",), kernel=kernels.swapaxes, sparse="shapes.transpose")
class transpose:
    """The tensor with dimensions `dim0` and `dim1` exchanged."""

    def forward(self: Array, dim0: Int, dim1: Int): ...

    def grad_self(grad, dim0, dim1, xp):
        return xp.transpose(grad, dim0, dim1)

    def batch(op, batch, value, *dims):
        first, dims = batch.first(value), batch.shifted(dims, value._array.ndim)
        return op.apply(first, *dims) if value._array.ndim else first


@public(method=True, numpy_names=True)
def swapaxes(input, axis0, axis1):
    """The tensor with dimensions `axis0` and `axis1` exchanged. This is another name of `transpose`."""
    return transpose(input, axis0, axis1)


@public(namespace=None, method=True)
def swapaxes_(input, axis0, axis1):
    """`swapaxes`, in place."""
    return transpose.inplace(input, axis0, axis1)


@operator(view=True, inplace=True, kernel=kernels.t, sparse="shapes.t")
class t:
    """The transpose of a matrix. A vector is returned unchanged."""

    def grad_self(grad, xp):
        return xp.t(grad)

    def batch(op, batch, value):
        first = batch.first(value)
        if value._array.ndim > 2:
            return None  # the fallback raises the error for each example
        return first.transpose(1, 2) if value._array.ndim == 2 else tensors.alias(first)


@internal(kernels.permute, view=True, sparse="shapes.permute")
class permute:
    """The tensor with its dimensions in another order."""

    def forward(self: Array, dims): ...

    def grad_self(grad, dims, xp):
        return xp.permute(grad, kernels.inverse_permutation(dims))

    def batch(op, batch, value, dims):
        return op.apply(batch.first(value), (0, *batch.shifted(tuple(dims), value._array.ndim)))


@public(name="permute", numpy_names=True)
def permute_function(input, dims):
    """The tensor with its dimensions in another order, as a view.

    >>> import adjoint as torch
    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    return permute(input, checked_sizes(dims, "permute", "dims", 2))


@public(namespace=None, method=("permute",), separate_sizes=permute)
def permute_method(input, /, *dims, **names):
    """The tensor with its dimensions in another order, given as separate arguments or as a sequence."""
    return permute(input, sizes_of(dims, names, "permute", "dims"))


@public(
    method=True,
    alias=("moveaxis",),
    numpy_names=True,
    forms=(
        "Tensor input, int source, int destination",
        "Tensor input, tuple of ints source, tuple of ints destination",
    ),
)
def movedim(input, source, destination):
    """The tensor with the dimensions `source` moved to the positions `destination`. The other dimensions keep their order."""
    ndim = input._array.ndim
    if type(source) is type(destination) is int and ndim:
        dim, place = wrap_dim(source, ndim), wrap_dim(destination, ndim)
        order = list(range(ndim))
        order.insert(place, order.pop(dim))
        return permute(input, tuple(order))
    if is_of_type(source, "Int") and is_of_type(destination, "Int"):
        source, destination = (source,), (destination,)
    elif not isinstance(source, (tuple, list)) or not isinstance(destination, (tuple, list)):
        raise invalid_arguments("movedim", input, source, destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims "
            f"as destination ({list(destination)} dims)"
        )
    taken, places = _unique(source, ndim, "source"), _unique(destination, ndim, "destination")
    if not ndim:
        return alias(input)
    order = [dim for dim in range(ndim) if dim not in taken]
    for place, dim in sorted(zip(places, taken, strict=True)):
        order.insert(place, dim)
    return permute(input, tuple(order))


def _unique(dims, ndim, name):
    wrapped = [wrap_dim(dim.__index__(), ndim) for dim in dims]
    if len(wrapped) == 1:
        return wrapped
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    return wrapped


@internal(kernels.alias, view=True, batch="leading", sparse="shapes.itself")
class alias:
    """The tensor itself, as a view."""

    grad_self = same


def _reversed_dims(input):
    ndim = input._array.ndim
    if ndim == 2:
        return permute(input, (1, 0))
    if ndim == 0:
        warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    else:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permute(input, tuple(range(ndim - 1, -1, -1)))


def _matrix_transpose(input, name="mT", instead="This function is the identity in these cases."):
    if input._array.ndim == 0:
        owner = "" if name.endswith(")") else "Tensor."
        warn(f"{owner}{name} is deprecated on 0-D tensors. {instead}")
        return input
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


def _matrix_adjoint(input):
    return _conjugated(_matrix_transpose(input, "mH", "Consider using x.conj()."))


@public(method=True, numpy_names=True)
def adjoint(input):
    """The conjugate of the matrix transpose."""
    return _conjugated(_matrix_transpose(input, "adjoint()", "Consider using x.conj()."))


def _conjugated(tensor):
    return tensor.conj() if tensor._array.dtype.kind in "cW" else tensor


def _hermitian(input):
    ndim = input._array.ndim
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    if ndim == 0:
        warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
        return _conjugated(input)
    return _conjugated(transpose(input, -2, -1))


Tensor.T = property(_reversed_dims, doc="The dimensions reversed.")  # type: ignore[assignment, method-assign]
Tensor.mT = property(named(_matrix_transpose, "mT"), doc="The last two dimensions exchanged.")  # type: ignore[assignment, method-assign]
Tensor.H = property(_hermitian, doc="The conjugate transpose of a matrix.")  # type: ignore[assignment, method-assign]
Tensor.mH = property(_matrix_adjoint, doc="The conjugate of the last two dimensions exchanged.")  # type: ignore[assignment, method-assign]
