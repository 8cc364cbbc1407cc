"""The memory behind an array: who owns it, and where and with which steps an array looks into it.

The owner of an array is the end of its `.base` chain. Memory that came from outside (`from_numpy`) is wrapped
by `adopt`, so that the chain ends there and offsets count from the first element handed over, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ...device import channels_last, channels_last_3d
from ...dtypes import from_numpy
from ..runtime.lazy_conj import Pending
from ..runtime.meta_array import Meta, Released

Array = numpy.ndarray[Any, Any]


class _Foreign:
    """Ends the `.base` chain of an array whose memory belongs to somebody else."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_struct__ = array.__array_struct__


def adopt(array: Array) -> Array:
    """An array on the memory of `array` that counts as the owner of it."""
    if array.dtype.kind == "V":  # bfloat16 has no description in the array protocol: pass through integers
        return adopt(array.view(numpy.uint16)).view(array.dtype)
    return numpy.asarray(_Foreign(array))


def owner(array: Array) -> Array:
    """The array at the end of the `.base` chain, which may lead through the stand-ins that `as_strided` leaves."""
    while True:
        base: Any = array.base
        if base is not None and not isinstance(base, numpy.ndarray):
            base = getattr(base, "base", None)
        if not isinstance(base, numpy.ndarray):
            return array
        array = base


def address(array: Array) -> int:
    """The address of the first element."""
    return int(array.__array_interface__["data"][0])


