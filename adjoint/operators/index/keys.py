"""Keys of `tensor[key]`. The functions convert every item that NumPy or PyTorch accepts to views or to index tensors."""

from __future__ import annotations

from typing import Any

import numpy

from ..._runtime.tracebacks import warn
from ...interchange import tensor_array
from ...kernels.create.data import array_from_data, is_sequence
from ...tape.torch_function import has_override
from ...tensor import Tensor, wrap, wrap_dim
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


def as_part(part: Any) -> Any:
    """Convert one item of a key: lists and arrays become tensors, and integer tensors without dimensions become integers."""
    if part is None or part is Ellipsis or isinstance(part, (bool, _slice)):
        return part
    if isinstance(part, (list, tuple, numpy.ndarray)) or (not isinstance(part, (int, Tensor)) and is_sequence(part)):
        if isinstance(part, (list, tuple)) and any(isinstance(item, str) for item in part):
            raise TypeError("new(): invalid data type 'str'")
        if isinstance(part, (list, tuple)) and any(map(has_override, part)):
            raise TypeError("the items of the key override the call")
        array = array_from_data(part, unwrap=tensor_array)
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
