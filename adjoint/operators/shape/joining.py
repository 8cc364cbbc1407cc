"""Joining tensors: along a dimension, along a new dimension, or along a diagonal."""

from __future__ import annotations

import numpy

from ...aten.torch_dispatch import is_watched
from ...codegen.kernel import Kernel
from ...device import contiguous_format
from ...dispatch.annotations import Array, Arrays, Int, Ints
from ...dispatch.arguments import invalid_arguments, is_of_type, require, wrong_type
from ...dispatch.calls import call_of
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import stored
from ...dispatch.sequential import sequential_fallback
from ...dtypes import can_cast, from_numpy, int32, int64
from ...kernels.memory.bounds import check_addressable
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.lazy_conj import materialize
from ...kernels.runtime.positions import as_places
from ...kernels.shape import joining as kernels
from ...tape.edges import has_no_history
from ...tensor import Tensor, wrap, wrap_dim
from ..create.creation import zeros
from ..index.gathering import index_select
from .view import checked_sizes, reshaped, sizes_of


def _check_out(result, given, inputs):
    """Raise an error unless the joined elements can be cast to the dtype of `out=`."""
    if not can_cast(from_numpy(result.dtype), given):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {given.scalar_type}")


def _batch_joined(op, batch, items, dim):
    ndim = items[0]._array.ndim
    if any(item._array.ndim != ndim for item in items):
        return None
    return op.apply([batch.expanded(item) for item in items], batch.shifted(dim, ndim + (op.name == "stack")))


def _some(tensors, dim):
    if isinstance(tensors, (list, tuple)) and not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")


@operator(
    promote="common",
    method=False,
    check=_some,
    out="disjoint",
    same_out=_check_out,
    tangent="linear",
    kernel=Kernel(kernels.cat, quiet=True),
    sparse="shapes.cat",
    narrow="moves",
)
class cat:
    """The concatenation of the tensors along `dim`.

    >>> import adjoint as torch
    >>> torch.cat([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """

    saved_display = {"tensors_sym_sizes": None}

    def forward(tensors: Arrays, dim: Int = 0): ...

    def grad_tensors(grad, tensors_shape, dim, xp):
        parts = kernels.cat_backward(grad, tensors_shape, dim)
        return [xp.zeros_like_shape(grad, (0,)) if part is None else part for part in parts]

    batch = _batch_joined


@public(alias=("concatenate",), numpy_names=True)
def concat(tensors, dim=0, *, out=None):
    """The concatenation of the tensors along `dim`; see `cat`."""
    return cat(tensors, dim, out=out)


@operator(
    kernel=Kernel(kernels.stack, quiet=True),
    promote="common",
    method=False,
    same_out=_check_out,
    tangent="linear",
    sparse="shapes.stack",
    narrow="moves",
)
class stack:
    """The tensors along a new dimension `dim`."""

    def forward(tensors: Arrays, dim: Int = 0): ...

    def grad_tensors(grad, dim):
        return list(grad.unbind(dim)) if isinstance(grad, Tensor) else kernels.unstack(grad, dim)

    batch = _batch_joined


