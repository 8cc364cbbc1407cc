"""Keys of `tensor[key]`: every item that NumPy or PyTorch accepts becomes a view or a tensor of indices.

The most frequent keys (integers, slices, None and `...`) have a fast path, which creates one view and a node per part.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy

from ..._runtime.tracebacks import warn
from ...dispatch.declaration import OPERATORS
from ...dispatch.sequential import data_array
from ...kernels.create.data import array_from_data, is_sequence
from ...kernels.shape import view as view_kernels
from ...tape import modes
from ...tape.edges import NOWHERE, current_edge
from ...tape.origin import nearest_user_frame
from ...tape.torch_function import has_override
from ...tape.versions import shared_counter
from ...tape.views import creation_unrecorded
from ...tensor import LEAF, Tensor, new_tensor, wrap, wrap_dim
from ..shape.parts import select, slice
from ..shape.view import unsqueeze

_slice = type(numpy.s_[:])


def key_items(key: Any) -> tuple[Any, ...]:
    """Return a key as a tuple with one item for each part."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(key, (int, _slice, Tensor)) or type(key) is numpy.ndarray or key is None:
        return (key,)
    if is_sequence(key) and len(key) < 32 and any(map(_is_part_of_key, key)):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
            "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
            "which will result either in an error or a different result"
        )
        return tuple(key)
    return (key,)


def _is_part_of_key(item: Any) -> bool:
    return isinstance(item, (list, tuple, Tensor, _slice)) or item is None or item is Ellipsis or is_sequence(item)


_INTEGERS = {int}


def as_part(part: Any) -> Any:
    """Convert one item of a key: lists and arrays become tensors, and integer tensors without dimensions become integers."""
    if part is None or part is Ellipsis or isinstance(part, (bool, _slice)):
        return part
    if type(part) is list and set(map(type, part)) == _INTEGERS:
        try:
            return wrap(numpy.array(part, numpy.int64))
        except OverflowError:
            pass  # raised again below
    if isinstance(part, (list, tuple, numpy.ndarray)) or (not isinstance(part, (int, Tensor)) and is_sequence(part)):
        if isinstance(part, (list, tuple)) and any(isinstance(item, str) for item in part):
            raise TypeError("new(): invalid data type 'str'")
        if isinstance(part, (list, tuple)) and any(map(has_override, part)):
            raise TypeError("the items of the key override the call")
        array = array_from_data(part, unwrap=data_array)
        if array.dtype.kind == "c":
            raise TypeError("'complex' object cannot be interpreted as an integer")
        keep = array.dtype.char in "?B" and (array.size or isinstance(part, numpy.ndarray))
        part = wrap(array if keep else array.astype(numpy.int64, copy=False))
    if isinstance(part, Tensor):
        kind = part._array.dtype
        if part._array.ndim == 0 and kind.kind in "biu" and not hasattr(part, "without_history"):
            return bool(part.item()) if kind.char in "?B" else part.item()
        if kind.kind in "iu" and kind.char not in "liqB":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return part
    named = type(part).__name__
    if isinstance(part, numpy.bool_):
        named = f"numpy.{named}"
    elif hasattr(part, "__index__"):
        return part.__index__()
    raise IndexError(
        f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {named})"
    )


