"""`tensor[key]` and `tensor[key] = value`: keys of every kind that NumPy and PyTorch have, taken apart into views and one index.

Integers, slices, None and `...` make views, one for each; what is left, tensors and masks, makes one `index`. The most frequent
keys go a shorter way (`leading_part`, `basic_view`, `assign`) to the same.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy

from ...codegen.kernel import Kernel
from ...dispatch.declaration import OPERATORS
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.lazy_stubs import overridden
from ...dispatch.out import check_memory, check_overlap
from ...kernels.create.creation import array_from_data
from ...kernels.index import indexing as kernels
from ...kernels.runtime.lazy_conj import resolved
from ...kernels.shape import view as view_kernels
from ...notices import warn
from ...tape import modes
from ...tape.node import Node
from ...tape.origin import nearest_user_frame
from ...tape.saved import Packed, bump, pack, shared_counter, shown, stale_error, unpack_list
from ...tape.views import NO_GRAD
from ...tensor import LEAF, PLAIN_TYPES, Tensor, current_edge, ndarray, new, tensor_array, wrap, wrap_dim
from ..shape.parts import select, slice
from ..shape.view import alias, unsqueeze
from . import batched_indexing

_slice = type(numpy.s_[:])
_FULL = _slice(None)
_LEADING = [(_FULL,) * dim for dim in range(65)]
"""The part of a NumPy key that leaves the dimensions before a dimension as they are."""

_GATE, _STATE = modes.GATE, modes.STATE


# --- the operators --------------------------------------------------------------------------------------------

_SHOWN = {"indices": lambda node: unpack_list(node, "indices").shown()}


class Indices(tuple[Any, ...]):  # noqa: SLOT001  (a tuple can have no slots of its own)
    """Arrays of indices, and the tensors they are of with their versions, so that backward sees whether they have changed."""

    tensors: tuple[tuple[Tensor, int | None], ...]

    @classmethod
    def of(cls, parts: Any) -> Indices:
        """The arrays of tensors; None stays None."""
        self = cls([None if part is None else resolved(part._array) for part in parts])
        self.tensors = tuple([(part, version_of(part)) for part in parts if part is not None])
        return self

    @classmethod
    def of_one(cls, tensor: Tensor) -> Indices:
        """The array of the one tensor that is all of a key."""
        array = tensor._array
        self = cls((array if type(array) is ndarray else resolved(array),))
        self.tensors = ((tensor, version_of(tensor)),)
        return self

    def check_savable(self) -> None:
        """Raise for a tensor made in inference mode."""
        for tensor, version in self.tensors:
            if version is None:
                tensor._counter[0]  # which raises

    packed: dict[int, Packed] | None = None
    """By position, those that have gone through a pack hook; None stands in their places."""

    def element(self, position: int) -> Tensor | None:
        """The tensor at `position`."""
        return next((tensor for tensor, _ in self.tensors if tensor._array is self[position]), None)

    def packed_by(self, hooks: Any, positions: Any = None) -> Indices:
        """The indices with those at `positions` (all) passed through the pack hook of `hooks`, a pair (pack, unpack)."""
        chosen = [position for position in positions or range(len(self)) if self[position] is not None]
        packed = {}
        for position in chosen:
            tensor = self.element(position)
            tensor = wrap(self[position]) if tensor is None else tensor if positions is None else shown(tensor, None)
            packed[position] = pack(tensor, hooks, None)
        result = Indices([None if position in packed else array for position, array in enumerate(self)])
        result.tensors = tuple(pair for pair in self.tensors if any(pair[0]._array is array for array in result))
        result.packed = {**(self.packed or {}), **packed}
        return result

    def unpacked(self) -> Indices:
        """The indices, those that were packed read back."""
        packed = self.packed or {}
        result = Indices(
            [packed[position].tensor()._array if position in packed else array for position, array in enumerate(self)]
        )
        result.tensors = self.tensors
        return result

    def shown(self) -> tuple[Any, ...]:
        """The indices as `_saved_indices` shows them: up to the last that is not None."""
        count = max((position for position, array in enumerate(self, 1) if array is not None), default=0)
        return tuple(None if array is None else wrap(array) for array in self[:count])


def version_of(tensor: Tensor) -> int | None:
    """How often a tensor has been changed in place; None where nobody counts, in inference mode."""
    if tensor._extra is not None and tensor._extra.inference:
        return None
    return 0 if tensor._counter is None else tensor._counter[0]


def unchanged(indices: Any) -> Any:
    """The indices a node has saved.

    Raises:
        RuntimeError: if a tensor of them has been changed in place since it was used.
    """
    for tensor, version in getattr(indices, "tensors", ()):
        if tensor._counter is not None and int(tensor._counter[0]) != int(version):
            raise stale_error(None, tensor._array, tensor._counter, version, None, None)
    return indices


@operator(
    namespace=None,
    method=False,
    kernel=Kernel(kernels.index, quiet=True),
    tangent="linear",
    batch=batched_indexing.index,
    aten="Tensor",
)
class index:
    """The elements that arrays of indices, or masks, for the leading dimensions (None: all of it) point at together."""

    shown = _SHOWN
    lists = ("indices",)

    def forward(self: Array, indices): ...

    def grad_self(grad, self_shape, indices, xp):
        return xp.index_backward(grad, self_shape, unchanged(indices))


@operator(
    namespace=None,
    method=False,
    kernel=Kernel(kernels.index_backward, quiet=True),
    tangent="linear",
    batch=batched_indexing.index_backward,
)
class index_backward:
    """Zeros of `shape` to which `input` is added where the indices point."""

    lists = ("indices",)

    def forward(self: Array, shape, indices): ...

    def grad_self(grad, indices, xp):
        return xp.index(grad, indices)


@operator(
    kernel=Kernel(kernels.index_put, inplace=kernels.index_put_),
    namespace=None,
    method=(),
    inplace=True,
    apart=True,
    node="IndexPutBackward0",
    called="index_put",
    out=False,
    batch=batched_indexing.index_put,
    vmap_name="index_put_",
)
class index_put_arrays:
    """A copy with `values` where the indices point, or added there."""

    shown = _SHOWN
    lists = ("indices",)

    def forward(self: Array, indices, values: Array, accumulate: Bool = False): ...

    def grad_self(grad, indices, accumulate, xp):
        if accumulate:
            return grad
        return xp.index_put_arrays(grad, as_masks(unchanged(indices)), xp.zero_of(grad), False)

    def grad_values(grad, indices, xp):
        return xp.index(grad, unchanged(indices))


def as_masks(indices: Any) -> Any:
    """The indices, masks of bytes made boolean, as one value may only be written through those."""
    if all(part is None or part.dtype.char != "B" for part in indices):
        return indices
    return tuple(part.astype(bool) if part is not None and part.dtype.char == "B" else part for part in indices)


@public(namespace=None, on_arrays=lambda grad: numpy.zeros((), grad.dtype))
def zero_of(grad):
    """A zero of the dtype of `grad`."""
    return grad.new_zeros(())


def _index_tensors(indices: Any, function: str) -> Indices:
    """Tensors of indices as arrays."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{function}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    for position, item in enumerate(indices):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(item).__name__}")
    return Indices.of(indices)