def _at_least(ndim, name):
    def function(*tensors):
        several = len(tensors) != 1 or isinstance(tensors[0], (list, tuple))
        items = tensors[0] if several and len(tensors) == 1 else tensors
        for item in items:
            if not isinstance(item, Tensor):
                raise invalid_arguments(name, *tensors)
        extended = [item if item._array.ndim >= ndim else _extended(item, ndim) for item in items]
        return tuple(extended) if several else extended[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Each tensor as one of at least {ndim} dimension{'s' if ndim > 1 else ''}."
    return public()(function)


def _extended(tensor, ndim):
    own = tensor._array.ndim
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
    """The tensors joined along the second dimension. Vectors are joined along their only dimension."""
    parts = atleast_1d(_several("hstack", tensors))
    return cat(parts, 0 if parts[0]._array.ndim == 1 else 1, out=out)


def _several(name, tensors):
    require("Sequence", tensors, name, "tensors", 1)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


@public(alias=("row_stack",))
def vstack(tensors, *, out=None):
    """The tensors stacked vertically, with vectors as rows."""
    return cat(atleast_2d(_several("vstack", tensors)), 0, out=out)


@public()
def dstack(tensors, *, out=None):
    """The tensors joined along the third dimension."""
    return cat(atleast_3d(_several("dstack", tensors)), 2, out=out)


@public()
def column_stack(tensors, *, out=None):
    """The tensors joined along the second dimension. Vectors become columns."""
    columns = [t.reshape((-1, 1)) if t._array.ndim <= 1 else t for t in _several("column_stack", tensors)]
    return hstack(columns, out=out)


@internal(
    kernels.block_diag,
    promote="common",
    node="BlockDiagBackward0",
    out=False,
    tangent="linear",
    aten_name="block_diag",
    narrow="moves",
)
class block_diagonal:
    """A matrix with the given matrices along its diagonal, and zeros elsewhere."""

    saved_display = {"tensors_sym_sizes": None}

    def forward(tensors: Arrays): ...

    def grad_tensors(grad, tensors_shape):
        return kernels.block_diag_backward(grad, tensors_shape)


@public()
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal, and zeros elsewhere.

    Vectors count as rows, and numbers as matrices of one element.
    """
    return block_diagonal(list(tensors)) if tensors else zeros((1, 0))


# --- repeating and reordering ---------------------------------------------------------------------------------


@internal(Kernel(kernels.repeat, quiet=True), out=False, tangent="linear", narrow="moves")
class repeat:
    """The tensor repeated along each dimension."""

    def forward(self: Array, repeats): ...

    def grad_self(grad, self_shape, repeats, xp):
        lead = len(repeats) - len(self_shape)
        shape = (1,) * lead + tuple(self_shape)
        if 0 in repeats:
            return xp.zeros_like_shape(grad, self_shape)
        split = tuple(size for pair in zip(repeats, shape, strict=True) for size in pair)
        return xp.sum(grad.reshape(split), tuple(range(0, len(split), 2)), False).reshape(tuple(self_shape))

    def batch(op, batch, value, repeats):
        return batch.aligned(value, len(repeats)).repeat((1, *repeats))


@public(namespace=None, method=("repeat",))
def repeat_method(input, /, *repeats, **names):
    """The tensor repeated along each dimension. New dimensions come first."""
    repeats = sizes_of(repeats, names, "repeat", "repeats")
    if len(repeats) < input._array.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(repeats) - input._array.ndim) + input._array.shape
    result = [count * size for count, size in zip(repeats, shape, strict=True)]
    if min(result, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(result)}: {result}")
    return repeat(input, repeats)


@public(numpy_names=True)
def tile(input, dims):
    """The tensor repeated along each dimension. Missing repetitions of leading dimensions are 1."""
    dims = checked_sizes(dims, "tile", "dims", 2)
    return repeat_method(input, (1,) * (input._array.ndim - len(dims)) + tuple(dims))


@public(namespace=None, method=("tile",))
def tile_method(input, /, *dims, **names):
    """The method of `adjoint.tile`, with separate repetitions or a sequence."""
    return tile(input, sizes_of(dims, names, "tile", "dims"))


@public(method=True, numpy_names=True)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice of `dim`) repeated in place.

    With a single tensor, return its indices, where index i is repeated `input[i]` times.
    """
    if repeats is None:
        if input._array.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        return _repeated_positions(input, input._array.size, output_size)
    if dim is None:
        input, dim = input.flatten(), 0
    if isinstance(repeats, Tensor):
        return _repeated(input, repeats, dim, output_size)
    shape = input._array.shape
    wrapped = wrap_dim(dim, len(shape))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    plain = type(repeats) is int and shape and has_no_history(input)
    slices = input if plain else tensors.unsqueeze(input, wrapped + 1)
    if output_size not in (None, repeats * shape[wrapped]):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {repeats * shape[wrapped]} but got {output_size}"
        )
    spread_shape = (*shape[: wrapped + 1], repeats, *shape[wrapped + 1 :])
    if plain:
        spread = wrap(input._array.repeat(repeats, wrapped).reshape(spread_shape))
    else:
        spread = tensors.clone(tensors.expand(slices, spread_shape), memory_format=contiguous_format)
    return reshaped(spread, (*shape[:wrapped], shape[wrapped] * repeats, *shape[wrapped + 1 :]))


def _repeated(input, repeats, dim, output_size):
    """Repeat each slice of `dim`. The tensor `repeats` contains the numbers of repetitions."""
    counts, shape = repeats._array, input._array.shape
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size = shape[wrap_dim(dim, len(shape))]
    if counts.ndim and counts.size not in (1, size):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size({dim}) = {size}"
        )
    if is_watched(repeats):
        return index_select(input, dim, repeats.expand(size).repeat_interleave(output_size=output_size))
    return index_select(input, dim, _repeated_positions(repeats, size, output_size))


