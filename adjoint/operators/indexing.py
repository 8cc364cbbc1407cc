"""`tensor[key]` and `tensor[key] = value`: keys of every kind that NumPy and PyTorch have, taken apart into views and one index.

Integers, slices, None and `...` make views, one for each; what is left, tensors and masks, makes one `index`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from ..kernels import indexing as kernels
from ..kernels.creation import array_from_data
from ..tape import modes
from ..tape.saved import bump, stale_error
from ..tensor import PLAIN_TYPES, Tensor, tensor_array, wrap
from .build import operator, public, tensors
from .out import check_overlap
from .parts import select, slice
from .view import alias, unsqueeze

_slice_type = type(numpy.s_[:])
_none_type = type(None)
_basic = frozenset((int, _slice_type, _none_type, type(Ellipsis)))


# --- the operators --------------------------------------------------------------------------------------------


@operator(namespace=None, method=False)
class index:
    """The elements that arrays of indices, or masks, for the leading dimensions (None: all of it) point at together."""

    def forward(self: Array, indices):
        return kernels.index(self, indices)

    def grad_self(grad, self_shape, indices, xp):
        check_unchanged(indices)
        return xp.index_backward(grad, self_shape, indices)


@operator(namespace=None, method=False)
class index_backward:
    """Zeros of `shape` to which `input` is added where the indices point."""

    def forward(self: Array, shape, indices):
        return kernels.index_put_(numpy.zeros(shape, self.dtype), indices, self, True)

    def grad_self(grad, indices, xp):
        return xp.index(grad, indices)


@operator(namespace=None, method=False, name="index_put", inplace=True, changing=kernels.index_put_)
class index_put_arrays:
    """A copy with `values` where the indices point, or added there."""

    def forward(self: Array, indices, values: Array, accumulate=False):
        return kernels.index_put(self, indices, values, accumulate)

    def grad_self(grad, indices, accumulate, xp):
        return grad if accumulate else xp.index_put(grad, indices, xp.zeros_like(grad.reshape((-1,))[:1].sum()), False)

    def grad_values(grad, indices, xp):
        return xp.index(grad, indices)


class Indices(tuple[Any, ...]):  # noqa: SLOT001  (tuples with an attribute cannot have slots)  # noqa: SLOT001  (a tuple can have no slots of its own)
    """Arrays of indices, and the tensors they are from with their versions, so that backward sees whether they have changed."""

    tensors: list[tuple[Tensor, int]]

    def __new__(cls, arrays: Any, parts: Any) -> Indices:
        self = super().__new__(cls, arrays)
        self.tensors = [
            (part, 0 if part._counter is None else part._counter[0]) for part in parts if isinstance(part, Tensor)
        ]
        return self

    def shown(self) -> tuple[Any, ...]:
        """The indices as `_saved_indices` shows them."""
        return tuple(None if array is None else wrap(array) for array in self)


def check_unchanged(indices: Any) -> None:
    """Raise if a tensor of indices has been changed in place since it was used."""
    for tensor, version in getattr(indices, "tensors", ()):
        if tensor._counter is not None and tensor._counter[0] != version:
            raise stale_error(None, tensor._array, tensor._counter, version, None, None)


def index_arrays(indices: Any) -> tuple[Any, ...]:
    """Tensors of indices as arrays."""
    return tuple(None if item is None else tensor_array(item) for item in indices)


@public(name="index_put", method=("index_put",))
def index_put_function(input, indices, values, accumulate=False):
    """A copy of the tensor with `values` at the positions that the tensors `indices` point at together."""
    return index_put_arrays(input, index_arrays(indices), values, accumulate)


_index_put_inplace = index_put_arrays.operator.inplace_function


@public(name="index_put_", method=("index_put_",))
def index_put_(input, indices, values, accumulate=False):
    """`index_put`, in place."""
    return _index_put_inplace(input, index_arrays(indices), values, accumulate)


# --- reading --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__getitem__",))
def getitem(input, key):
    """`input[key]`."""
    kind = type(key)
    try:
        if kind is int:
            return select(input, 0, key)
        if kind is _slice_type and (key.step is None or key.step > 0):
            return slice(input, 0, key.start, key.stop, 1 if key.step is None else key.step)
    except IndexError:
        check_integer(input, 0, key)
        raise
    except (TypeError, RuntimeError):
        pass  # tensors as bounds, zero-dimensional input: the general way knows
    if kind is Tensor and key._array.dtype is _INT64 and key._array.ndim and input._array.ndim:
        return index(input, Indices((key._array,), (key,)))
    if kind is tuple and _basic.issuperset(map(type, key)):
        if unrecorded(input):
            return plain_view(input, key)
        result = views_one_by_one(input, key)
        if result is not None:
            return result
    parts = key_parts(key)
    result, indices = apply_basic(input, parts, whole=kind is tuple)
    if not any(item is not None for item in indices):
        return alias(result) if result is input else result
    return index(result, Indices(indices, parts))


def views_one_by_one(input: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """One view for each integer and slice of a key without None and `...`; None if the key is not so simple."""
    if len(key) > input._array.ndim:
        return None
    result, dim = input, 0
    for part in key:
        if type(part) is int:
            if not -result._array.shape[dim] <= part < result._array.shape[dim]:
                return None
            result = select(result, dim, part)
        elif type(part) is _slice_type and part.step is None:
            if part != _EVERYTHING:
                result = slice(result, dim, part.start, part.stop, 1)
            dim += 1
        else:
            return None
    return alias(result) if result is input else result


def unrecorded(input: Tensor) -> bool:
    """Whether indexing `input` leaves nothing in the graph and takes no special path."""
    plain = type(input) is Tensor or type(input) in PLAIN_TYPES
    return plain and not modes.GATE.special and input._edge is None and input._base is None


def plain_view(input: Tensor, key: Any) -> Tensor:
    """One view for a whole basic key, where no node is to be made for each of its parts."""
    for part in key:
        if type(part) is _slice_type and part.step is not None and (type(part.step) is not int or part.step <= 0):
            return apply_basic(input, key)[0]
    try:
        array = input._array[(*key, ...) if Ellipsis not in key else key]
    except IndexError:
        return apply_basic(input, key)[0]
    result = alias(input)
    result._array = array
    return result


def key_parts(key: Any) -> tuple[Any, ...]:
    """A key as a tuple of parts: integers, slices, None, `...`, booleans and tensors."""
    if isinstance(key, tuple):
        return tuple(as_part(item) for item in key)
    if (
        isinstance(key, list)
        and len(key) < 32
        and any(
            isinstance(item, (list, tuple, Tensor, _slice_type)) or item is None or item is Ellipsis for item in key
        )
    ):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
            "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different result",
            UserWarning,
            stacklevel=3,
        )
        return tuple(as_part(item) for item in key)
    return (as_part(key),)


def as_part(part: Any) -> Any:
    """One part of a key; lists and arrays become tensors, integer tensors without dimensions integers."""
    if part is None or part is Ellipsis or isinstance(part, (bool, _slice_type)):
        return part
    if isinstance(part, Tensor):
        kind = part._array.dtype
        if part._array.ndim == 0 and kind.kind in "iu" and kind != numpy.uint8:
            return int(part._array)
        if kind not in _INDEX_TYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return part
    if isinstance(part, numpy.bool_):
        return bool(part)
    if isinstance(part, (list, tuple, range, numpy.ndarray)):
        array = array_from_data(list(part) if isinstance(part, range) else part, unwrap=tensor_array)
        return wrap(array.astype(numpy.int64) if array.size == 0 else array)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(part).__name__})"
    )


def consumed(part: Any) -> int:
    """How many dimensions of the tensor a part of a key stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part._array.dtype in (numpy.bool_, numpy.uint8):
        return part._array.ndim
    return 1