def consumed(part: Any) -> int:
    """Return the number of dimensions that a part of a key covers."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part._array.dtype in (numpy.bool_, numpy.uint8):
        return part._array.ndim
    return 1


def counted(item: Any, part: Any) -> int:
    """Return the number of dimensions that PyTorch counts for an item of a key: one for a list or an array."""
    return 1 if isinstance(part, Tensor) and not isinstance(item, Tensor) else consumed(part)


def apply_basic(input: Tensor, items: tuple[Any, ...], whole: bool = True) -> tuple[Tensor, list[Any]]:
    """Create the views for the basic items of a key, and return the remaining tensors of indices by dimension.

    If `whole` is true, full slices create no view.
    """
    ndim = input._array.ndim
    parts = tuple(map(as_part, items))
    total = sum(map(counted, items, parts))
    if total > ndim:
        if ndim == 0 and len(parts) == 1 and type(parts[0]) is int:
            check_integer(input, 0, parts[0], 0)
        if ndim == 0 and len(parts) == 1 and isinstance(parts[0], _slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    indices: list[Tensor | None] = []
    result, dim = input, 0
    for place, part in enumerate(parts):
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
            check_integer(result, dim, part, place)
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
    """Return the view of the Python slice `part` in dimension `dim`, or with `whole` the tensor itself for a full slice."""
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


def check_integer(input: Tensor, dim: int, position: int, place: int) -> None:
    """Raise an error if `position` is outside dimension `dim`. The error names the position in the key."""
    array = input._array
    if array.ndim == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = array.shape[wrap_dim(dim, array.ndim)]
    if not -size <= position < size:
        if not -(2**63) <= position < 2**63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"index {position} is out of bounds for dimension {place} with size {size}")


_FULL = _slice(None)
_LEADING = [(_FULL,) * dim for dim in range(65)]
"""For each number of leading dimensions, the part of a NumPy key that leaves them unchanged."""

_BOUNDS = (int, type(None))

_FLAGS, _STATE = modes.FLAGS, modes.STATE


def leading_part(input: Tensor, part: Any, kind: type) -> Tensor | None:
    """Return the view of an integer or a slice in the first dimension. Return None if the general code is needed."""
    before = input._array
    try:
        if kind is int:
            array = before[part, ...]
        else:
            start, stop, step = part.start, part.stop, part.step
            if (
                type(start) not in _BOUNDS
                or type(stop) not in _BOUNDS
                or not (step is None or (type(step) is int and step > 0))
            ):
                return None
            array = before[part]
    except (IndexError, TypeError):
        return None
    edge = _recorded_edge(input)
    if edge is not None:
        frame = sys._getframe(2)
        code = frame.f_code
        if code.co_filename is not _FLAGS.file:
            frame = nearest_user_frame(frame)
            code = frame.f_code
        if edge is LEAF:
            edge = input
        select_node, slice_node, _ = _part_nodes()
        if kind is int:
            edge = (select_node(edge, before, array, frame, code, 0, part), 0)
        else:
            edge = (slice_node(edge, before, array, frame, code, 0, start, stop, 1 if step is None else step), 0)
    elif input._extra is not None and input._extra.inference:
        return None
    return _view(input, array, edge)


def basic_view(input: Tensor, key: tuple[Any, ...], indices: list[Any]) -> Tensor | None:
    """Return the view of the integers, slices, None and `...` of a key, with one node per part.

    `indices`, an empty list, receives the tensors of indices by dimension if the key contains such tensors. Return None if the
    general code (`apply_basic`) is needed.
    """
    edge = _recorded_edge(input)
    if edge is not None:
        if edge is LEAF:
            edge = input
        frame = sys._getframe(2)
        code = frame.f_code
        if code.co_filename is not _FLAGS.file:
            frame = nearest_user_frame(frame)
            code = frame.f_code
    elif input._extra is not None and input._extra.inference:
        return None
    select_node, slice_node, unsqueeze_node = _part_nodes()
    first = before = input._array
    dim = more = 0  # `more`: the dimensions that masks cover in addition to one each
    for position, part in enumerate(key):
        kind = type(part)
        try:
            if kind is int:
                array = before[part, ...] if dim == 0 else before[(*_LEADING[dim], part, ...)]
                if edge is not None:
                    edge = (select_node(edge, before, array, frame, code, dim, part), 0)
            elif kind is _slice:
                start, stop, step = part.start, part.stop, part.step
                if (
                    type(start) not in _BOUNDS
                    or type(stop) not in _BOUNDS
                    or not (step is None or (type(step) is int and step > 0))
                ):
                    return None
                if not start and (stop is None or stop >= before.shape[dim]) and step in (None, 1):
                    dim += 1
                    continue
                array = before[part] if dim == 0 else before[(*_LEADING[dim], part)]
                if edge is not None:
                    step = 1 if step is None else step
                    edge = (slice_node(edge, before, array, frame, code, dim, start, stop, step), 0)
                dim += 1
            elif part is None:
                array = view_kernels.unsqueeze(before, dim)
                if edge is not None:
                    edge = (unsqueeze_node(edge, before, array, frame, code, dim), 0)
                dim += 1
            elif part is Ellipsis:
                covered = before.ndim - dim - sum(later is not None for later in key[position + 1 :])
                if covered < 0 or any(later is Ellipsis or _is_mask(later) for later in key[position + 1 :]):
                    return None
                dim += covered
                continue
            else:
                if kind is list:
                    part = as_part(part)
                if type(part) is not Tensor or not part._array.ndim or part._array.dtype.char not in "l?":
                    return None
                indices += [None] * (dim - more - len(indices))
                indices.append(part)
                more += part._array.ndim - 1 if _is_mask(part) else 0
                dim += part._array.ndim if _is_mask(part) else 1
                continue
        except (IndexError, TypeError):
            return None
        before = array
    if dim > before.ndim:
        return None
    if before is first:
        return input if indices else None
    return _view(input, before, edge)


def _is_mask(part: Any) -> bool:
    return type(part) is Tensor and part._array.dtype.char in "?B"


def _recorded_edge(input: Tensor) -> Any:
    """Return the edge of a tensor, or None if nothing is recorded."""
    edge = input._edge if input._base is None else current_edge(input)
    return None if edge is not None and _FLAGS.no_grad and not _STATE.grad_enabled else edge


def _view(input: Tensor, array: Any, edge: Any) -> Tensor:
    """Return a tensor on `array`, a part of the memory of `input`."""
    base = input._base
    result = new_tensor()
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
    if edge is None and _FLAGS.no_grad and not _STATE.grad_enabled:
        result._creation = creation_unrecorded(result._creation)
        if result._base._edge is not None:
            result._edge = NOWHERE
    return result


@functools.cache
def _part_nodes() -> tuple[Any, ...]:
    """Create the nodes of `select`, `slice` and `unsqueeze`."""
    return tuple([OPERATORS[name].code.part_node for name in ("select", "slice", "unsqueeze")])
