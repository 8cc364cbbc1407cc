"""Arrays made from Python data, and the regular ones: ranges, the identity, triangles of indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy

from ... import dtypes
from ...codegen.acceleration import LARGE, LOOPS, MOVED, THREADED
from ...dtypes import dtype
from ...notices import warn
from ..math.fma import fma32, fma64
from ..memory import storage
from ..memory.copying import convert
from ..runtime.floating import OFF, WARNINGS, refuse, restore, type_name, unwarned
from ..runtime.layout import laid_out
from ..runtime.narrow_array import cast, kept
from ..runtime.scalar import scalar_array
from ..runtime.shapes import broadcast_shapes

Array = numpy.ndarray[Any, Any]
Unwrap = Callable[[Any], Any]


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))
_PLAIN_INTEGERS = frozenset((bool, int))
_LISTS = {list}


# --- from data ------------------------------------------------------------------------------------------------


def array_from_data(data: Any, kind: dtype | None = None, unwrap: Unwrap = lambda value: value) -> Array:
    """A new array holding `data`: a number, nested sequences of numbers, or an array.

    `kind` is the type of the elements, inferred from the data if None: Python floats and complex numbers give the
    default types, integers int64, NumPy's own scalars and arrays keep theirs; the types of several elements are
    promoted. `unwrap` turns tensors, wherever they are, into arrays.

    Raises:
        ValueError: for ragged sequences and integers out of the range of int64.
        TypeError, RuntimeError: for what is not a number, and numbers out of the range of `kind`.
    """
    kind_of_data = type(data)
    if kind is None:
        array = _quick_array(data, kind_of_data)
        if array is not None:
            return array
    if kind_of_data not in _PYTHON_NUMBERS and kind_of_data not in (list, tuple):
        data = unwrap(data)
        if isinstance(data, numpy.ndarray):
            check_array(data)
            return convert(data, (kind or dtypes.from_numpy(data.dtype)).numpy)
    shape = _shape_of(data)
    elements = _Elements(unwrap, kind)
    if elements.collect(data, shape):
        return elements.array(shape, kind)
    error = _ragged(data, shape, kind or _inferred(data, unwrap))
    assert error is not None
    raise error


def _quick_array(data: Any, kind_of_data: Any) -> Array | None:
    """The most frequent data, one float or int, or nothing else in one or two levels of lists, the fast path."""
    if kind_of_data is list:
        types = set(map(type, data))
        if types == _LISTS and len(set(map(len, data))) == 1:
            types = set().union(*[map(type, row) for row in data])
        kind_of_data = types.pop() if len(types) == 1 else None
    if kind_of_data is float:
        token = WARNINGS[OFF]
        try:
            return numpy.array(data, dtypes.get_default_dtype().numpy)
        finally:
            restore(token)
    if kind_of_data is int:
        try:
            return numpy.array(data, numpy.int64)
        except OverflowError:
            return None
    return None


def check_array(array: Array) -> None:
    """Raise for an array that cannot be a tensor's: of strings, of another byte order, running backwards or by fractions."""
    dtypes.from_numpy(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not array.flags.c_contiguous and any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (str, bytes)):
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
    """The shape that the first element of each level suggests."""
    shape: list[int] = []
    while _is_sequence(data):
        if isinstance(data, (str, bytes)):
            if not shape:
                raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
    return tuple(shape)