@public(method=True, numpy_names=True)
def index_put(input, indices, values, accumulate=False):
    """A copy of the tensor with `values` at the positions that the tensors `indices` point at together."""
    return index_put_arrays(input, _index_tensors(indices, "index_put"), values, accumulate)


@public(method=True)
def index_put_(input, indices, values, accumulate=False):
    """`index_put`, in place."""
    return index_put_arrays.inplace(input, _index_tensors(indices, "index_put_"), values, accumulate)


# --- reading --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__getitem__",), guarded=False)
def getitem(input, key):
    """`input[key]`."""
    if (type(input) is Tensor or type(input) in PLAIN_TYPES) and not _GATE.special and type(input._array) is ndarray:
        kind = type(key)
        if kind is int or kind is _slice:
            result = leading_part(input, key, kind)
            if result is not None:
                return result
        elif kind is tuple:
            if key and type(key[-1]) is Tensor and (indices := whole_indices(key)) is not None:
                return index(input, Indices.of(indices))
            result = basic_view(input, key)
            if result is not None:
                return result
        elif kind is Tensor and key._array.ndim and key._array.dtype.char in "li?":
            return index(input, Indices.of_one(key))
        elif key is None:
            return unsqueeze(input, 0)
    try:
        result, indices = apply_basic(input, key_items(key), isinstance(key, tuple))
    except Exception:
        again = overridden(sys._getframe())
        if again is None:
            raise
        return again()
    if all(item is None for item in indices):
        return alias(result) if result is input else result
    return index(result, Indices.of(indices))