def apply_basic(input: Tensor, parts: tuple[Any, ...], whole: bool = True) -> tuple[Tensor, list[Any]]:
    """The views that the basic parts make, and the arrays of indices that remain, by dimension.

    `whole`: slices of everything make no view of their own.
    """
    ndim = input._array.ndim
    total = sum(consumed(part) for part in parts)
    if total > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, indices, dim = input, [], 0
    for part in parts:
        if part is Ellipsis:
            indices += [None] * (ndim - total)
            dim += ndim - total
        elif part is None:
            result = unsqueeze(result, dim)
            indices.append(None)
            dim += 1
        elif isinstance(part, bool):
            result = unsqueeze(result, dim)
            indices.append(numpy.array([part]))
            dim += 1
        elif type(part) is int:
            check_integer(result, dim, part)
            result = select(result, dim, part)
        elif whole and part == _EVERYTHING:
            indices.append(None)
            dim += 1
        elif isinstance(part, _slice_type):
            result = sliced(result, dim, part)
            indices.append(None)
            dim += 1
        else:
            array = part._array
            if array.dtype == numpy.uint8:
                warnings.warn(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                    UserWarning,
                    stacklevel=4,
                )
                array = array != 0
            if array.dtype == numpy.bool_ and array.ndim == 0:
                result = unsqueeze(result, dim)
                array = array.reshape(1)
            indices.append(array)
            dim += max(consumed(part), 1)
            indices += [SPANNED] * (array.ndim - 1) if array.dtype == numpy.bool_ else []
    return result, [item for item in indices if item is not SPANNED]