class _Elements:
    """The numbers in nested sequences, in order, and the types they have."""

    def __init__(self, unwrap: Unwrap, wanted: dtype | None = None) -> None:
        self.unwrap = unwrap
        self.wanted = wanted
        self.values: list[Any] = []
        self.kinds: set[dtype] = set()

    def collect(self, data: Any, shape: tuple[int, ...]) -> bool:
        """Add the numbers of `data`; False if it is not of `shape`."""
        if not shape:
            return self._add(data)
        if isinstance(data, numpy.ndarray):
            return self._add_array(data, shape)
        if not _is_sequence(data) or len(data) != shape[0]:
            return shape[0] == 0 and _is_sequence(data)
        if len(shape) > 1:
            return all(self.collect(item, shape[1:]) for item in data)
        types = set(map(type, data))
        if types <= _PYTHON_NUMBERS:
            self.kinds.update(dtypes.scalar_dtype(kind()) for kind in types)
            self.values.extend(data)
            return True
        return all(self._add(item) for item in data)

    def _add(self, item: Any) -> bool:
        if _is_sequence(item):
            if isinstance(item, (str, bytes)):
                raise _no_number(type(item).__name__, self.wanted)
            return False
        kind, value = _number(item, self.unwrap)
        if kind is not None:
            self.kinds.add(kind)
        self.values.append(value)
        return True

    def _add_array(self, array: Array, shape: tuple[int, ...]) -> bool:
        if array.shape != shape:
            return False
        if not self.kinds:
            warn(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                "list to a "
                "single numpy.ndarray with numpy.array() before converting to a tensor."
            )
        self.kinds.add(dtypes.from_numpy(array.dtype))
        self.values.extend(storage.to_python(array.reshape(-1)))
        return True

    def array(self, shape: tuple[int, ...], kind: dtype | None) -> Array:
        """The numbers as an array of `kind`, or of the type that all of theirs promote to."""
        return _array_of(self.values, kind or self.kind(), self.kinds).reshape(shape)

    def kind(self) -> dtype:
        """The type that those of all numbers promote to."""
        kinds = list(self.kinds)
        result = kinds[0] if kinds else dtypes.get_default_dtype()
        for found in kinds[1:]:
            result = dtypes.promote_types(result, found)
        if result.is_complex and dtypes.get_default_dtype() is dtypes.bfloat16:
            raise RuntimeError("invalid default scalar type for complex")
        return result


def _no_number(kind: str, wanted: dtype | None) -> TypeError:
    """The error for a string among numbers that are to be of dtype `wanted`."""
    if wanted is None:
        return TypeError(f"new(): invalid data type '{kind}'")
    if wanted.is_floating_point or wanted.is_complex:
        return TypeError(f"must be real number, not {kind}")
    return TypeError(f"'{kind}' object cannot be interpreted as an integer")


def _number(item: Any, unwrap: Unwrap) -> tuple[dtype | None, Any]:
    """The type that an element counts as and its value as a Python number."""
    array = unwrap(item)
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        if array.size != 1 and array.dtype.kind in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return dtypes.from_numpy(array.dtype), storage.to_python(numpy.asarray(array).reshape(-1))[0]
    if isinstance(item, (int, float, complex)):
        return dtypes.scalar_dtype(item), item
    if hasattr(item, "__index__"):
        return dtypes.int64, operator.index(item)
    raise RuntimeError(f"Could not infer dtype of {type(item).__name__}")


def _array_of(values: list[Any], kind: dtype, kinds: set[dtype]) -> Array:
    if kind is dtypes.bool:
        return numpy.array([bool(value) for value in values], numpy.bool_)
    if not kind.is_complex and any(found.is_complex for found in kinds):
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
    """The type of ragged data, which decides the words of its error."""
    elements = _Elements(unwrap)
    pending = [data]
    while pending:
        item = pending.pop()
        if _is_sequence(item) and not isinstance(item, (str, bytes)):
            pending.extend(item)
        else:
            elements._add(item)
    return elements.kind()


def _ragged(data: Any, shape: tuple[int, ...], kind: dtype, dim: int = 0) -> Exception | None:
    """PyTorch's error for nested sequences of different lengths, None if `data` has no part in it."""
    if not shape:
        if not _is_sequence(data):
            return None
        if kind.is_floating_point or kind.is_complex:
            return TypeError(f"must be real number, not {type(data).__name__}")
        return TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
    if not _is_sequence(data):
        return TypeError("not a sequence")
    if len(data) != shape[0]:
        return ValueError(f"expected sequence of length {shape[0]} at dim {dim} (got {len(data)})")
    errors = (_ragged(item, shape[1:], kind, dim + 1) for item in data)
    return next((error for error in errors if error is not None), None)


# --- regular --------------------------------------------------------------------------------------------------


