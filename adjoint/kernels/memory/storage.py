"""The memory of an array: its owner, and the position and the steps with which an array accesses it.

The owner of an array is the end of its `.base` chain. External memory (`from_numpy`) is wrapped by `adopt`, so that the
chain ends there and offsets count from the first element that was passed, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ... import dtypes
from ..._runtime.first_use import import_late
from ...device import channels_last, channels_last_3d
from ..runtime.addresses import address
from ..runtime.floating import Array
from ..runtime.lazy_conj import LazyConjNeg
from ..runtime.meta_array import Meta, Released, reserved
from ..runtime.narrow_array import kept, widened
from ..runtime.sparse_array import SparseArray
from .bounds import checked_bytes


class _Foreign:
    """The end of the `.base` chain of an array with external memory."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_struct__ = array.__array_struct__


def adopt(array: Array) -> Array:
    """Return an array on the memory of `array`, whose owner covers the memory from the first to the last element."""
    if array.dtype.isbuiltin != 1:  # the array protocol has no description of `ml_dtypes`, so use integers
        return adopt(array.view(f"u{array.itemsize}")).view(array.dtype)
    if array.flags.c_contiguous:
        return numpy.asarray(_Foreign(array))
    size = array.itemsize
    length = checked_bytes(array.shape, element_strides(array), 0, size) // size
    whole = numpy.lib.stride_tricks.as_strided(array, (length,), (size,))
    return window(numpy.asarray(_Foreign(whole)), array.dtype, array.shape, array.strides, 0)


def is_foreign(root: Array) -> bool:
    """Return whether the memory that `root` owns is external, so that only its external owner may resize it."""
    base: Any = root.base  # NumPy stores an object with an array interface in a tuple with the interface
    return base is not None and (type(base) is not tuple or isinstance(base[0], _Foreign))


def owner(array: Array) -> Array:
    """Return the array at the end of the `.base` chain, which may contain the stand-ins that `as_strided` creates."""
    while True:
        base: Any = array.base
        if base is not None and not isinstance(base, numpy.ndarray):
            base = getattr(base, "base", None)
        if not isinstance(base, numpy.ndarray):
            return array
        array = base


def is_shared(array: Array) -> bool:
    """Return whether this array is in memory that processes share."""
    from .shared_memory import Mapping

    return isinstance(root_of(array).base, Mapping)


def storage_offset(array: Array) -> int:
    """Return the distance, in elements, of the first element from the start of the storage."""
    if array.base is None or array.size == 0:
        return 0
    root = owner(array)
    return (address(array) - address(root)) // array.itemsize