def whole_indices(key: tuple[Any, ...]) -> list[Tensor | None] | None:
    """The parts of a key of nothing but tensors of indices and slices of everything (as None); None for other keys."""
    indices: list[Tensor | None] = []
    for part in key:
        if type(part) is Tensor:
            if part._array.dtype.char != "l" or not part._array.ndim:
                return None
            indices.append(part)
        elif type(part) is _slice and part.start is part.stop is part.step is None:
            indices.append(None)
        else:
            return None
    return indices


def leading_part(input: Tensor, part: Any, kind: type) -> Tensor | None:
    """The view that an integer or a slice makes of the first dimension; None where the general way is due."""
    before = input._array
    try:
        if kind is int:
            array = before[part, ...]
        else:
            start, stop, step = part.start, part.stop, part.step
            if not (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or (type(step) is int and step > 0))
            ):
                return None
            array = before[part]
    except (IndexError, TypeError):
        return None
    edge = input._edge if input._base is None else current_edge(input)
    if edge is not None:
        if not (_GATE.grad or _STATE.grad_enabled):
            return None
        frame = sys._getframe(2)
        if frame.f_globals is not _GATE.user:
            frame = nearest_user_frame(frame)
        edge = (_part_node(part, 0, input if edge is LEAF else edge, before, array, frame), 0)
    elif input._extra is not None and input._extra.inference:
        return None
    return _view(input, array, edge)