def storage_offset(array: Array) -> int:
    """The distance, in elements, of the first element from the start of the storage."""
    root = owner(array)
    if root is array or array.size == 0:
        return 0
    return (address(array) - address(root)) // array.itemsize


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides in elements; empty arrays have those of a contiguous array in which 0 counts as 1."""
    if array.size == 0:
        return row_major_steps(array.shape)
    size = array.itemsize
    return tuple(step // size for step in array.strides)


def is_contiguous(array: Array, memory_format: Any = None) -> bool:
    """Whether the elements lie in row-major order, or in the order of a channels-last `memory_format`."""
    if memory_format is channels_last:
        return array.ndim == 4 and array.transpose(0, 2, 3, 1).flags.c_contiguous
    if memory_format is channels_last_3d:
        return array.ndim == 5 and array.transpose(0, 2, 3, 4, 1).flags.c_contiguous
    return array.flags.c_contiguous


def strided(array: Array, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> Array:
    """A view of the storage of `array` with the given shape, strides and offset in elements.

    Raises RuntimeError if it would look outside the storage.
    """
    root = owner(array)
    size = array.itemsize
    if 0 not in shape:
        last = offset + sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
        if (last + 1) * size > root.nbytes:
            raise RuntimeError(
                f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize {size} "
                f"requiring a storage size of {(last + 1) * size} are out of bounds for storage of size {root.nbytes}"
            )
    if not root.flags.c_contiguous:
        return numpy.lib.stride_tricks.as_strided(
            storage_elements(root, array.dtype)[offset:], shape, [step * size for step in steps]
        )
    return window(root, array.dtype, shape, tuple(step * size for step in steps), offset * size)


def restrided(array: Array, shape: tuple[int, ...], byte_steps: tuple[int, ...], dtype: Any = None) -> Array:
    """A view from the first element of `array` on, with another shape, other strides in bytes and perhaps another dtype."""
    dtype = dtype or array.dtype
    if array.size and array.dtype.kind != "V":
        if array.flags.c_contiguous:
            return numpy.ndarray(shape, dtype, array, 0, byte_steps)
        base = array.base
        if type(base) is numpy.ndarray and base.size == 1 and base.dtype is array.dtype:  # one number, repeated
            return numpy.ndarray(shape, dtype, base, 0, byte_steps)
    root = owner(array)
    if not root.flags.c_contiguous:
        root = root.transpose(sorted(range(root.ndim), key=lambda dim: -root.strides[dim]))
    if array.size == 0 or not root.flags.c_contiguous:
        source = array
        if dtype != array.dtype:  # a view of one element, as that of all is refused where the last dimension is strided
            source = (array[(slice(0, 1),) * array.ndim] if array.ndim else array.reshape(1)).view(dtype)
        return numpy.lib.stride_tricks.as_strided(source, shape, byte_steps)
    return window(root, dtype, shape, byte_steps, address(array) - address(root))


def window(root: Array, dtype: Any, shape: tuple[int, ...], byte_steps: tuple[int, ...], byte_offset: int) -> Array:
    """An array of the given geometry on the memory of its contiguous owner `root`.

    Unlike that of `as_strided`, its `.base` leads there.
    """
    if root.size == 0:
        return (
            numpy.ndarray(shape, dtype)
            if 0 in shape
            else numpy.lib.stride_tricks.as_strided(root.view(dtype), shape, byte_steps)
        )
    buffer = root.view(numpy.uint16) if root.dtype.kind == "V" else root  # bfloat16 is unknown to the buffer protocol
    return numpy.ndarray(shape, dtype, buffer, byte_offset, byte_steps)


def row_major_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous array."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps)) if shape else ()


def resized(array: Array, shape: tuple[int, ...]) -> Array:
    """A contiguous array of `shape` on the memory of `array`, from its first element on, copied where that is too small."""
    offset, root = storage_offset(array), owner(array)
    needed = offset + math.prod(shape)
    if needed * array.itemsize > root.nbytes:
        if isinstance(root.base, _Foreign):
            raise RuntimeError("Trying to resize storage that is not resizable")
        held = storage_elements(root, array.dtype)
        root = numpy.empty(needed, array.dtype)
        root[: held.size] = held
        return strided(root, shape, row_major_steps(shape), offset)
    return strided(array, shape, row_major_steps(shape), offset)


def dense_and_overlapping(a: Array, b: Array) -> bool:
    """Whether two arrays without gaps between their elements share memory."""
    if not (is_dense(a) and is_dense(b)):
        return False
    first, second = address(a), address(b)
    return first < second + b.nbytes and second < first + a.nbytes


def is_dense(array: Array) -> bool:
    """Whether the elements, in some order of the dimensions, lie in memory without gaps."""
    expected = array.itemsize
    for step, size in sorted((step, size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True


def storage_elements(root: Array, dtype: Any) -> Array:
    """All elements of the memory of its owner `root`, in one dimension."""
    flat = (
        root.reshape(-1)
        if root.flags.c_contiguous
        else numpy.lib.stride_tricks.as_strided(root, (root.size,), (root.itemsize,))
    )
    return flat if flat.dtype == dtype else flat.view(dtype)


def copy_with_memo(array: Array, memo: dict[int, Any]) -> Array:
    """A copy of `array` with its strides, in a copied storage that arrays of one deepcopy share."""
    if isinstance(array, (Meta, Pending)):
        return array.copy()
    root = owner(array)
    key = id(root)
    if key not in memo:
        memo[key] = root.copy(order="K")
    copied = memo[key]
    return strided(
        copied.view(array.dtype) if copied.dtype != array.dtype else copied,
        array.shape,
        element_strides(array),
        storage_offset(array),
    )


PYTHON_NUMBERS = frozenset((float, int, bool, complex))
"""The types of what NumPy's `item` gives, but for the dtypes that `ml_dtypes` adds."""


def to_python(array: Array) -> Any:
    """The elements as nested lists of Python numbers."""
    if array.dtype.kind == "V":  # ml_dtypes' scalars are not Python numbers
        array = array.astype(numpy.float32)
    return array.tolist()


