"""Making arrays: from Python data, filled, and with regular spacing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .. import dtypes
from ..dtypes import dtype

Array = numpy.ndarray[Any, Any]


def array_from_data(data: Any, kind: dtype | None = None, unwrap: Callable[[Any], Any] = lambda value: value) -> Array:
    """A new array holding `data`: a number, nested sequences of numbers, or anything NumPy reads as an array.

    `kind` is the type of the elements, inferred from the data if None: Python floats and complex numbers give the
    default types, integers int64, NumPy's own scalars and arrays keep theirs. `unwrap` turns tensors within the
    sequences into arrays.

    Raises ValueError for ragged sequences, TypeError or RuntimeError for what is not a number.
    """
    data = unwrap(data)
    if isinstance(data, numpy.ndarray):
        if kind is None:
            kind = dtypes.from_numpy(data.dtype)
        return cast_copy(data, kind)
    if not isinstance(data, (int, float, complex)):
        data = _nested(data, unwrap)
    target = kind if kind is not None else _infer(data)
    try:
        array = numpy.array(data)
        if array.dtype.kind in "biufcV" and not (target.is_floating_point and array.dtype.kind in "iu" and array.dtype.itemsize == 8):
            return cast_copy(array, target)
        return numpy.array(data, dtype=target.numpy)
    except OverflowError:
        raise RuntimeError(f"value cannot be converted to type {target.numpy.name} without overflow") from None
    except ValueError:
        _check_lengths(data, 0)
        raise


def cast_copy(array: Array, kind: dtype) -> Array:
    """A row-major copy of `array` with elements of `kind`; the imaginary part is dropped where `kind` is real."""
    if array.dtype.kind == "c" and not kind.is_complex and kind is not dtypes.bool:
        array = array.real
    with numpy.errstate(all="ignore"):
        return array.astype(kind.numpy, order="C")


def _nested(data: Any, unwrap: Callable[[Any], Any]) -> Any:
    """`data` as nested lists with tensors and NumPy scalars replaced by what NumPy reads."""
    data = unwrap(data)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, (list, tuple)):
        return [
            item if type(item) in (int, float, bool, complex) else _nested(item, unwrap) for item in data
        ]
    if isinstance(data, (int, float, complex, numpy.generic, numpy.ndarray)):
        return data
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return numpy.asarray(data)
    if isinstance(data, Sequence):
        return [_nested(item, unwrap) for item in data]
    if hasattr(data, "__index__"):
        return int(data)
    if hasattr(data, "__float__"):
        return float(data)
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _infer(data: Any) -> dtype:
    """The type for `data`: the highest category of its elements, the widest of that category."""
    found: set[Any] = set()
    _collect_types(data, found)
    result: dtype | None = None
    for kind in found:
        result = kind if result is None else dtypes.promote_types(result, kind)
    return result or dtypes.get_default_dtype()


def _collect_types(data: Any, found: set[Any]) -> None:
    if isinstance(data, list):
        leaf_types = {type(item) for item in data}
        for leaf in leaf_types:
            if leaf in _PYTHON_NUMBERS:
                found.add(dtypes.scalar_dtype(leaf(0)))
            else:
                for item in data:
                    if type(item) is leaf:
                        _collect_types(item, found)
    elif isinstance(data, (numpy.ndarray, numpy.generic)):
        found.add(dtypes.from_numpy(data.dtype))
    else:
        found.add(dtypes.scalar_dtype(data))


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))


def _check_lengths(data: Any, dim: int) -> None:
    """Raise PyTorch's error for ragged nested lists."""
    if not isinstance(data, list) or not data:
        return
    expected = len(data[0]) if isinstance(data[0], list) else None
    for item in data:
        length = len(item) if isinstance(item, list) else None
        if expected is None and length is not None:
            raise TypeError(f"only scalars expected at dim {dim + 1} (got a list)")
        if expected is not None and length is None:
            raise TypeError("not a sequence")
        if length != expected:
            raise ValueError(f"expected sequence of length {expected} at dim {dim + 1} (got {length})")
    for item in data:
        _check_lengths(item, dim + 1)


def arange(start: Any, end: Any, step: Any, kind: dtype) -> Array:
    """The numbers `start + i * step` before `end`, computed in float64 (integers exactly) and rounded to `kind`."""
    if kind.is_floating_point:
        size = max(0, int(numpy.ceil((end - start) / step)))
        return (start + numpy.arange(size, dtype=numpy.float64) * step).astype(kind.numpy)
    size = max(0, -((start - end) // step) if isinstance(step, int) and isinstance(start, int) and isinstance(end, int) else int(numpy.ceil((end - start) / step)))
    return (int(start) + numpy.arange(size, dtype=numpy.int64) * int(step)).astype(kind.numpy)


def linspace(start: Any, end: Any, steps: int, kind: dtype) -> Array:
    """`steps` numbers from `start` to `end`, both included, counted from the nearer end as PyTorch does."""
    if steps == 0:
        return numpy.empty(0, kind.numpy)
    if steps == 1:
        return numpy.array([start]).astype(kind.numpy)
    work = kind.numpy if kind.numpy in _LINSPACE_TYPES else numpy.dtype(numpy.float32)
    if not (kind.is_floating_point or kind.is_complex):
        work = numpy.dtype(numpy.float64)
    first, last = work.type(start), work.type(end)
    step = (last - first) / work.type(steps - 1)
    index = numpy.arange(steps)
    low = first + step * index.astype(work)
    high = last - step * (steps - 1 - index).astype(work)
    return numpy.where(index < steps // 2, low, high).astype(kind.numpy)


_LINSPACE_TYPES = {numpy.dtype(name) for name in ("float32", "float64", "complex64", "complex128")}


def eye(n: int, m: int, kind: dtype) -> Array:
    """Ones on the diagonal of an n by m matrix, zeros elsewhere."""
    return numpy.eye(n, m, dtype=kind.numpy)