def arange(start: Any, end: Any, step: Any, kind: dtype) -> Array:
    """The numbers `start + i * step` before `end`.

    Integers are exact; others are computed in float64 and rounded to `kind`.

    Raises:
        RuntimeError: if `step` is zero or leads away from `end`, or a bound is not finite.
        ValueError: if `step` is zero once cut to an integer.
        NotImplementedError: if `kind` is bool, complex or one that kernels do not compute with.
    """
    if kind is dtypes.bool or kind.is_complex or kind.roles is not None:
        raise refuse("arange_cpu", kind)
    for value in (start, end, step):
        if isinstance(value, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind.is_floating_point:
        return _float_range(float(start), float(step), math.ceil((end - start) / step), kind)
    if kind is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
    if int(step) == 0:
        raise ValueError("step must be nonzero")
    size = -((start - end) // step) if kind is dtypes.int64 else math.ceil((end - start) / step)
    first, distance = int(start), int(step)
    if max(abs(first), abs(first + distance * size)) < 1 << 62:
        if LOOPS.takes(size, THREADED):
            found = numpy.empty(size, numpy.int64)
            if LOOPS.run("create.ranges.integers", found, first, distance) is not NotImplemented:
                return found.astype(kind.numpy, copy=False)
        return numpy.arange(first, first + distance * size, distance).astype(kind.numpy, copy=False)
    return (first + distance * numpy.arange(size, dtype=numpy.int64)).astype(kind.numpy, copy=False)


def _float_range(start: float, step: float, size: int, kind: dtype) -> Array:
    """`start + i * step` with PyTorch's rounding.

    It computes blocks of two 32-byte vectors, each from its first element, rounded to `kind`; what is left singly.
    """
    lanes = 32 // kind.itemsize
    if LOOPS.takes(size, MOVED):
        found = numpy.empty(size, kind.numpy)
        if LOOPS.run("create.ranges.blocks", found, start, step, lanes) is not NotImplemented:
            return found
    values = fma64(numpy.arange(size, dtype=numpy.float64), step, start)
    whole = size - size % (2 * lanes)
    first = convert(values[:whole:lanes], kind.numpy).astype(numpy.float64)[:, None]
    lane = numpy.arange(lanes, dtype=numpy.float64)
    offset = lane * step
    sums = first + offset
    if kind is dtypes.float64:  # one rounding for product and sum: the product's error is that of 3 * step alone
        product_error = step - (offset - numpy.minimum(lane, 2) * step) * (lane == 3)
        back = sums - first
        sums += (first - (sums - back)) + (offset - back) + numpy.where(lane == 3, product_error, 0.0)
    values[:whole] = sums.reshape(-1)
    return convert(values, kind.numpy)


def inclusive_range(start: float, end: float, step: float, kind: dtype) -> Array:
    """The numbers `start + i * step` up to `end`, which is included."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    size = int((end - start) / step) + 1
    return convert(start + numpy.arange(size, dtype=numpy.float64) * step, kind.numpy)


def linspace(start: Any, end: Any, steps: int, kind: dtype) -> Array:
    """`steps` numbers from `start` to `end`, both included, counted from the nearer end as PyTorch does.

    Raises:
        RuntimeError: if `steps` is negative.
        NotImplementedError: if `kind` is bool or one that kernels do not compute with.
    """
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if kind is dtypes.bool or (kind.roles is not None and steps > 1):
        raise refuse("linspace_cpu", kind)
    return _spaced(start, end, steps, kind).astype(kind.numpy, copy=False)


def _spaced(start: Any, end: Any, steps: int, kind: dtype) -> Array:
    """The numbers of `linspace` before they are rounded to `kind`, integers in float64."""
    work = kind.numpy if kind.is_floating_point or kind.is_complex else numpy.dtype(numpy.float64)
    first, last = (scalar_array(value, kind).astype(work)[()] for value in (start, end))
    if steps < 2:
        return numpy.full(steps, first, work)
    result = numpy.empty(steps, work)
    if work.char in "fd" and LOOPS.takes(steps, MOVED):
        written = LOOPS.run("create.ranges.from_both_ends", result, float(first), float(last))
        if written is not NotImplemented:
            return result
    half = steps // 2
    up, down = numpy.arange(half, dtype=numpy.float64), numpy.arange(steps - half, dtype=numpy.float64)[::-1]
    if kind.is_complex:
        step = (last - first) / (steps - 1)
        result[:half], result[half:] = first + step * up, last - step * down
    elif work.itemsize == 2:  # every operation is rounded
        low, high = numpy.float32(first), numpy.float32(last)
        step = (
            ((high - low).astype(work).astype(numpy.float32) / numpy.float32(steps - 1))
            .astype(work)
            .astype(numpy.float32)
        )
        up, down = (index.astype(work).astype(numpy.float32) for index in (up, down))  # type: ignore[assignment]
        result[:half] = low + (up * step).astype(work).astype(numpy.float32)
        result[half:] = high - (down * step).astype(work).astype(numpy.float32)
    else:
        fma = fma32 if work.itemsize == 4 else fma64
        step = (last - first) / work.type(steps - 1)
        result[:half], result[half:] = fma(up, float(step), float(first)), fma(down.copy(), -float(step), float(last))
    return result


def logspace(start: Any, end: Any, steps: int, base: float, kind: dtype) -> Array:
    """`base` to the powers `linspace(start, end, steps)`."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if kind.roles is not None:
        raise refuse("logspace_cpu", kind)
    if kind.is_complex:
        return convert(numpy.power(base, _spaced(start, end, steps, kind)), kind.numpy)
    if steps == 1:
        start = end = float(start)
    elif not kind.is_floating_point:
        start, end = int(start), int(end)
    first, last = (
        (numpy.float32(start), numpy.float32(end)) if kind.itemsize <= 4 and kind.is_floating_point else (start, end)
    )
    step = float((last - first) / max(steps - 1, 1))
    index = numpy.arange(steps, dtype=numpy.float64)
    powers = numpy.where(index < steps // 2, float(first) + step * index, float(last) - step * (steps - 1 - index))
    with unwarned():
        return convert(numpy.power(float(base), powers), kind.numpy)


def eye(n: int, m: int, kind: dtype) -> Array:
    """Ones on the diagonal of an n by m matrix, zeros elsewhere."""
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    if kind is dtypes.complex32:
        raise refuse("eye", kind)
    result = numpy.zeros((n, m), kind.numpy)
    result[:m].reshape(-1)[:: m + 1] = 1
    return result


def tril_indices(row: int, col: int, offset: int) -> Array:
    """Rows and columns of the elements on and below a diagonal, row by row."""
    ends = numpy.clip(numpy.arange(row) + (offset + 1), 0, col)
    return _indices(numpy.zeros_like(ends), ends)


def triu_indices(row: int, col: int, offset: int) -> Array:
    """Rows and columns of the elements on and above a diagonal, row by row."""
    starts = numpy.clip(numpy.arange(row) + offset, 0, col)
    return _indices(starts, numpy.full_like(starts, col))


def _indices(starts: Array, ends: Array) -> Array:
    """Rows and columns of the elements from `starts` to `ends` of each row."""
    counts = ends - starts
    before = numpy.cumsum(counts) - counts
    result: Array = numpy.stack([numpy.arange(len(counts)), before - starts]).repeat(counts, 1)
    numpy.subtract(numpy.arange(result.shape[1]), result[1], result[1])
    return result


# --- complex numbers ------------------------------------------------------------------------------------------


def complex_from_parts(real: Array, imag: Array) -> Array:
    """Complex numbers of the given real and imaginary parts, broadcast together.

    Raises:
        RuntimeError: if the parts are not of one real floating-point type.
    """
    _check_parts(real, imag)
    kind = dtypes.from_numpy(real.dtype).to_complex().numpy
    result = kept(laid_out(numpy.empty(broadcast_shapes(real.shape, imag.shape), kind), (real, imag)))
    if LOOPS.takes(result.size, LARGE):
        from ...codegen.compiled_ufuncs import joined

        if joined(result, real, imag):
            return result
    result.real, result.imag = real, imag
    return result


def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers of the given absolute values and angles, broadcast together.

    Raises as `complex_from_parts` does.
    """
    _check_parts(abs, angle)
    if abs.dtype == numpy.float16:
        raise refuse("polar_cpu", abs)
    return complex_from_parts(numpy.asarray(abs * numpy.cos(angle)), numpy.asarray(abs * numpy.sin(angle)))


def _check_parts(first: Array, second: Array) -> None:
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {type_name(first.dtype)} and "
            f"{type_name(second.dtype)}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {type_name(first.dtype)} but got scalar type {type_name(second.dtype)} "
            "for second "
            "argument"
        )


# --- arrays like others ---------------------------------------------------------------------------------------


def zeros_like(array: Array) -> Array:
    """Zeros of the shape and dtype of `array`, row by row in memory."""
    return numpy.zeros(array.shape, array.dtype)


def ones_like(array: Array) -> Array:
    """Ones of the shape and dtype of `array`, row by row in memory."""
    return numpy.ones(array.shape, array.dtype)


def empty_like(array: Array) -> Array:
    """An uninitialised array of the shape and dtype of `array`, row by row in memory."""
    return numpy.empty(array.shape, array.dtype)


def full_like(array: Array, value: Any) -> Array:
    """An array of the shape and dtype of `array`, row by row in memory, of which every element is `value`."""
    return numpy.full(array.shape, value, array.dtype)


def zeros_of(array: Array, shape: tuple[int, ...] = ()) -> Array:
    """Zeros of another shape in the dtype of `array`."""
    return numpy.zeros(shape, array.dtype)