class UntypedStorage:
    """The bytes that a tensor and its views share.

    `replace` puts another array into the tensor that was asked for its storage, of which the array is `seen`.
    """

    def __init__(self, root: Array, seen: Array | None = None, replace: Callable[[Array], None] | None = None) -> None:
        self._root = root
        self._seen = seen
        self._replace = replace

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._root)

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._root.nbytes)

    def size(self) -> int:
        """The number of bytes."""
        return int(self._root.nbytes)

    __len__ = size

    @property
    def _cdata(self) -> int:
        return id(self._root)

    def bytes(self) -> Array:
        """The bytes, as an array of uint8 that shares the memory."""
        root = self._root
        if not root.flags.c_contiguous:
            root = numpy.lib.stride_tricks.as_strided(root, (root.size,), (root.itemsize,))
        return root.reshape(-1).view(numpy.uint8)

    def resize_(self, size: int) -> UntypedStorage:
        """Give the storage another number of bytes; with 0 the memory is given back, and reading the tensor is an error.

        That is so for the tensor whose storage this is: its views keep the memory as it was.
        """
        if self._seen is None or self._replace is None:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if size == self.nbytes():
            return self
        seen = self._seen
        steps, offset = self._steps()
        held = self.bytes()[:size]
        self._root = numpy.empty(size // seen.itemsize, seen.dtype)
        self._root.view(numpy.uint8)[: held.size] = held
        try:
            self._seen = strided(self._root, seen.shape, steps, offset)
        except RuntimeError:  # not enough for all elements
            self._seen = numpy.broadcast_to(numpy.zeros((), seen.dtype), seen.shape).view(Released)
        self._replace(self._seen)
        return self

    def _steps(self) -> tuple[tuple[int, ...], int]:
        """Strides and offset in elements; where the memory had been given back, those of a contiguous tensor."""
        seen = self._seen
        if seen is None or isinstance(seen, Released):
            return row_major_steps(() if seen is None else seen.shape), 0
        return element_strides(seen), storage_offset(seen)

    def __getitem__(self, index: int) -> int:
        return int(self.bytes()[index])

    def tolist(self) -> list[int]:
        """The bytes as Python numbers."""
        return self.bytes().tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"{_listed(self.tolist())}\n[torch.storage.UntypedStorage(device=cpu) of size {len(self)}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._root is self._root

    def __hash__(self) -> int:
        return id(self._root)


def _listed(values: list[Any]) -> str:
    """One value a line."""
    return "\n".join(f" {value}" for value in values)


class TypedStorage(UntypedStorage):
    """A storage seen as elements of one dtype."""

    def __init__(
        self, root: Array, kind: Any, seen: Array | None = None, replace: Callable[[Array], None] | None = None
    ) -> None:
        super().__init__(root, seen, replace)
        self._kind = kind

    def resize_(self, size: int) -> TypedStorage:
        """Give the storage another number of elements; see `UntypedStorage.resize_`."""
        super().resize_(size * self._kind.itemsize)
        return self

    def _elements(self) -> Array:
        return self.bytes().view(self._kind)

    def size(self) -> int:
        """The number of elements."""
        return int(self._elements().size)

    __len__ = size

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self._kind.itemsize)

    def __getitem__(self, index: int) -> Any:
        return to_python(self._elements()[index : index + 1])[0]

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return to_python(self._elements())

    def __repr__(self) -> str:
        kind = from_numpy(self._kind)
        return f"{_listed(self.tolist())}\n[torch.storage.TypedStorage(dtype={kind}, device=cpu) of size {len(self)}]"

    def untyped(self) -> UntypedStorage:
        """The same storage as bytes."""
        return UntypedStorage(self._root, self._seen, self._replace)


def root_of(array: Array) -> Array:
    """The owner of the memory of an array, which has none if it has been given back."""
    return numpy.empty(0, array.dtype) if isinstance(array, Released) else owner(array)


def without_elements(shape: tuple[int, ...], kind: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
    """An array of which all elements are one zero, which cannot be written to."""
    return numpy.broadcast_to(numpy.zeros((), kind), shape)
