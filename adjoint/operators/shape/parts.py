"""Views of one or several parts of a tensor: slices, windows, diagonals, equal parts.

The views share storage and version counter with the tensor.
"""

from __future__ import annotations

import itertools

import numpy

from ...dispatch.annotations import Array, Int, Ints
from ...dispatch.arguments import invalid_arguments, is_of_type, wrong_type
from ...dispatch.calls import call_of
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import STRICT
from ...kernels.create import creation
from ...kernels.shape import joining
from ...kernels.shape import view as kernels
from ...tensor import Tensor, wrap_dim
from ..declaring.slopes import with_transpose

END = (1 << 63) - 1
"""The number that PyTorch shows for the end of a slice without an end."""


# --- one part -------------------------------------------------------------------------------------------------


@operator(view=True, kernel=kernels.select, sparse="shapes.select")
@with_transpose(kernels.select_backward, narrow="moves")
class select:
    """The slice at `index` of dimension `dim`. The result lacks this dimension."""

    def forward(self: Array, dim: Int, index: Int): ...


@internal(kernels.slice_dim, view=True)
@with_transpose(kernels.slice_backward, narrow="moves")
class slice:
    """Every `step`th slice of dimension `dim` from `start` up to, but excluding, `end`."""

    saved_display = {
        "start": lambda node: 0 if node.saved_start is None else node.saved_start,
        "end": lambda node: END if node.saved_end is None else node.saved_end,
    }

    def forward(self: Array, dim=0, start=None, end=None, step=1): ...


@public(method=True, numpy_names=True)
def narrow(input, dim, start, length):
    """`length` slices of dimension `dim`, starting at `start`."""
    start = _checked_narrow(input, dim, start, length, "narrow")
    return slice(input, dim, start, start + length, 1)