@sequential_fallback
def _repeated_positions(repeats, size, output_size):
    """Return the numbers below `size`, with number i repeated `repeats[i]` times. `output_size`: their count, if known."""
    if repeats.dtype not in (int32, int64):
        raise refuse("repeat_interleave_cpu", repeats._array)
    counts = materialize(repeats._array).reshape(-1).astype(numpy.int64, copy=False)
    if output_size is not None and output_size < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {output_size}: [{output_size}]")
    # NumPy's sum may wrap around. The sums of the upper and the lower halves do not.
    total = (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
    total *= size if repeats._array.size == 1 else 1
    if size and output_size not in (None, total):
        raise RuntimeError("allocated size does not match required size")
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    check_addressable(total * 8)
    return wrap(numpy.repeat(numpy.arange(size, dtype=numpy.int64), as_places(counts)))


@internal(Kernel(kernels.roll, quiet=True), out=False, tangent="linear", narrow="moves")
class roll:
    """The elements shifted along dimensions. Elements shifted beyond an end continue at the other end."""

    def forward(self: Array, shifts, dims): ...

    def grad_self(grad, shifts, dims, xp):
        return xp.roll(grad, tuple(-shift for shift in shifts), dims)


@public(name="roll", method=("roll",), numpy_names=True)
def roll_function(input, shifts, dims=()):
    """The elements shifted along `dims`, or in the flattened tensor. Elements beyond an end continue at the other end."""
    given = input, shifts, dims
    shifts, dims = _integers("shifts", 1, given), _integers("dims", 2, given)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims and len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not dims and len(shifts) != 1:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
    if dims and not input._array.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return roll(input, shifts, dims)


def _integers(name, index, args):
    """Return an argument of `roll`, one integer or several, as a tuple."""
    value = args[index]
    if is_of_type(value, "Int"):
        return (value,)
    if value is None and name == "dims":
        return ()
    if not is_of_type(value, "Ints"):
        call = call_of("roll")
        raise wrong_type(call.name, name, call.where(name, index, args), "Ints", value)
    return tuple(value)


@internal(Kernel(kernels.flip, quiet=True), out=False, tangent="linear", narrow="moves")
class flip:
    """The elements in reversed order along dimensions."""

    def forward(self: Array, dims): ...

    def grad_self(grad, dims, xp):
        return xp.flip(grad, dims)


@public(name="flip", numpy_names=True)
def flip_function(input, dims):
    """The elements in reversed order along `dims`, as a copy."""
    return flip(input, checked_sizes(dims, "flip", "dims", 2))


@public(namespace=None, method=("flip",))
def flip_method(input, /, *dims, **names):
    """The method of `adjoint.flip`, with separate dimensions or a sequence."""
    return flip(input, sizes_of(dims, names, "flip", "dims"))


@public(method=True, numpy_names=True)
def fliplr(input):
    """The columns in reverse order."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@public(method=True, numpy_names=True)
def flipud(input):
    """The rows in reverse order."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@operator(kernel=Kernel(kernels.rot90, quiet=True), out=False, tangent="linear", narrow="moves")
class rot90:
    """The tensor rotated by `k` times 90 degrees in the plane of two dimensions, from the first towards the second."""

    def forward(self: Array, k: Int = 1, dims: Ints = (0, 1)): ...

    def grad_self(grad, k, dims, xp):
        return xp.rot90(grad, -k, dims)


@public()
def _chunk_cat(tensors, dim, num_chunks, *, out=None):
    """The chunks of all tensors joined: `(*sizes before dim, num_chunks, elements of a chunk of each tensor)`.

    If `num_chunks` does not divide the size of a tensor along `dim`, the tensor is padded with zeros.
    """
    dim = _checked_chunks(tensors, dim, num_chunks)
    chunks = cat([_in_chunks(tensor, dim, num_chunks).flatten(dim + 1) for tensor in tensors], dim + 1)
    if isinstance(out, Tensor):
        _check_out(chunks._array, out.dtype, ())
    return stored("_chunk_cat", chunks, out, underived=True)


def _in_chunks(tensor, dim, count):
    size = -(-tensor._array.shape[dim] // count) * count
    padding = (0, 0) * (tensor._array.ndim - dim - 1) + (0, size - tensor._array.shape[dim])
    return tensors.constant_pad_nd(tensor, padding).unflatten(dim, (count, -1))


def _checked_chunks(tensors, dim, count):
    """Check the arguments of `_chunk_cat`, and return `dim` counted from the front."""
    if count < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    first = tensors[0]._array
    for tensor in tensors:
        if not tensor._array.size:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    if all(tensor._array.ndim == first.ndim for tensor in tensors):
        dim = wrap_dim(dim, first.ndim)
    elif dim < 0:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    for tensor in tensors:
        if dim >= tensor._array.ndim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if tensor._array.shape[:dim] != first.shape[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim
