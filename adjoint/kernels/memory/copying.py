"""Copies of arrays with elements of another type or in another order in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ..._runtime.determinism import must_fill
from ..._runtime.tracebacks import warn
from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import NUMPY, Plan, compiled, empty
from ...device import channels_last, channels_last_3d, contiguous_format, preserve_format
from ...dtypes import bool as boolean
from ...dtypes import from_numpy
from ..runtime.costs import MOVED, PASSES, STEPS, THREADED, TILE_BYTES
from ..runtime.floating import FLOAT16, FLOAT32, HALVES, OFF, WARNINGS, Array, quietly, restore, unwarned
from ..runtime.layout import row_major, row_major_copy
from ..runtime.meta_array import Unread
from ..runtime.narrow_array import Narrow, cast, is_narrow, kept
from ..runtime.scalar import scalar_array
from ..runtime.shapes import broadcast_shapes, can_expand
from .bounds import checked_bytes
from .storage import owner, restrided, strided, to_python


def preserved_order(array: Array) -> tuple[int, ...] | None:
    """Return the dimensions in the order of their strides, the largest first, or None if this is the row-major order.

    Expanded dimensions (stride 0) stay between their adjacent dimensions.
    """
    if array.flags.c_contiguous:
        return None
    order = list(range(array.ndim))[::-1]  # ascending strides while sorting
    steps, shape = array.strides, array.shape
    for position in range(1, len(order)):
        here = position
        for before in range(position - 1, -1, -1):
            first, second = order[before], order[here]
            if steps[first] == 0 or steps[second] == 0:
                continue
            if steps[first] > steps[second] or (steps[first] == steps[second] and shape[first] > shape[second]):
                order[before], order[here] = second, first
                here = before
            else:
                break
    order.reverse()
    return None if order == list(range(array.ndim)) else tuple(order)


def empty_like(array: Array, dtype: Any = None, memory_format: Any = None, make: Any = empty) -> Array:
    """Return an uninitialized array, created by `make`, with the shape of `array` and, by default, its order of dimensions."""
    dtype = array.dtype if dtype is None else dtype
    if memory_format is not None and memory_format is not preserve_format:
        return ordered_empty(array.shape, dtype, order_of(memory_format, array.ndim), make)
    if array.flags.c_contiguous:
        result = make(array.shape, dtype)
        if 1 in array.shape:
            return with_steps(result, tuple(step // array.itemsize for step in array.strides))
        return result
    return ordered_empty(array.shape, dtype, preserved_order(array), make)


def with_steps(array: Array, steps: tuple[int, ...]) -> Array:
    """Return `array` with the given strides in elements, which may differ where a dimension has size 1."""
    byte_steps = tuple(step * array.itemsize for step in steps)
    if byte_steps == array.strides or array.size == 0:
        return array
    return restrided(array, array.shape, byte_steps)


def order_of(memory_format: Any, ndim: int) -> tuple[int, ...] | None:
    """Return the dimensions in the order that they have in memory with `memory_format`, or None for row-major order."""
    if memory_format is None or memory_format is contiguous_format:
        return None
    if memory_format is channels_last:
        if ndim != 4:
            raise RuntimeError("required rank 4 tensor to use channels_last format")
        return (0, 2, 3, 1)
    if memory_format is channels_last_3d:
        if ndim != 5:
            raise RuntimeError("required rank 5 tensor to use channels_last_3d format")
        return (0, 2, 3, 4, 1)
    raise RuntimeError("unsupported memory format Preserve")


def ordered_empty(shape: tuple[int, ...], dtype: Any, order: tuple[int, ...] | None, make: Any = numpy.empty) -> Array:
    """Return an uninitialized array whose dimensions are in memory in `order`, the slowest first."""
    if order is None:
        return make(shape, dtype)
    inner = make([shape[dim] for dim in order], dtype)
    back = [0] * len(order)
    for position, dim in enumerate(order):
        back[dim] = position
    return inner.transpose(back)


def strided_empty(shape: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Array:
    """Return an uninitialized array with the given strides in elements, which owns exactly the memory that it spans."""
    span = checked_bytes(shape, steps, 0, dtype.itemsize, operation="empty_strided")
    memory = numpy.empty(span // dtype.itemsize, dtype)
    return strided(memory, shape, steps, 0)


def uninitialized(array: Array, start: int = 0) -> Array:
    """Return `array`, whose memory is new from byte `start` on.

    If deterministic algorithms are requested, the new elements become NaN or the largest number of the dtype.
    """
    if must_fill() and not isinstance(array, Unread) and owner(array).nbytes > start:
        kind = from_numpy(array.dtype)
        whole = kind.is_complex or kind.is_floating_point
        value = math.nan if whole else kind is boolean or numpy.iinfo(array.dtype).max
        root = owner(array)
        count = (root.nbytes - start) // array.itemsize
        fill_(strided(root, (count,), (1,), start // array.itemsize, array.dtype), value)
    return array


def clone(array: Array, memory_format: Any = None) -> Array:
    """Return a copy in separate memory."""
    few = array.size < THREADED or array.itemsize > 8
    if few and memory_format is None and array.flags.c_contiguous and SHAPES.recorder is None:
        copy = numpy.array(array)  # also for NumPy's scalars
        if copy.strides == array.strides:  # dimensions of size 1 do not determine the order
            return copy
    result = empty_like(array, None, memory_format)
    copy_elements(result, array)
    return result


_COPY = compiled("memory.copying.copy_into", least=MOVED)
_COPY_ROWS = compiled("memory.copying.copy_into", least=THREADED)
_CONVERT = compiled("memory.copying.convert", least=THREADED)
_CONVERT_HALVES = compiled("memory.copying.convert", least=PASSES)


@compiled("memory.copying.half", least=PASSES, cost=1)
def _half(array: Array, dtype: Any) -> Plan:
    """Convert from float16 or to float16."""
    return NUMPY


def copy_elements(target: Array, source: Array) -> None:
    """Copy like `numpy.copyto`, but copy large arrays with compiled loops. Both arrays have one dtype and do not overlap."""
    if target.size < MOVED and type(target) is numpy.ndarray and not LOOPS.every_size:
        target[...] = source  # in half the time of `numpy.copyto`
        return
    copy = _COPY_ROWS if target.flags.c_contiguous and source.flags.c_contiguous else _COPY
    if copy.run(target.size, target, source) is NotImplemented:
        numpy.copyto(target, source)


def contiguous(array: Array, memory_format: Any = None) -> Array:
    """Return `array` itself if its elements are in row-major order. Otherwise return a row-major copy."""
    return row_major(array) if array.flags.c_contiguous or array.size < MOVED else row_major_copy(array)


def filled_like(array: Array, value: Array) -> Array:
    """Return an array like `array` filled with the element of `value`, which has no dimensions."""
    return clone(expanded(convert(value, array.dtype), array))


_DOUBLE = numpy.dtype(numpy.float64).num
"""NumPy's number of float64. The numbers of booleans, integers and float32 are smaller."""