def _checked_narrow(input, dim, start, length, name):
    array = input._array
    if array.ndim == 0:
        raise RuntimeError(f"{name}() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    if not hasattr(start, "__index__") or not hasattr(length, "__index__"):
        raise invalid_arguments(name, dim, start, length)
    if length < 0:
        raise RuntimeError(f"{name}(): length must be non-negative.")
    size = array.shape[wrap_dim(dim, array.ndim)]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start > size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return start


@operator(view=True, kernel=kernels.diagonal)
@with_transpose(kernels.diagonal_backward, narrow="moves")
class diagonal:
    """The diagonal of dimensions `dim1` and `dim2`, as the last dimension."""

    def forward(self: Array, offset: Int = 0, dim1: Int = 0, dim2: Int = 1): ...


@operator(view=True, namespace=None, kernel=kernels.unfold, method=True)
@with_transpose(kernels.unfold_backward, narrow="halves")
class unfold:
    """Windows of `size` elements along `dimension`, with distance `step`, as a new last dimension."""

    def forward(self: Array, dimension: Int, size: Int, step: Int): ...


# --- several parts --------------------------------------------------------------------------------------------


@operator(view=True, kernel=kernels.unbind, sparse="shapes.unbind")
class unbind:
    """Views of all slices of dimension `dim`."""

    saved_display = {"self_sym_strides": None}

    def forward(self: Array, dim: Int = 0): ...

    def grad_self(grads, self_strides, dim, xp):
        return xp.stack_in_order(_with_zeros(grads, xp), dim, self_strides)


@public(namespace=None, on_arrays=joining.stack_in_order)
def stack_in_order(parts, dim, strides):
    """`stack`. Arrays of numbers get the memory order of an array with these strides."""
    return tensors.stack(parts, dim)


def _with_zeros(grads, xp):
    """Return gradients of one shape, with zeros in place of missing gradients."""
    zeros = None
    if any(grad is None for grad in grads):
        zeros = xp.zeros_like(next(grad for grad in grads if grad is not None))
    return [zeros if grad is None else grad for grad in grads]


@internal(kernels.split, view=True, node="SplitBackward0", aten_name="split")
class split_size:
    """Views of `split_size` slices of dimension `dim` each. The last view may be smaller."""

    def forward(self: Array, split_size, dim=0): ...

    def grad_self(grads, self_shape, split_size, dim, xp):
        return _joined(grads, self_shape, kernels.part_sizes(self_shape[dim], split_size), dim, xp)


@operator(kernel=kernels.split, view=True)
class split_with_sizes:
    """Views with the given numbers of slices of dimension `dim`."""

    def forward(self: Array, split_sizes: Ints, dim: Int = 0): ...

    def grad_self(grads, self_shape, split_sizes, dim, xp):
        return _joined(grads, self_shape, split_sizes, dim, xp)


def _joined(grads, shape, sizes, dim, xp):
    """Join the gradients of neighbouring parts, with zeros in place of missing gradients."""
    like = next(grad for grad in grads if grad is not None)
    dim %= len(shape)
    return xp.cat(
        [
            xp.zeros_like_shape(like, (*shape[:dim], size, *shape[dim + 1 :])) if grad is None else grad
            for grad, size in zip(grads, sizes, strict=True)
        ],
        dim,
    )


@public(namespace=None, on_arrays=creation.zeros_of)
def zeros_like_shape(grad, shape):
    """Zeros of `shape` in the dtype of `grad`."""
    return grad.new_zeros(tuple(shape))


@public()
def split(tensor, split_size_or_sections, dim=0):
    """Views of parts of dimension `dim`. The parts have one size, or the sizes in a list.

    >>> import adjoint as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return split_method(tensor, split_size_or_sections, dim)


@public(namespace=None, method=("split",))
def split_method(input, /, split_size, dim=0):
    """Views of parts of dimension `dim`. The parts have one size, or the sizes in a list."""
    if is_of_type(split_size, "Int"):
        return tensors.split_size(input, split_size, dim)
    return split_with_sizes(input, tuple(split_size) if isinstance(split_size, list) else split_size, dim)


@operator(out=False, kernel=kernels.split, tangent="linear", narrow="moves")
class unsafe_split:
    """`split` into parts of one size. The parts share memory, but are not recorded as views."""

    def forward(self: Array, split_size: Int, dim: Int = 0): ...

    def grad_self(grads, self_shape, split_size, dim, xp):
        return _joined(grads, self_shape, kernels.part_sizes(self_shape[dim], split_size), dim, xp)


@operator(kernel=kernels.split, out=False, narrow="moves")
class unsafe_split_with_sizes:
    """`split` into parts of the given sizes. The parts share memory, but are not recorded as views."""

    def forward(self: Array, split_sizes: Ints, dim: Int = 0): ...

    def grad_self(grads, self_shape, split_sizes, dim, xp):
        return _joined(grads, self_shape, split_sizes, dim, xp)


@public(method=True, numpy_names=True)
def unsafe_chunk(input, chunks, dim=0):
    """`chunk` into parts that share memory, but are not recorded as views."""
    if not input._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    size = input._array.shape[wrap_dim(dim, input._array.ndim)]
    if size == 0:
        return unsafe_split_with_sizes(input, (0,) * chunks, dim)
    return unsafe_split(input, -(-size // chunks), dim)


@public(method=True, numpy_names=True)
def chunk(input, chunks, dim=0):
    """At most `chunks` views of dimension `dim`, of equal size except possibly the last."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if not is_of_type(chunks, "Int"):
        raise wrong_type("chunk", "chunks", call_of("chunk").where("chunks", 1, (input, chunks, dim)), "Int", chunks)
    chunks = chunks.__index__()
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = shape[wrap_dim(dim, len(shape))]
    if size == 0:
        return split_with_sizes(input, (0,) * chunks, dim)
    return split_size(input, -(-size // chunks), dim)


@public(
    method=True,
    forms=(
        "Tensor input, tuple of ints indices, int dim = 0",
        "Tensor input, Tensor tensor_indices_or_sections, int dim = 0",
        "Tensor input, int sections, int dim = 0",
    ),
)
def tensor_split(input=None, indices_or_sections=None, /, dim=0, **names):
    """Views of parts of dimension `dim`: a number of nearly equal parts, or parts between the given indices."""
    if names:
        input, indices_or_sections, dim = _split_by_names(names, input, indices_or_sections, dim)
    number = not isinstance(indices_or_sections, Tensor) and is_of_type(indices_or_sections, "Int")
    if not (number or isinstance(indices_or_sections, (tuple, list, Tensor))) or not is_of_type(dim, "Int"):
        given = (indices_or_sections,) if is_of_type(dim, "Int") else (indices_or_sections, dim)
        raise invalid_arguments("tensor_split", input, *given)
    shape = input._array.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    size = shape[wrap_dim(dim, len(shape))]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = _cuts_from(indices_or_sections)
    if is_of_type(indices_or_sections, "Int"):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        smallest, larger = divmod(size, indices_or_sections)
        bounds = [part * smallest + min(part, larger) for part in range(indices_or_sections + 1)]
    else:
        bounds = [0, *indices_or_sections, size]
    return tuple(slice(input, dim, start, end, 1) for start, end in itertools.pairwise(bounds))


def _split_by_names(names, input, where, dim):
    """Return the arguments of `tensor_split` if some are given by name. Raise an error for other names."""
    rest = dict(names)
    found = [value for value in (input, where) if value is not None]
    if input is None:
        input = rest.pop("input", rest.pop("x", None))
    if where is None:
        name = next((one for one in ("indices", "sections", "tensor_indices_or_sections") if one in rest), None)
        where = rest.pop(name, None)
    dim = rest.pop("axis", dim)
    if rest:
        raise invalid_arguments("tensor_split", *found, *([dim] if dim else []), **names)
    return input, where, dim


def _cuts_from(tensor):
    if tensor._array.dtype != numpy.int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {tensor.dtype.scalar_type}"
        )
    if tensor._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {tensor._array.ndim} dims"
        )
    return tensor.tolist()


def _split_function(name, dim_of, minimum):
    def function(input, indices_or_sections):
        number = is_of_type(indices_or_sections, "Int")
        if not (number or isinstance(indices_or_sections, (tuple, list))):
            raise invalid_arguments(name, input, indices_or_sections)
        ndim = input._array.ndim
        if ndim < minimum:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {minimum} dimension, but got a tensor "
                f"with {ndim} dimensions!"
            )
        dim = dim_of(ndim)
        size = input._array.shape[dim]
        if number and (indices_or_sections <= 0 or size % indices_or_sections):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible "
                f"by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Views of a dimension in equal parts, or cut at the given indices."
    return public(method=True, forms=("Tensor input, int sections", "Tensor input, tuple of ints indices"))(function)