_EVERYTHING = numpy.s_[:]

_INT64 = numpy.dtype(numpy.int64)
_INDEX_TYPES = frozenset(map(numpy.dtype, ("int64", "int32", "uint8", "bool")))

SPANNED: Any = object()
"""A dimension that the mask before it covers."""


def sliced(input: Tensor, dim: int, part: Any) -> Tensor:
    """`part`, a Python slice, of dimension `dim`."""
    start, stop, step = (None if v is None else v.__index__() for v in (part.start, part.stop, part.step))
    step = 1 if step is None else step
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return slice(input, dim, start, stop, step)


def check_integer(input: Tensor, dim: int, position: int) -> None:
    """Raise if `position` is outside dimension `dim`."""
    array = input._array
    if array.ndim == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = array.shape[dim]
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for dimension {dim} with size {size}")


# --- writing --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__setitem__",))
def setitem(input, key, value):
    """`input[key] = value`."""
    plain = type(key) is not tuple and type(key) in _basic and type(value) in (int, float)
    if plain and unrecorded(input) and assign_number(input, key, value):
        return
    result, indices = apply_basic(input, key_parts(key))
    if not isinstance(value, Tensor):
        value = value_tensor(value, input)
    if not any(item is not None for item in indices):
        if value._array.ndim == 0 and not value.requires_grad:
            result.fill_(value if value._array.dtype == input._array.dtype else value.item())
        else:
            result.copy_(without_leading_ones(value, result._array.ndim))
        return
    if value._array.dtype != input._array.dtype and value._array.ndim == 0:
        value = value.to(input.dtype)
    _index_put_inplace(result, tuple(indices), without_leading_ones(value, None), False)


def assign_number(input: Tensor, key: Any, value: Any) -> bool:
    """Write a number through a basic key at once; False if that needs the general way."""
    array = input._array
    if array.dtype.kind != "f" or (key.__class__ is _slice_type and key.step is not None):
        return False
    if input._extra is not None or (
        key.__class__ is int and not -len(array) <= key < len(array) if array.ndim else True
    ):
        return False
    check_overlap(input)
    array[key] = value
    bump(input, "__setitem__", depth=2)
    return True


def value_tensor(value: Any, input: Tensor) -> Tensor:
    """A number or data to be assigned, in the dtype of `input`."""
    if isinstance(value, (int, float, complex, numpy.generic)):
        return tensors.scalar_tensor(value, dtype=input.dtype)
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return wrap(array_from_data(value, input.dtype, unwrap=tensor_array))
    raise TypeError(f"can't assign a {type(value).__name__} to a {input.type()}")


def without_leading_ones(value: Tensor, ndim: int | None) -> Tensor:
    """`value` without the leading dimensions of size 1 that exceed `ndim`."""
    shape = value._array.shape
    extra = 0
    while extra < len(shape) and shape[extra] == 1 and (ndim is None or len(shape) - extra > ndim):
        extra += 1
    return value.reshape(shape[extra:]) if extra else value