_COMPLEX = numpy.dtype(numpy.complex128).num
"""NumPy's number of complex128, the largest of those above and of complex64."""

_ROUNDED = {pair for half in HALVES for pair in ((FLOAT32, half), (half, FLOAT32))}
"""The conversions between float32 and half types."""


def convert(array: Array, dtype: Any, memory_format: Any = None) -> Array:
    """Return a copy with elements of `dtype`. If it is real, imaginary parts are dropped with a warning."""
    if (
        type(array) is numpy.ndarray
        and memory_format is None
        and (array.flags.c_contiguous or (array.ndim == 2 and array.flags.f_contiguous))
        and (
            array.size < THREADED
            if array.dtype.num <= _DOUBLE and dtype.num <= _COMPLEX
            else array.size < PASSES and (array.dtype, dtype) in _ROUNDED and not LOOPS.every_size
        )
    ):
        if (array.dtype is FLOAT16 or dtype is FLOAT16) and array.size >= STEPS and array.flags.c_contiguous:
            found = _half(array, dtype)
            if found is not NotImplemented:
                return found
        return quietly(array.astype, dtype)
    array = real_part(array, dtype)
    if memory_format is None and isinstance(array, Unread):
        return array.astype(dtype)
    if type(array) is Narrow or is_narrow(dtype):
        result = empty_like(array, dtype, memory_format)
        result[...] = cast(array, dtype)
        return kept(result)
    if 0 in array.strides and type(array) is numpy.ndarray:
        once = array[tuple([slice(0, 1) if step == 0 else slice(None) for step in array.strides])]
        if once.size < array.size:
            result = empty_like(array, dtype, memory_format)
            copy_elements(result, numpy.broadcast_to(convert(once, dtype), array.shape))
            return result
    if memory_format is None and dtype != array.dtype:
        conversion = _CONVERT_HALVES if dtype in HALVES or array.dtype in HALVES else _CONVERT
        found = conversion.run(array.size, array, dtype)
        if found is not NotImplemented:
            return numpy.asarray(found)
    narrowed = dtype.itemsize == 2 and array.dtype.itemsize > 4 and dtype in HALVES
    with unwarned():
        source = array.astype(numpy.float32) if narrowed else array  # PyTorch rounds twice, too
        if memory_format is None and array.flags.c_contiguous:
            return source.astype(dtype)
        result = empty_like(array, dtype, memory_format)
        numpy.copyto(result, source, casting="unsafe")
    return result


