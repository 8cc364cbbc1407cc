"""`tensor[key]` and `tensor[key] = value`, with keys of every kind that NumPy and PyTorch have.

Integers, slices, None and `...` each create a view. The remaining tensors and masks form one `index`. The most frequent
keys use shortcuts (`leading_part`, `basic_view`, `assign`) with the same result.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..._runtime.tracebacks import shorten
from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Bool
from ...dispatch.arguments import require, require_tensors
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.lazy_stubs import repeated
from ...dispatch.out import check_overlap, check_partial_overlap, shares_elements, written_repeatedly
from ...kernels.create import creation
from ...kernels.index import indexing as kernels
from ...kernels.runtime.addresses import may_share_memory
from ...kernels.runtime.lazy_conj import materialize
from ...kernels.runtime.sparse_array import SparseArray
from ...kernels.shape.joining import masked_fill_
from ...tape import modes
from ...tape.packing import Packed, pack, shown
from ...tape.saved import unpack_list
from ...tape.stale_error import stale_error
from ...tape.torch_dispatch import DISPATCHING
from ...tape.versions import bump
from ...tensor import PLAIN_TYPES, Tensor, ndarray, wrap
from ..declaring.slopes import with_transpose
from ..shape.view import alias, unsqueeze
from . import batched_indexing
from .keys import apply_basic, basic_view, key_items, leading_part

_slice = type(numpy.s_[:])
_FLAGS = modes.FLAGS


# --- the operators --------------------------------------------------------------------------------------------

_SHOWN = {"indices": lambda node: unpack_list(node, "indices").shown()}


class Indices(tuple[Any, ...]):  # noqa: SLOT001  (a tuple can have no slots of its own)
    """Arrays of indices, with their tensors and versions, so that backward detects changes."""

    tensors: tuple[tuple[Tensor, int | None], ...]

    @classmethod
    def of(cls, parts: Any) -> Any:
        """Return the arrays of tensors, with None for None. A tuple of tensors is returned if a class overrides operators."""
        if DISPATCHING and any(type(part) in DISPATCHING for part in parts):
            return tuple(parts)
        arrays: list[Any] = []
        tensors: list[Any] = []
        for part in parts:
            array = None if part is None else part._array
            arrays.append(array if array is None or type(array) is ndarray else materialize(array))
            if part is not None:
                tensors.append((part, version_of(part)))
        self = cls(arrays)
        self.tensors = tuple(tensors)
        return self

    @classmethod
    def of_one(cls, tensor: Tensor) -> Indices:
        """Return the array of a key that is a single tensor."""
        array = tensor._array
        self = cls((array if type(array) is ndarray else materialize(array),))
        self.tensors = ((tensor, version_of(tensor)),)
        return self

    def check_savable(self) -> None:
        """Raise an error for a tensor that was created in inference mode."""
        for tensor, version in self.tensors:
            if version is None:
                tensor._counter[0]  # type: ignore[index]  # which raises

    packed: dict[int, Packed] | None = None
    """The indices that have gone through a pack hook, by position. The list contains None in place of these indices."""

    def element(self, position: int) -> Tensor | None:
        """Return the tensor at `position`."""
        return next((tensor for tensor, _ in self.tensors if tensor._array is self[position]), None)

    def packed_by(self, hooks: Any, positions: Any = None) -> Indices:
        """Return the indices after the pack hook of the pair `hooks` has packed the tensors at `positions` (by default all)."""
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
        """Return the indices, with packed indices restored."""
        packed = self.packed or {}
        result = Indices(
            [packed[position].tensor()._array if position in packed else array for position, array in enumerate(self)]
        )
        result.tensors = self.tensors
        return result

    def given(self) -> list[Tensor | None]:
        """Return the indices as tensors."""
        found = [None if array is None else self.element(position) for position, array in enumerate(self)]
        return [
            wrap(array) if each is None and array is not None else each for each, array in zip(found, self, strict=True)
        ]

    def shown(self) -> tuple[Any, ...]:
        """Return the indices as `_saved_indices` shows them, up to the last index that is not None."""
        count = max((position for position, array in enumerate(self, 1) if array is not None), default=0)
        return tuple(None if array is None else wrap(array) for array in self[:count])


def version_of(tensor: Tensor) -> int | None:
    """Return the number of in-place changes of a tensor, or None in inference mode, which does not count changes."""
    if tensor._extra is not None and tensor._extra.inference:
        return None
    return 0 if tensor._counter is None else tensor._counter[0]


def unchanged(indices: Any) -> Any:
    """Return the indices that a node has saved. Raise an error if one has been changed in place since it was used."""
    for tensor, version in getattr(indices, "tensors", ()):
        if tensor._counter is not None and int(tensor._counter[0]) != int(version):
            raise stale_error(None, tensor._array, tensor._counter, version, None, None)
    return indices


@internal(
    Kernel(kernels.index, quiet=True),
    tangent="linear",
    batch=batched_indexing.index,
    aten="Tensor",
    narrow="moves",
    shape_of_elements="masks",
)
@with_transpose(Kernel(kernels.index_backward, quiet=True), batch=batched_indexing.index_backward, narrow="computes")
class index:
    """The elements that arrays of indices or masks select together in the leading dimensions. None selects all indices."""

    saved_display = _SHOWN
    lists = ("indices",)

    def forward(self: Array, indices): ...

    def grad_self(grad, self_shape, indices, xp):
        return xp.index_backward(grad, self_shape, unchanged(indices))


@internal(
    Kernel(kernels.index_put, inplace=kernels.index_put_),
    inplace="disjoint",
    node="IndexPutBackward0",
    function_name="index_put",
    out=False,
    batch=batched_indexing.index_put,
    vmap_name="index_put_",
    narrow="computes",
)
class index_put_arrays:
    """A copy with `values` written, or added, at the indices."""

    saved_display = _SHOWN
    lists = ("indices",)

    def forward(self: Array, indices, values: Array, accumulate: Bool = False): ...

    def grad_self(grad, indices, accumulate, xp):
        if accumulate:
            return grad
        return xp.index_put_arrays(grad, as_masks(unchanged(indices)), xp.zero_of(grad), False)

    def grad_values(grad, indices, xp):
        return xp.index(grad, unchanged(indices))


def as_masks(indices: Any) -> Any:
    """Return the indices with byte masks converted to boolean masks, which the assignment of a single value requires."""
    if all(part is None or part.dtype.char != "B" for part in indices):
        return indices
    return tuple(part.astype(bool) if part is not None and part.dtype.char == "B" else part for part in indices)


@public(namespace=None, on_arrays=creation.zeros_of)
def zero_of(grad):
    """Return a zero of the dtype of `grad`."""
    return grad.new_zeros(())


def _index_tensors(indices: Any, function: str) -> Any:
    """Return the indices, or raise an error if one of them is not a tensor."""
    require("Sequence", indices, function, "indices", 1)
    require_tensors(indices)
    return indices


@public(method=True, numpy_names=True)
def index_put(input, indices, values, accumulate=False):
    """A copy with `values` at the positions that the tensors `indices` select together."""
    return index_put_arrays(input, Indices.of(_index_tensors(indices, "index_put")), values, accumulate)


@public(method=True)
def index_put_(input, indices, values, accumulate=False):
    """`index_put`, in place."""
    return put_at(input, _index_tensors(indices, "index_put_"), values, accumulate)


@public(namespace=None)
def put_at(input, indices, values, accumulate):
    """`index_put_` with None for the indices of a whole dimension."""
    indices = Indices.of(indices)
    for each, _ in getattr(indices, "tensors", ()):
        if each is input or each._counter is input._counter is not None:
            check_partial_overlap(input._array, list(indices), disjoint=True)
    if shares_elements(input):
        return written_repeatedly(
            input,
            "index_put_",
            "indices] = tensor",
            lambda array: kernels.index_put_(array, indices, values._array, accumulate),
        )
    return index_put_arrays.inplace(input, indices, values, accumulate)


@public()
def _unsafe_masked_index(input, mask, indices, fill):
    """`input[indices]` where `mask` is true, and `fill` elsewhere. Indices out of bounds are clamped."""
    found = index(input, Indices.of(_index_tensors(_within(input, indices), "_unsafe_masked_index")))
    return tensors.where(mask, found, fill) if found._array.size else found


@public()
def _unsafe_masked_index_put_accumulate(input, mask, indices, values):
    """A copy of `input` with `values` added at `indices` where `mask` is true. Indices out of bounds are clamped."""
    if not mask._array.size:
        return input.clone()
    added = tensors.zero_where(values, tensors.logical_not(mask))
    return index_put(input, _within(input, indices), added, True)


def _within(input, indices):
    """Return index tensors limited to the sizes of their dimensions."""
    if len(indices) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(indices)})")
    return [part.clamp(-size, size - 1) for part, size in zip(indices, input._array.shape, strict=False)]


# --- reading --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__getitem__",), retried=False)
def getitem(input, key):
    """`input[key]`."""
    try:
        if (
            (type(input) is Tensor or type(input) in PLAIN_TYPES)
            and not _FLAGS.special
            and type(input._array) is ndarray
        ):
            kind = type(key)
            if kind is int or kind is _slice:
                result = leading_part(input, key, kind)
                if result is not None:
                    return result
            elif kind is tuple:
                if key and type(key[-1]) is Tensor and (indices := whole_indices(key)) is not None:
                    return index(input, Indices.of(indices))
                given: list[Any] = []
                result = basic_view(input, key, given)
                if result is not None:
                    return index(result, Indices.of(given)) if given else result
            elif kind is Tensor and key._array.ndim and key._array.dtype.char in "li?":
                return index(input, Indices.of_one(key))
            elif key is None:
                return unsqueeze(input, 0)
        result, indices = apply_basic(input, key_items(key), isinstance(key, tuple))
        if all(item is None for item in indices):
            return alias(result) if result is input else result
        return index(result, Indices.of(indices))
    except Exception as error:  # noqa: BLE001  (raised again)
        try:
            return repeated(error, "__getitem__", sys._getframe())
        except Exception as final:
            shorten(final)
            raise


def whole_indices(key: tuple[Any, ...]) -> list[Tensor | None] | None:
    """Return the index tensors of a key, with None for each full slice, or None for keys with other parts."""
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


# --- writing --------------------------------------------------------------------------------------------------


@public(namespace=None, method=("__setitem__",), retried=False)
def setitem(input, key, value):
    """`input[key] = value`."""
    try:
        if (
            input._edge is None
            and input._base is None
            and input._extra is None
            and not _FLAGS.special
            and type(input._array) is ndarray
            and assign(input, key, value)
        ):
            return
        if type(input._array) is SparseArray:
            raise TypeError("Cannot assign to a sparse tensor")
        if key is False:
            return
        indices: list[Any] = []
        result = part_to_change(input, key, indices)
        if result is None:
            result, indices = apply_basic(input, (None,) if key is True else key_items(key))
        elif type(value) is float and not indices and result._array.dtype.kind == "f":
            result.fill_(value)
            return
        if not isinstance(value, Tensor):
            value = value_tensor(value, input)
        if indices and any(item is not None for item in indices):
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
        if may_share_memory(result._array, value._array):
            check_overlap(result)
            check_partial_overlap(result._array, [value._array], False)
        result.copy_(value if value._array.shape == sizes else tensors.expand(value, sizes))
    except Exception as error:  # noqa: BLE001  (raised again)
        try:
            repeated(error, "__setitem__", sys._getframe())
        except Exception as final:
            shorten(final)
            raise


def part_to_change(input: Tensor, key: Any, indices: list[Any]) -> Tensor | None:
    """Return the view that the basic parts of a key select, and append its tensors of indices to `indices` (see `basic_view`).

    Return None if the general code is needed.
    """
    if (
        (type(input) is not Tensor and type(input) not in PLAIN_TYPES)
        or _FLAGS.special
        or type(input._array) is not ndarray
    ):
        return None
    kind = type(key)
    if 0 in input._array.strides or (kind is not tuple and kind is not int and kind is not _slice):
        return None
    return basic_view(input, key if kind is tuple else (key,), indices)


def assign(input: Tensor, key: Any, value: Any) -> bool:
    """Write directly into the array, and return True, if NumPy's result equals PyTorch's and no history exists."""
    array = input._array
    kind = type(value)
    if kind is float or kind is int:
        if array.dtype.kind != "f" and (kind is not int or array.dtype.kind != "i"):
            return False
    elif kind is Tensor and value._edge is None and (value._base is None or value._base._edge is None):
        value = value._array
        if value.dtype is not array.dtype or value is array or type(value) is not ndarray:
            return False
        if value.base is not None and may_share_memory(value, array):
            return False
    else:
        return False
    kind = type(key)
    if kind is Tensor:
        key = key._array
        if key.ndim == 0 or not (key.dtype.char in "liq" or (key.dtype.kind == "b" and key.shape == array.shape)):
            return False
        if type(key) is not ndarray:
            return False
    elif kind is tuple:
        key = key_of_numpy(key)
        if key is None:
            return False
    elif (kind is not int or array.ndim == 0) and (kind is not _slice or key.step is not None) and key is not Ellipsis:
        return False
    try:
        if kind is Tensor and key.dtype.kind == "b" and type(value) is not ndarray:
            masked_fill_(array, key, value)
        else:
            array[key] = value
    except (IndexError, ValueError, TypeError, OverflowError):
        return False
    bump(input, "__setitem__", depth=2)
    return True


def key_of_numpy(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the key with arrays in place of index tensors, or None if NumPy may select other elements.

    NumPy treats integers beside index arrays as index arrays too.
    """
    parts: list[Any] = []
    integers = tensors = False
    for part in key:
        kind = type(part)
        if kind is Tensor:
            tensors, part = True, part._array
            if type(part) is not ndarray or part.dtype.char != "l" or not part.ndim:
                return None
        elif kind is int:
            integers = True
        elif part is not Ellipsis and (kind is not _slice or part.step is not None):
            return None
        parts.append(part)
    return None if integers and tensors else tuple(parts)


def value_tensor(value: Any, input: Tensor) -> Tensor:
    """Return a number to be assigned in the dtype of `input`."""
    if isinstance(value, (int, float, complex)):
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        return tensors.scalar_tensor(value, dtype=input.dtype)
    raise TypeError(f"can't assign a {qualified_name(type(value))} to a {input.type()}")


def qualified_name(kind: type) -> str:
    """Return the name of a type, with its module unless it is built in."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def without_leading_ones(value: Tensor) -> Tensor:
    """Return a view of `value` without leading dimensions of size 1."""
    shape = value._array.shape
    extra = 0
    while extra < len(shape) and shape[extra] == 1:
        extra += 1
    return value.view(shape[extra:])
