"""Arrays that are created from Python data: numbers, nested sequences of numbers and of arrays, and arrays themselves."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ... import dtypes
from ..._runtime.tracebacks import warn
from ...dtypes import dtype
from ..memory import storage
from ..memory.copying import convert
from ..runtime.floating import OFF, WARNINGS, Array, restore, unwarned
from ..runtime.narrow_array import cast

Unwrap = Callable[[Any], Any]


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))
_PLAIN_INTEGERS = frozenset((bool, int))
_LISTS = {list}
_NESTED = {list, tuple}
_MOST_DIMS = 128
_HEAP_TYPE = 1 << 9  # the flag of types that are created at run time, such as classes


def array_from_data(data: Any, kind: dtype | None = None, unwrap: Unwrap = lambda value: value) -> Array:
    """Return a new array that holds `data`: a number, nested sequences of numbers, or an array.

    `kind` is the type of the elements. If it is None, it is inferred from the data: Python floats and complex numbers
    have the default types, integers have the type int64, and NumPy scalars and arrays keep their types. The types of
    several elements are promoted. `unwrap` converts tensors at any depth to arrays.
    """
    kind_of_data = type(data)
    array = _quick_array(data, kind_of_data, kind)
    if array is not None:
        return array
    if kind_of_data not in _PYTHON_NUMBERS and kind_of_data not in (list, tuple):
        # A subclass of arrays has its own indexing.
        data = data.view(numpy.ndarray) if isinstance(data, numpy.ndarray) else unwrap(data)
        if not hasattr(data, "dtype") and hasattr(data, "__dlpack__"):
            data = numpy.from_dlpack(data)
        if isinstance(data, numpy.ndarray):
            check_array(data)
            return convert(data, (kind or dtypes.from_numpy(data.dtype)).numpy)
    shape = _shape_of(data)
    elements = _Elements(unwrap, kind)
    if elements.collect(data, shape):
        return elements.array(shape, kind)
    error = _ragged_error(data, shape, kind or _inferred(data, unwrap))
    assert error is not None
    raise error


_WIDE_FLOATS = {None, dtypes.float32, dtypes.float64}


def _quick_array(data: Any, kind_of_data: Any, kind: dtype | None) -> Array | None:
    """Convert the most frequent data quickly: one float or int, or only such numbers in one or two levels of lists."""
    if kind_of_data is list:
        types = set(map(type, data))
        if types == _LISTS and len(set(map(len, data))) == 1:
            types = set().union(*[map(type, row) for row in data])
        kind_of_data = types.pop() if len(types) == 1 else None
    if kind_of_data is float and kind in _WIDE_FLOATS:
        kind = kind or dtypes.get_default_dtype()
    elif kind_of_data is int and (kind in _WIDE_FLOATS or kind is dtypes.int64):
        kind = kind or dtypes.int64
    else:
        return None
    token = WARNINGS[OFF]
    try:
        return numpy.array(data, kind.numpy)
    except OverflowError:
        return None
    finally:
        restore(token)


def check_array(array: Array) -> None:
    """Raise an error for an array of strings, with another byte order, or with negative or fractional strides."""
    dtypes.from_numpy(array.dtype)
    if array.ndim and min(array.strides) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not array.flags.c_contiguous and any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )


def is_sequence(value: Any) -> bool:
    """Return whether a value has items, like a `list`, `collections.deque`, `array.array` or string, and is not a tensor."""
    if isinstance(value, (list, tuple, str, bytes)):
        return True
    if isinstance(value, numpy.ndarray):
        return value.ndim > 0
    return (
        hasattr(value, "__getitem__")
        and hasattr(value, "__len__")
        and not isinstance(value, (dict, numpy.generic))
        and (not hasattr(value, "_array"))
    )


def _shape_of(data: Any) -> tuple[int, ...]:
    """Return the shape that the first element of each level implies."""
    shape: list[int] = []
    while is_sequence(data):
        if isinstance(data, (str, bytes)):
            if not shape:
                raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        shape.append(len(data))
        if not shape[-1]:
            break
        if len(shape) > _MOST_DIMS:  # the items of a `numpy.matrix` are matrices
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        data = data[0]
    return tuple(shape)


def _flattened(data: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """Return the elements of lists and tuples nested to `shape`, or None if `data` is something else."""
    items = [data]
    for size in shape:
        if not set(map(type, items)) <= _NESTED or set(map(len, items)) != {size}:
            return None
        items = list(itertools.chain.from_iterable(items))
    return items


class _Elements:
    """Collects the numbers in nested sequences, in order, and their types."""

    def __init__(self, unwrap: Unwrap, wanted: dtype | None = None) -> None:
        self.unwrap = unwrap
        self.wanted = wanted
        self.values: list[Any] = []
        self.kinds: set[dtype] = set()

    def collect(self, data: Any, shape: tuple[int, ...]) -> bool:
        """Add the numbers of `data`. Return False if it does not have `shape`."""
        if not shape:
            return self._add(data)
        flat = _flattened(data, shape)
        if flat is not None:
            return self._add_all(flat)
        if isinstance(data, numpy.ndarray):
            return self._add_array(data, shape)
        if not is_sequence(data) or len(data) != shape[0]:
            return shape[0] == 0 and is_sequence(data)
        if not isinstance(data, (list, tuple)):
            # The items of a Series have its dtype, but those of its iterator do not.
            data = [data[i] for i in range(len(data))]
        if len(shape) > 1:
            return all(self.collect(item, shape[1:]) for item in data)
        return self._add_all(data)

    def _add_all(self, items: Sequence[Any]) -> bool:
        """Add the numbers of the innermost sequences. Return False if one item is a sequence."""
        types = set(map(type, items))
        if types <= _PYTHON_NUMBERS:
            self.kinds.update(dtypes.scalar_dtype(kind()) for kind in types)
            self.values.extend(items)
            return True
        if len(types) == 1 and issubclass(type(items[0]), numpy.generic):
            self.kinds.add(dtypes.from_numpy(items[0].dtype))
            self.values.extend(storage.to_python(numpy.array(items)))
            return True
        if len(types) == 1 and _LISTS.isdisjoint(types):
            arrays = [self.unwrap(item) for item in items]
            if all(
                type(array) is numpy.ndarray and array.size == 1 and array.dtype.kind in "biufc" for array in arrays
            ):
                found = {array.dtype for array in arrays}
                for kind in found:
                    self._check_integer(kind)
                self.kinds.update(map(dtypes.from_numpy, found))
                self.values.extend([array.item() for array in arrays])
                return True
        return all(map(self._add, items))

    def _add(self, item: Any) -> bool:
        if type(item) in _PYTHON_NUMBERS:
            self.kinds.add(dtypes.scalar_dtype(item))
            self.values.append(item)
            return True
        array = self.unwrap(item)
        if type(array) is numpy.ndarray and array.size == 1 and array is not item and array.dtype.kind in "biufc":
            self._check_integer(array.dtype)
            self.kinds.add(dtypes.from_numpy(array.dtype))
            self.values.append(array.item())
            return True
        if is_sequence(item):
            if isinstance(item, (str, bytes)):
                raise _no_number(type(item).__name__, self.wanted)
            return False
        kind, value = _number(item, self.unwrap, self.wanted)
        if kind is not None:
            self.kinds.add(kind)
        self.values.append(value)
        return True

    def _check_integer(self, kind: numpy.dtype[Any]) -> None:
        """Raise an error for tensors without an integer dtype where integers are required."""
        if self.wanted is not None and self.wanted.numpy.kind in "iu" and kind.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")

    def _add_array(self, array: Array, shape: tuple[int, ...]) -> bool:
        if array.shape != shape:
            return False
        if not self.kinds:
            warn(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
                "single numpy.ndarray with numpy.array() before converting to a tensor."
            )
        self.kinds.add(dtypes.from_numpy(array.dtype))
        self.values.extend(storage.to_python(array.view(numpy.ndarray).reshape(-1)))
        return True

    def array(self, shape: tuple[int, ...], kind: dtype | None) -> Array:
        """Return the numbers as an array of `kind`, or of the type to which all their types promote."""
        return _array_of(self.values, kind or self.kind(), self.kinds).reshape(shape)

    def kind(self) -> dtype:
        """Return the type to which the types of all numbers promote."""
        kinds = list(self.kinds)
        result = kinds[0] if kinds else dtypes.get_default_dtype()
        for found in kinds[1:]:
            result = dtypes.promote_types(result, found)
        if result.is_complex and dtypes.get_default_dtype() is dtypes.bfloat16:
            raise RuntimeError("invalid default scalar type for complex")
        return result


def _python_name(item: Any) -> str:
    """Return the name of an object's type as in Python's errors, with its module if the type is not written in Python."""
    kind = type(item)
    return (
        kind.__name__
        if kind.__flags__ & _HEAP_TYPE or kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__name__}"
    )


def _no_number(kind: str, wanted: dtype | None) -> TypeError:
    """Return the error for a string among numbers that must have dtype `wanted`."""
    if wanted is None:
        return TypeError(f"new(): invalid data type '{kind}'")
    if wanted.is_floating_point or wanted.is_complex:
        return TypeError(f"must be real number, not {kind}")
    return TypeError(f"'{kind}' object cannot be interpreted as an integer")


def _number(item: Any, unwrap: Unwrap, wanted: dtype | None) -> tuple[dtype | None, Any]:
    """Return the type of an element, and its value as a Python number."""
    array = unwrap(item)
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        if (
            array.size != 1
            and array.dtype.kind in "iub"
            and not (wanted and (wanted.is_floating_point or wanted.is_complex))
        ):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return dtypes.from_numpy(array.dtype), storage.to_python(numpy.asarray(array).reshape(-1))[0]
    if isinstance(item, (int, float, complex)):
        return dtypes.scalar_dtype(item), item
    if hasattr(item, "__index__"):
        return dtypes.int64, operator.index(item)
    if wanted is None:
        raise RuntimeError(f"Could not infer dtype of {_python_name(item)}")
    if (wanted.is_floating_point or wanted.is_complex) and hasattr(item, "__float__"):
        return dtypes.get_default_dtype(), float(item)
    raise _no_number(_python_name(item), wanted)


_COMPLEX = {dtypes.complex32, dtypes.complex64, dtypes.complex128}


def _array_of(values: list[Any], kind: dtype, kinds: set[dtype]) -> Array:
    if kind is dtypes.bool:
        return numpy.array([bool(value) for value in values], numpy.bool_)
    if not (kind.is_complex or kinds.isdisjoint(_COMPLEX)):
        raise TypeError(
            "must be real number, not complex"
            if kind.is_floating_point
            else "'complex' object cannot be interpreted as an integer"
        )
    with unwarned():
        if kind.roles is not None:
            return cast(numpy.array(values, numpy.complex128 if kind.is_complex else numpy.float64), kind.numpy)
        if kind.itemsize == 2 and kind.is_floating_point:
            return numpy.array(values, numpy.float32).astype(kind.numpy)
        if kind.is_floating_point or kind.is_complex:
            return numpy.array(values, kind.numpy)
    return _integers(values, kind)


def _integers(values: list[Any], kind: dtype) -> Array:
    if kind is dtypes.uint64:
        return numpy.array([_unsigned64(value) for value in values], numpy.uint64)
    limits = numpy.iinfo(kind.numpy)
    lowest = int(limits.min) or -int(limits.max)
    for value in values if set(map(type, values)) - _PLAIN_INTEGERS else ():
        if isinstance(value, float) and not int(limits.min) <= value <= int(limits.max):
            raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    try:
        array = numpy.array([int(value) for value in values], numpy.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if kind is dtypes.int64:
        return array
    if array.size and not (lowest <= array.min() and array.max() <= limits.max):
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    return array.astype(kind.numpy)


def _unsigned64(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("an integer is required")
    if value < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if value >= 1 << 64:
        raise OverflowError("int too big to convert")
    return value


def _inferred(data: Any, unwrap: Unwrap) -> dtype:
    """Return the type of ragged data, which determines the text of its error."""
    elements = _Elements(unwrap)
    pending = [data]
    while pending:
        item = pending.pop()
        if is_sequence(item) and not isinstance(item, (str, bytes)):
            pending.extend(item)
        else:
            elements._add(item)
    return elements.kind()


def _ragged_error(data: Any, shape: tuple[int, ...], kind: dtype, dim: int = 0) -> Exception | None:
    """Return PyTorch's error for nested sequences of different lengths, or None if `data` is not ragged."""
    if not shape:
        if not is_sequence(data):
            return None
        if kind.is_floating_point or kind.is_complex:
            return TypeError(f"must be real number, not {type(data).__name__}")
        return TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
    if not is_sequence(data):
        return TypeError("not a sequence")
    if len(data) != shape[0]:
        return ValueError(f"expected sequence of length {shape[0]} at dim {dim} (got {len(data)})")
    errors = (_ragged_error(item, shape[1:], kind, dim + 1) for item in data)
    return next((error for error in errors if error is not None), None)