def basic_view(input: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """The view that a key of integers, slices, None and `...` makes; None where the general way is due.

    Each part has a node of its own, but for slices of everything.
    """
    edge = input._edge if input._base is None else current_edge(input)
    if edge is not None:
        if not (_GATE.grad or _STATE.grad_enabled):
            return None
        if edge is LEAF:
            edge = input
        frame = sys._getframe(2)
        if frame.f_globals is not _GATE.user:
            frame = nearest_user_frame(frame)
    elif input._extra is not None and input._extra.inference:
        return None
    first = before = input._array
    dim = 0
    for position, part in enumerate(key):
        kind = type(part)
        try:
            if kind is int:
                array = before[part, ...] if dim == 0 else before[(*_LEADING[dim], part, ...)]
            elif kind is _slice:
                start, stop, step = part.start, part.stop, part.step
                if not (_is_bound(start) and _is_bound(stop) and (step is None or (type(step) is int and step > 0))):
                    return None
                if not start and (stop is None or stop >= before.shape[dim]) and step in (None, 1):
                    dim += 1
                    continue
                array = before[part] if dim == 0 else before[(*_LEADING[dim], part)]
            elif part is None:
                array = view_kernels.unsqueeze(before, dim)
            elif part is Ellipsis:
                dim += before.ndim - dim - sum(later is not None for later in key[position + 1 :])
                if dim < 0 or any(later is Ellipsis for later in key[position + 1 :]):
                    return None
                continue
            else:
                return None
        except (IndexError, TypeError):
            return None
        if edge is not None:
            edge = (_part_node(part, dim, edge, before, array, frame), 0)
        if kind is not int:
            dim += 1
        before = array
    if before is first or dim > before.ndim:
        return None
    return _view(input, before, edge)


def _view(input: Tensor, array: Any, edge: Any) -> Tensor:
    """A tensor on `array`, a part of the memory of `input`."""
    base = input._base
    result = new(Tensor)
    result._array = array
    result._edge = edge
    result._grad = result._extra = None
    result._base = input if base is None else base
    result._creation = None if base is None else input._creation
    counter = input._counter
    if counter is None:
        counter = shared_counter(input)
    result._counter = counter
    result._view_version = counter[0]
    if edge is None and not (_GATE.grad or _STATE.grad_enabled):
        result._creation = NO_GRAD
    return result


def _is_bound(value: Any) -> bool:
    return value is None or type(value) is int


def _part_node(part: Any, dim: int, edge: Any, before: Any, array: Any, frame: Any) -> Node:
    """The node of `select`, `slice` or `unsqueeze` for one part of a key."""
    select_node, slice_node, unsqueeze_node = _part_nodes()
    if part is None:
        return unsqueeze_node(edge, before, array, frame, dim)
    if type(part) is int:
        return select_node(edge, before, array, frame, dim, part)
    return slice_node(edge, before, array, frame, dim, part.start, part.stop, 1 if part.step is None else part.step)


@functools.cache
def _part_nodes() -> tuple[Any, Any, Any]:
    return tuple(OPERATORS[name].code.part_node for name in ("select", "slice", "unsqueeze"))


def key_items(key: Any) -> tuple[Any, ...]:
    """A key as a tuple, one item for each part."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    if (
        isinstance(key, list)
        and len(key) < 32
        and any(isinstance(item, (list, tuple, Tensor, _slice)) or item is None or item is Ellipsis for item in key)
    ):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
            "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
            "which will result either in an error or a different result"
        )
        return tuple(key)
    return (key,)


def as_part(part: Any) -> Any:
    """One item of a key: lists and arrays become tensors, integer tensors without dimensions integers."""
    if part is None or part is Ellipsis or isinstance(part, (bool, _slice)):
        return part
    if isinstance(part, (list, tuple, range, numpy.ndarray)):
        array = array_from_data(list(part) if isinstance(part, range) else part, unwrap=tensor_array)
        if array.dtype.kind == "c":
            raise TypeError("'complex' object cannot be interpreted as an integer")
        keep = array.dtype.char in "?B" and (array.size or isinstance(part, numpy.ndarray))
        part = wrap(array if keep else array.astype(numpy.int64, copy=False))
    if isinstance(part, Tensor):
        kind = part._array.dtype
        if part._array.ndim == 0 and kind.kind in "biu" and not hasattr(part, "without_history"):
            return bool(part._array) if kind.char in "?B" else int(part._array)
        if kind.kind in "iu" and kind.char not in "liqB":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return part
    if isinstance(part, numpy.bool_):
        return bool(part)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise IndexError(
        f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(part).__name__})"
    )


def consumed(part: Any) -> int:
    """How many dimensions of the tensor a part of a key stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part._array.dtype in (numpy.bool_, numpy.uint8):
        return part._array.ndim
    return 1


def counted(item: Any, part: Any) -> int:
    """How many dimensions an item is taken to stand for before it is looked at: one, if it is a list or an array."""
    return 1 if isinstance(part, Tensor) and not isinstance(item, Tensor) else consumed(part)


def apply_basic(input: Tensor, items: tuple[Any, ...], whole: bool = True) -> tuple[Tensor, list[Any]]:
    """The views that the basic items of a key make, and the tensors of indices that remain, by dimension.

    `whole`: slices of everything make no view of their own.
    """
    ndim = input._array.ndim
    parts = tuple(map(as_part, items))
    total = sum(map(counted, items, parts))
    if total > ndim:
        if ndim == 0 and len(parts) == 1 and type(parts[0]) is int:
            check_integer(input, 0, parts[0])
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
            indices.append(wrap(numpy.zeros(int(part), numpy.int64)))
            dim += 1
        elif type(part) is int:
            check_integer(result, dim, part)
            result = select(result, dim, part)
        elif isinstance(part, _slice):
            result = sliced(result, dim, part, whole)
            indices.append(None)
            dim += 1
        else:
            indices.append(part)
            dim += consumed(part)
    return result, indices


def sliced(input: Tensor, dim: int, part: Any, whole: bool) -> Tensor:
    """`part`, a Python slice, of dimension `dim`; the tensor itself if that is all of it and `whole` is true."""
    try:
        start, stop, step = (None if v is None else v.__index__() for v in (part.start, part.stop, part.step))
    except AttributeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step is not None and step < 0:
        raise ValueError("step must be greater than zero")
    if whole and not start and step in (None, 1) and (stop is None or stop >= input._array.shape[dim]):
        return input
    return slice(input, dim, start, stop, 1 if step is None else step)


def check_integer(input: Tensor, dim: int, position: int) -> None:
    """Raise if `position` is outside dimension `dim`."""
    array = input._array
    if array.ndim == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = array.shape[wrap_dim(dim, array.ndim)]
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for dimension {dim} with size {size}")


# --- writing --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__setitem__",), guarded=False)
def setitem(input, key, value):
    """`input[key] = value`."""
    if (
        input._edge is None
        and input._base is None
        and input._extra is None
        and not _GATE.special
        and type(input._array) is ndarray
        and assign(input, key, value)
    ):
        return
    if key is False:
        return
    try:
        result, indices = apply_basic(input, (None,) if key is True else key_items(key))
        if not isinstance(value, Tensor):
            value = value_tensor(value, input)
    except Exception:
        again = overridden(sys._getframe())
        if again is None:
            raise
        again()
        return
    if any(item is not None for item in indices):
        if value._array.ndim and value._array.shape[0] == 1:
            value = without_leading_ones(value)
        index_put_arrays.inplace(result, Indices.of(indices), value, False)
        return
    sizes = result._array.shape
    if value._array.shape != sizes:
        if value._array.ndim == 0:
            check_overlap(result)
            result.fill_(value)
            return
        value = without_leading_ones(value)
    check_memory(result, [value], apart=False)
    result.copy_(value if value._array.shape == sizes else tensors.expand(value, sizes))


def assign(input: Tensor, key: Any, value: Any) -> bool:
    """Write at once where NumPy does what PyTorch does and there is no history; False if that needs the general way."""
    array = input._array
    kind = type(value)
    if kind is float or kind is int:
        if array.dtype.kind != "f" and (kind is not int or array.dtype.kind != "i"):
            return False
    elif kind is Tensor and value._edge is None and value._base is None:
        value = value._array
        if value.dtype is not array.dtype or value is array or value.base is not None or type(value) is not ndarray:
            return False
    else:
        return False
    kind = type(key)
    if kind is Tensor:
        key = key._array
        if key.ndim == 0 or not (key.dtype.char in "li" or (key.dtype.kind == "b" and key.shape == array.shape)):
            return False
        if type(key) is not ndarray:
            return False
    elif kind is tuple:
        if any(type(part) is not int and (type(part) is not _slice or part.step is not None) for part in key):
            return False
    elif (kind is not int or array.ndim == 0) and (kind is not _slice or key.step is not None):
        return False
    try:
        array[key] = value
    except (IndexError, ValueError, TypeError, OverflowError):
        return False
    bump(input, "__setitem__", depth=2)
    return True


def value_tensor(value: Any, input: Tensor) -> Tensor:
    """A number to be assigned, in the dtype of `input`."""
    if isinstance(value, (int, float, complex)):
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        return tensors.scalar_tensor(value, dtype=input.dtype)
    raise TypeError(f"can't assign a {qualified_name(type(value))} to a {input.type()}")


def qualified_name(kind: type) -> str:
    """The name of a type, with its module unless that is Python's own."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def without_leading_ones(value: Tensor) -> Tensor:
    """`value` without leading dimensions of size 1, as a view."""
    shape = value._array.shape
    extra = 0
    while extra < len(shape) and shape[extra] == 1:
        extra += 1
    return value.view(shape[extra:])
