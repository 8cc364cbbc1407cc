"""Checks of shapes and dimensions that are passed as arguments: broadcasting, negative and repeated dimensions."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape. The RuntimeError names the first dimension, from the right, in which two sizes differ."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + tuple(result)
        right = (1,) * (rank - len(shape)) + tuple(shape)
        for dim in range(rank - 1, -1, -1):
            if left[dim] != right[dim] and left[dim] != 1 and right[dim] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) at non-singleton "
                    f"dimension {dim}"
                )
        result = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return result


def with_sizes(error: Exception) -> Exception:
    """Return the error of `broadcast_shapes` in place of NumPy's error for shapes that do not broadcast, or `error` itself."""
    text = str(error)
    if type(error) is not ValueError or not text.startswith("operands could not be broadcast"):
        return error
    shapes = [shape.split(",") for shape in re.findall(r"\(([\d,]*)\)", text)]
    try:
        broadcast_shapes(*(tuple(int(size) for size in shape if size) for shape in shapes))
    except RuntimeError as named:
        return named
    return error


def elements_spanned(shape: Sequence[int], steps: Sequence[int]) -> int:
    """Return the number of elements between the first and the last element in memory, inclusive. `steps` count elements."""
    return 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))


def common_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape. The RuntimeError of `torch.broadcast_shapes` names the first shape that does not match."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for index, shape in enumerate(shapes):
        for dim in range(-1, -1 - len(shape), -1):
            if shape[dim] in (1, result[dim]):
                continue
            if result[dim] == 1 and shape[dim] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if result[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! Mismatching argument at index {index} "
                    f"had {shape}; but expected shape should be broadcastable to {result}"
                )
            result[dim] = shape[dim]
    return tuple(result)


def can_expand(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an array of `shape` broadcasts to `target`."""
    if len(shape) > len(target):
        return False
    return shape == target[len(target) - len(shape) :] or all(
        size in (1, other) for size, other in zip(reversed(shape), reversed(target), strict=False)
    )


Dims = int | Sequence[int] | None


def normalize_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front, or raise IndexError. An array without dimensions has 0 and -1."""
    limit = ndim or 1
    if 0 <= dim < limit:
        return dim
    if -limit <= dim < 0:
        return dim + limit
    raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")


def require_dims(array: Array, *dims: int) -> None:
    """Raise IndexError unless `array` has these dimensions. The message differs for an array without any."""
    for dim in dims:
        if not array.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        normalize_dim(dim, array.ndim)


def names_all(dim: Dims) -> bool:
    """Return whether `dim` means all dimensions, which is the case for None and an empty sequence."""
    return dim is None or (isinstance(dim, (tuple, list)) and not dim)


def normalize_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dimensions in `dim` in ascending order, or all dimensions for None and an empty sequence.

    For a zero-dimensional array, the result is empty.

    Raises:
        IndexError: if there is no such dimension.
        RuntimeError: if a dimension occurs twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    given: Sequence[Any] = dim if isinstance(dim, (tuple, list, range)) else (dim,)
    return _ascending(tuple(map(operator.index, given)), ndim)


@functools.lru_cache(256)
def _ascending(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    if not dims:
        return tuple(range(ndim))
    seen: list[int] = []
    for each in dims:
        one = normalize_dim(each, ndim)
        if one in seen:
            raise RuntimeError(f"dim {one} appears multiple times in the list of dims")
        seen.append(one)
    return tuple(sorted(seen)) if ndim else ()