def widen(array: Array) -> Array:
    """Return an array of a half type as float32, and other arrays unchanged."""
    dtype = array.dtype
    if dtype.itemsize != 2 or dtype not in HALVES:
        return array
    return array.astype(FLOAT32) if array.size < STEPS else convert(array, FLOAT32)


def rounded(array: Array, dtype: Any) -> Array:
    """Return `array` itself if it has this dtype, otherwise a converted copy, with one rounding."""
    if array.size >= STEPS and array.dtype is FLOAT32 and dtype in HALVES:
        return convert(array, dtype)
    return array.astype(dtype, copy=False)


def to_dtype(self: Array, dtype: Any, memory_format: Any = None) -> Array:
    """Return the result of `convert` for a dtype of adjoint."""
    return convert(self, dtype.numpy, memory_format)


def real_part(array: Array, dtype: Any) -> Array:
    """Return the real part of a complex array that must become real. Return other arrays unchanged."""
    if array.dtype.kind in "cW" and dtype.kind not in "cbW":
        warn("Casting complex values to real discards the imaginary part")
        return array.real
    return array


def expanded(source: Array, array: Array) -> Array:
    """Return `source`, broadcast to the shape of `array`, to which it will be written. Return its real part if necessary."""
    source = real_part(source, array.dtype)
    if source.shape == array.shape:
        return source
    shape = broadcast_shapes(array.shape, source.shape)
    if shape != array.shape:
        raise RuntimeError(f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(shape)}")
    return numpy.broadcast_to(source, array.shape)


_EFFORT = 1000
"""The maximum amount of work, in NumPy's unit, to determine whether two arrays have a common element."""


def may_overlap(first: Array, second: Array) -> bool:
    """Return whether two arrays may have an element in common. Adjacent parts of one array have no element in common."""
    if not numpy.may_share_memory(first, second):
        return False
    try:
        return bool(numpy.shares_memory(first, second, max_work=_EFFORT))  # type: ignore[arg-type]  # its stubs know two of the numbers
    except numpy.exceptions.TooHardError:
        return True


def copy_(self: Array, other: Array, non_blocking: bool = False) -> None:
    """Write `other`, broadcast and converted, to `self`."""
    if (
        self.size < PASSES
        and self.dtype.num <= _DOUBLE >= other.dtype.num
        and (other.shape == self.shape or can_expand(other.shape, self.shape))
    ):
        if other.dtype is self.dtype:
            self[...] = other  # in half the time of `numpy.copyto`
            return
        token = WARNINGS[OFF]
        try:
            self[...] = other
        finally:
            restore(token)
        return
    if other.dtype == self.dtype and other.shape == self.shape:
        if other.size < MOVED or may_overlap(self, other):
            numpy.copyto(self, other)
        else:
            copy_elements(self, other)
        return
    source = expanded(other, self)
    if self.size >= PASSES and self.flags.c_contiguous and not numpy.may_share_memory(self, source):
        conversion = _CONVERT_HALVES if self.dtype in HALVES or source.dtype in HALVES else _CONVERT
        if conversion.run(self.size, source, self.dtype, self) is not NotImplemented:
            return
    if self.dtype.itemsize == 2 and source.dtype.itemsize > 4 and self.dtype in HALVES:
        source = source.astype(numpy.float32)
    with unwarned():
        numpy.copyto(self, source, casting="unsafe")


def fill_(self: Array, value: Any) -> None:
    """Write the number `value` to every element of `self`. It raises the same errors as `scalar_array`."""
    if 0 in self.strides:
        self = distinct(self)
    if self.size == self.itemsize == 1 and is_narrow(self.dtype):  # a single element saturates in PyTorch
        kept(self)[...] = value
    elif self.nbytes >= TILE_BYTES:
        with numpy.errstate(all="ignore"):
            number = scalar_array(value, from_numpy(self.dtype))
        copy_elements(self, number)
    elif (self.dtype.kind == "f" and self.itemsize > 2 and type(value) is float and -3e38 < value < 3e38) or (
        self.dtype.char == "l" and type(value) is int and -(2**63) <= value < 2**63
    ):
        self.fill(value)
    else:
        with unwarned():
            self[...] = scalar_array(value, from_numpy(self.dtype))


def filled_with(array: Array, value: Any) -> Array:
    """Set all elements of the array, if it has any, to `value`, and return the array."""
    if not isinstance(array, Unread):
        fill_(array, value)
    return array


def array_of(shape: Any, dtype: Any, value: Any = 1.0) -> Array:
    """Return a new array filled with `value`. For small arrays, NumPy's functions take five times as long."""
    array = numpy.empty(shape, dtype)
    fill_(array, value)
    return array


def full_like(array: Array, value: Any) -> Array:
    """Return an array like `array` filled with the number `value`. It raises the same errors as `scalar_array`."""
    result = empty_like(array)
    copy_elements(result, scalar_array(value, from_numpy(array.dtype)))
    return result


def fill_with_(self: Array, value: Array) -> None:
    """Write the only element of `value` to every element of `self`."""
    copy_(distinct(self), value)


def zero_(self: Array) -> None:
    """Write zero to every element of `self`."""
    if self.dtype.num > _DOUBLE and is_narrow(self.dtype):
        self = self.view(f"u{self.itemsize}")
    if 0 in self.strides:
        self = distinct(self)
    if self.nbytes >= TILE_BYTES:
        copy_elements(self, numpy.zeros((), self.dtype))
    else:
        self.fill(0)


def distinct(array: Array) -> Array:
    """Return a writable view with one element for each set of elements of `array` that share memory."""
    if array.ndim == 0:
        return array
    part = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
    part.flags.writeable = True
    return part


def fill_diagonal(self: Array, fill_value: Any, wrap: bool = False) -> Array:
    """Return a copy to which `fill_diagonal_` has been applied."""
    result = clone(self)
    fill_diagonal_(result, fill_value, wrap)
    return result


def fill_diagonal_(self: Array, fill_value: Any, wrap: bool = False) -> None:
    """Write a number to the main diagonal. With `wrap`, the diagonal of a tall matrix starts again below its end."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    numpy.fill_diagonal(self, scalar_array(fill_value, from_numpy(self.dtype)), wrap)


def mapped(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a Python function to the elements of arrays with one shape, as Python numbers. Return the results."""
    values = [function(*numbers) for numbers in zip(*(to_python(array.reshape(-1)) for array in arrays), strict=True)]
    for value in values:
        if not isinstance(value, (int, float, complex)):
            raise TypeError(f"must be real number, not {type(value).__name__}")
    return numpy.array(values, numpy.result_type(*values) if values else None).reshape(arrays[0].shape)