hsplit = _split_function("hsplit", lambda ndim: 0 if ndim == 1 else 1, 1)
vsplit = _split_function("vsplit", lambda ndim: 0, 2)
dsplit = _split_function("dsplit", lambda ndim: 2, 3)


# --- parts of copies ------------------------------------------------------------------------------------------


@operator(
    kernel=kernels.narrow_copy,
    same_out="Expected self.dtype() == output.dtype() to be true, but got false.",
    tangent="linear",
    sparse="shapes.narrow",
    narrow="moves",
)
class narrow_copy:
    """A copy of `length` slices of dimension `dim`, starting at `start`."""

    def forward(self: Array, dim: Int, start: Int, length: Int): ...

    def grad_self(grad, self_shape, dim, start, length, xp):
        start = start + self_shape[dim] if start < 0 else start
        return xp.slice_backward(grad, self_shape, dim, start, start + length, 1)


@operator(kernel=kernels.select_scatter, out=False, tangent="linear", batch="expanded", narrow="moves")
class select_scatter:
    """A copy with `src` at `index` of dimension `dim`."""

    real_derivative = "select_scatter"

    def forward(self: Array, src: Array, dim: Int, index: Int): ...

    def grad_self(grad, dim, index, xp):
        return xp.select_scatter(grad, xp.zeros_like(xp.select(grad, dim, index)), dim, index)

    def grad_src(grad, dim, index, xp):
        return xp.select(grad, dim, index)


@operator(
    kernel=kernels.slice_scatter,
    same_out=STRICT,
    out="underived",
    tangent="linear",
    batch="expanded",
    narrow="moves",
)
class slice_scatter:
    """A copy with `src` in every `step`th slice of dimension `dim` from `start` up to, but excluding, `end`."""

    real_derivative = "slice_scatter"

    def forward(self: Array, src: Array, dim: Int = 0, start=None, end=None, step: Int = 1): ...

    def grad_self(grad, dim, start, end, step, xp):
        return xp.slice_scatter(grad, xp.zeros_like(xp.slice(grad, dim, start, end, step)), dim, start, end, step)

    def grad_src(grad, dim, start, end, step, xp):
        return xp.slice(grad, dim, start, end, step)


@operator(kernel=kernels.diagonal_scatter, out=False, tangent="linear", batch="expanded", narrow="moves")
class diagonal_scatter:
    """A copy with `src` on a diagonal."""

    def forward(self: Array, src: Array, offset: Int = 0, dim1: Int = 0, dim2: Int = 1): ...

    def grad_self(grad, offset, dim1, dim2, xp):
        return xp.diagonal_scatter(grad, xp.zeros_like(xp.diagonal(grad, offset, dim1, dim2)), offset, dim1, dim2)

    def grad_src(grad, offset, dim1, dim2, xp):
        return xp.diagonal(grad, offset, dim1, dim2)
