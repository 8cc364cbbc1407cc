"""Check whether a size, strides and an offset stay within a storage.

Every array on existing memory is created only after this check.

NumPy's arithmetic may overflow to a wrong position that appears valid. Python's integers cannot overflow.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy

_LIMIT = sys.maxsize + 1
"""The limit of NumPy's counts of bytes and elements: 2**63, or 2**31 if addresses have 32 bits."""

_LONG = 2**63

_MOST_DIMS = 64
"""The maximum number of dimensions of a NumPy array."""

_INTEGERS = {int}

_LENGTHS = {
    "as_strided": "mismatch in length of strides and shape",
    "empty_strided": "dimensionality of sizes ({}) must match dimensionality of strides ({})",
}
"""The message for a size and strides of different lengths."""


def whole(value: Any) -> int:
    """Convert a value that Python accepts as an integer to a 64-bit integer. A bool is not accepted."""
    if type(value) is int and -_LONG <= value < _LONG:
        return value
    if isinstance(value, (bool, numpy.bool_)):
        raise TypeError(f"expected an integer, not {type(value).__name__}")
    number = operator.index(value)
    if not -_LONG <= number < _LONG:
        raise ValueError("Overflow when unpacking long long")
    return number


def checked_bytes(
    size: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, available: int | None = None,
    operation: str = "set_",
) -> int:  # fmt: skip
    """Return the number of bytes that a storage needs for elements of `itemsize` bytes at the described positions.

    `stride` and `offset` count elements. If there are only `available` bytes, the elements must be within them.
    PyTorch's functions have different messages for the same mistake, and check mistakes in different orders.
    `operation` selects the function.
    """
    if not {type(offset), *map(type, size), *map(type, stride)} <= _INTEGERS:
        raise TypeError("storage offset, sizes and strides must be int")
    viewing = operation == "as_strided"
    if len(size) != len(stride):
        words = _LENGTHS.get(operation, "unequal size length ({}) and stride length ({})")
        raise RuntimeError(words.format(len(size), len(stride)))
    if viewing and min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if len(size) > _MOST_DIMS:
        raise RuntimeError(f"tensors of more than {_MOST_DIMS} dimensions are not supported, got {len(size)}")
    empty = 0 in size
    count = math.prod([length for length in size if length] if empty else size)
    countable = count < _LIMIT and min(size, default=0) >= 0
    if not countable and not viewing:
        strides_overflow = empty and math.prod(size[: list(size).index(0)]) < _LIMIT
        raise RuntimeError(
            "Stride calculation overflowed" if strides_overflow else "numel: integer multiplication overflow"
        )
    needed = 0 if empty else (_last(size, stride, offset, itemsize) + 1) * itemsize
    if needed >= _LIMIT:
        strides = "" if operation == "resize_" or not stride else f" and strides={list(stride)}"
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}{strides}")
    if available is not None and needed > available:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {available}"
        )
    if not countable or count * itemsize >= _LIMIT:  # more than NumPy can address, although all may be one element
        raise RuntimeError("numel: integer multiplication overflow")
    return needed


def _last(size: Sequence[int], stride: Sequence[int], offset: int, itemsize: int) -> int:
    """Return the position of the last element in the storage, or one beyond all positions if an element is out of reach."""
    last = offset
    for length, step in zip(size, stride, strict=True):
        distance = (length - 1) * step
        if distance < 0 or abs(step) * itemsize >= _LIMIT:
            return _LIMIT
        last += distance
    return last


# --- errors of NumPy that say that memory does not suffice ----------------------------------------------------


class AllocationError(RuntimeError, MemoryError):
    """The error for memory that could not be allocated, which is PyTorch's `RuntimeError` and Python's `MemoryError`."""


_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded")

_TOO_WIDE = ("too large to convert to C", "cannot fit 'int' into an index-sized integer")


_OVERFLOWED = f"Storage size calculation overflowed: the elements would take 2**{_LIMIT.bit_length() - 1} bytes or more"


def check_addressable(needed: int) -> None:
    """Raise an error if NumPy cannot represent the number of bytes `needed`."""
    if needed >= _LIMIT:
        raise RuntimeError(_OVERFLOWED)


def in_words_of_pytorch(error: Exception) -> Exception | None:
    """Return the error that replaces NumPy's error for an invalid size or integer, or None for other errors.

    >>> in_words_of_pytorch(ValueError("array is too big; ..."))
    RuntimeError('Storage size calculation overflowed: the elements would take 2**63 bytes or more')
    """
    text = str(error)
    if isinstance(error, MemoryError) and not isinstance(error, AllocationError):
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        size = (
            ""
            if shape is None or dtype is None
            else f": you tried to allocate {math.prod(shape) * dtype.itemsize} bytes"
        )
        return AllocationError(
            f"DefaultCPUAllocator: can't allocate memory{size}. Error code 12 (Cannot allocate memory)"
        )
    if type(error) is ValueError and text.startswith(_TOO_LARGE):
        return RuntimeError(_OVERFLOWED)
    if type(error) is OverflowError and any(words in text for words in _TOO_WIDE):
        return ValueError("Overflow when unpacking long long")
    return None
