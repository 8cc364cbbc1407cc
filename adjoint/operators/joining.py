"""Joining tensors, repeating and reordering their elements."""

from __future__ import annotations

import numpy

from ..kernels import joining as kernels
from ..tensor import Tensor, wrap_dim
from .build import operator, public, tensors
from .gathering import index_select
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