def element_strides(array: Array) -> tuple[int, ...]:
    """Return the strides in elements. An empty array has the strides of a contiguous array whose sizes of 0 count as 1."""
    if array.size == 0:
        return row_major_steps(array.shape)
    size = array.itemsize
    return tuple([step // size for step in array.strides])


def is_contiguous(array: Array, memory_format: Any = None) -> bool:
    """Return whether the elements are in row-major order, or in the order of a channels-last `memory_format`."""
    if memory_format is channels_last:
        return array.ndim == 4 and array.transpose(0, 2, 3, 1).flags.c_contiguous
    if memory_format is channels_last_3d:
        return array.ndim == 5 and array.transpose(0, 2, 3, 4, 1).flags.c_contiguous
    return array.flags.c_contiguous


def strided(
    array: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int, dtype: Any = None,
    operation: str = "set_",
) -> Array:  # fmt: skip
    """Return a view of the storage of `array`, with stride and offset in elements of `dtype` (by default the array's).

    If a user or a file specifies size, strides and offset, the view is created here. For `operation` see `checked_bytes`.
    """
    dtype = dtype or array.dtype
    root, itemsize = root_of(array), dtype.itemsize
    checked_bytes(size, stride, offset, itemsize, root.nbytes, operation)
    if 0 in size:
        return window(root, dtype, size, (0,) * len(size), 0)
    if min(stride, default=0) < 0:
        stride = _without_signs(size, stride)
    return window(root, dtype, size, [step * itemsize for step in stride], offset * itemsize)


def _without_signs(size: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """Return `stride` with the strides of a contiguous array in place of negative strides, which only size 1 permits."""
    steps = [*stride, 1]
    for dim in reversed(range(len(size))):
        if steps[dim] < 0:
            steps[dim] = steps[dim + 1] * (size[dim + 1] if dim + 1 < len(size) else 1)
    return tuple(steps[:-1])


def restrided(array: Array, shape: tuple[int, ...], byte_steps: tuple[int, ...], dtype: Any = None) -> Array:
    """Return a view from the first element of `array` on, with another shape, byte strides, and perhaps another dtype."""
    dtype = dtype or array.dtype
    if array.size and array.dtype.isbuiltin == 1:
        if array.flags.c_contiguous:
            found = numpy.ndarray(shape, dtype, array, 0, byte_steps)
            if type(array) is not numpy.ndarray:  # an outline of a recording, or a number
                found = found.view(type(numpy.asanyarray(array)))
            return kept(found)
        base = array.base
        if type(base) is numpy.ndarray and base.size == 1 and base.dtype is array.dtype:  # one number, repeated
            return kept(numpy.ndarray(shape, dtype, base, 0, byte_steps))
    root = owner(array)
    return window(root, dtype, shape, byte_steps, address(array) - address(root))


def window(root: Array, dtype: Any, shape: tuple[int, ...], byte_steps: Sequence[int], byte_offset: int) -> Array:
    """Return an array of the given geometry on the memory of the owner `root`, which is at the end of its `.base` chain."""
    if 0 in shape:  # NumPy requires empty arrays to begin within the memory
        byte_offset = min(byte_offset, root.nbytes)
    direct = root.flags.c_contiguous and root.dtype.isbuiltin == 1  # the buffer protocol does not support other dtypes
    return kept(numpy.ndarray(shape, dtype, root if direct else memory(root), byte_offset, byte_steps))


def memory(root: Array) -> Array:
    """Return all bytes of the memory that `root` owns, as a uint8 array that shares them."""
    if not root.flags.c_contiguous:  # the owner of memory has no gaps
        root = root.transpose(sorted(range(root.ndim), key=lambda dim: -root.strides[dim]))
    return root.reshape(-1).view(numpy.uint8)


def row_major_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps)) if shape else ()


def reallocated(root: Array, length: int) -> Array:
    """Return new memory of `length` bytes that begins with the bytes of the owner `root`."""
    if is_foreign(root):
        raise RuntimeError("Trying to resize storage that is not resizable")
    result = numpy.empty(length, numpy.uint8)
    held = memory(root)[:length]
    result[: held.size] = held
    return result


def dense_and_overlapping(a: Array, b: Array) -> bool:
    """Return whether two arrays without gaps between their elements share memory."""
    if not (is_dense(a) and is_dense(b)):
        return False
    first, second = address(a), address(b)
    return first < second + b.nbytes and second < first + a.nbytes


def is_dense(array: Array) -> bool:
    """Return whether the elements, in some order of the dimensions, are in memory without gaps."""
    expected = array.itemsize
    for step, size in sorted((step, size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True


def copy_with_memo(array: Array, memo: dict[int, Any]) -> Array:
    """Return a copy of `array` with its strides, in a copied storage that arrays of one deepcopy share."""
    if isinstance(array, (Meta, SparseArray, LazyConjNeg)):
        return array.copy()
    root = owner(array)
    key = id(root)
    if key not in memo:
        memo[key] = root.copy(order="K")
    return strided(memo[key], array.shape, element_strides(array), storage_offset(array), array.dtype)


PYTHON_NUMBERS = frozenset((float, int, bool, complex))
"""The types that NumPy's `item` returns, except for the dtypes that `ml_dtypes` adds."""


def to_python(array: Array) -> Any:
    """Return the elements as nested lists of Python numbers."""
    array = widened(array)
    if array.dtype.kind == "V":  # ml_dtypes' scalars are not Python numbers
        array = array.astype(numpy.float32)
    return array.tolist()


def root_of(array: Array) -> Array:
    """Return the owner of the memory of an array, or None if the memory has been released."""
    if isinstance(array, SparseArray):
        raise NotImplementedError(f"Cannot access storage of {array.words}TensorImpl")
    return numpy.empty(0, array.dtype) if isinstance(array, Released) else owner(array)


def without_elements(
    shape: tuple[int, ...], kind: numpy.dtype[Any], stride: tuple[int, ...] | None = None, offset: int = 0
) -> Array:
    """Return a read-only array of zeros. Large arrays take addresses, but no memory.

    `stride` and `offset` count elements. Without `stride`, the array is contiguous.
    """
    steps = row_major_steps(shape) if stride is None else stride
    span = checked_bytes(shape, steps, offset, kind.itemsize, operation="empty_strided")
    try:
        memory = reserved([span], "u1")
    except MemoryError:  # there are not enough addresses
        return numpy.broadcast_to(numpy.zeros((), kind), shape)
    memory.flags.writeable = False
    return strided(memory, shape, steps, offset, kind)


# --- DLPack ---

_ELEMENTS = {
    "bfloat16": (4, 16, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
    "complex32": (5, 32, 1),
}
"""DLPack's descriptions (kind, bits, lanes) of types that NumPy represents as unsigned integers (`DLDataType` in dlpack.h)."""

_DTYPES = {elements: dtypes.HELD[getattr(dtypes, name)] for name, elements in _ELEMENTS.items()}


def capsule_of(array: Any, **keywords: Any) -> Any:
    """Return a capsule for the memory of `array`. `keywords` are the keywords of `__dlpack__`."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.name not in _ELEMENTS:
        return array.__dlpack__(**keywords)
    capsule = array.view(f"u{kind.itemsize}").__dlpack__(**keywords)
    _elements(capsule)[:] = _ELEMENTS[kind.name]
    return capsule


def shared_array(source: Any) -> Any:
    """Return an array on the memory of an object that supports the protocol."""
    try:
        return numpy.from_dlpack(source)
    except (BufferError, RuntimeError):
        return array_in(source.__dlpack__())


def array_in(capsule: Any) -> Any:
    """Return a writable array on the memory in a capsule.

    A capsule does not specify whether its memory is writable. NumPy then creates a read-only array, and PyTorch an
    ordinary tensor.
    """
    elements = _elements(capsule)
    found = _DTYPES.get(tuple(elements))
    if found is not None:
        elements[:] = 1, found.itemsize * 8, 1  # unsigned
    taken = numpy.asarray(_Capsule(capsule))
    return taken if found is None else taken.view(found)


def _elements(capsule: Any) -> Any:
    """Return the description of the elements in the capsule's own memory. Assignments to the description change the capsule."""
    versioned = '"dltensor_versioned"' in repr(capsule)
    ctypes = import_late("ctypes")
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = find(capsule, b"dltensor_versioned" if versioned else b"dltensor") + 32 * versioned
    return (ctypes.c_uint8 * 3).from_address(start + 20)  # after the address, the device and the number of dimensions


class _Capsule:
    """A capsule as an object that supports the protocol, and its memory as a writable array."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule
        self._array = numpy.from_dlpack(self)
        self.__array_interface__ = {**self._array.__array_interface__, "data": (self._array.ctypes.data, False)}

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the processor


def overlaps(size: Any, stride: Any) -> bool:
    """Return whether elements of these sizes and strides share memory, or are interleaved as if they did."""
    reach = 0
    for step, n in sorted((step, n) for step, n in zip(stride, size, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False
