"""Storages: the memory of tensors as separate objects, viewed as bytes or as elements of one dtype."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy

from ... import dtypes
from ..._runtime.first_use import import_late
from ..._runtime.tracebacks import end_methods_at_caller
from ...device import cpu, meta
from ...device import device as Device
from ...dtypes import get_default_dtype, int64
from ..runtime.addresses import address
from ..runtime.floating import Array
from ..runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..runtime.meta_array import Meta, Released, parked, remade
from .bounds import checked_bytes
from .storage import (
    adopt,
    copy_with_memo,
    element_strides,
    is_foreign,
    is_shared,
    memory,
    reallocated,
    root_of,
    row_major_steps,
    storage_offset,
    strided,
    to_python,
    without_elements,
)

Replace = Callable[[Array, Array], None]


def resized(array: Array, shape: tuple[int, ...]) -> Array:
    """Return a contiguous array of `shape` on the memory of `array`, from its first element on.

    The memory is copied if it is too small.
    """
    whole = UntypedStorage.over(root_of(array), array)
    return whole.extended(shape, row_major_steps(shape), storage_offset(array), array.dtype, "resize_")


def mapped_bytes(filename: Any, shared: bool, length: int) -> Array:
    """Return the first bytes of a file, as `shared_memory.mapped_file` maps them."""
    mapping = import_late("adjoint.kernels.memory.shared_memory").mapped_file(os.fspath(filename), shared, length)
    return numpy.ndarray(length, numpy.uint8, mapping)


class StorageBase:
    """The base of `UntypedStorage`, which has all of its methods. Classes may derive from it, but it has no instances.

    >>> import adjoint as torch
    >>> isinstance(torch.ones(2).untyped_storage(), torch.StorageBase)
    True
    """

    element_kind: Any = numpy.dtype(numpy.uint8)
    filename: str | None = None
    """The file that receives changes, or None."""

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False

    _move_to_shared_memory: ClassVar[Any]
    _reduced: ClassVar[Any]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse to make an instance of this class itself."""
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return super().__new__(cls)

    def __init__(self, size: Any = 0, /, *, allocator: int | None = None, device: Any = None) -> None:
        self._take(_new_memory("torch.UntypedStorage", size, self.element_kind), device)

    def _take(self, root: Array, device: Any) -> None:
        """Become the storage of `root`, or a storage of this number of bytes on the meta device."""
        self._root = root
        self._seen: Array | None = root
        self._replace: Replace | None = None
        if device is not None and Device(device).type == "meta":
            self._seen = parked(root)
            self._root = root_of(self._seen)

    def __reduce__(self) -> Any:
        return self._reduced()

    def without_elements(self) -> Self:
        """Move the storage to the meta device, where it has the same length but no bytes, and return it."""
        self._seen = parked(self._root)
        return self

    @classmethod
    def over(cls, root: Array, seen: Array | None = None, replace: Replace | None = None) -> Self:
        """Return the storage of memory whose owner is `root`.

        `seen`: the array of the tensor whose storage was requested. `replace`: a function that gives this tensor
            another array.
        """
        storage = cls.__new__(cls)
        storage._root, storage._seen, storage._replace = root, seen, replace
        return storage

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> Self:
        """Return the first `nbytes` bytes of a file, mapped into memory.

        Args:
            filename: the path.
            shared: whether changes are written to the file, which is created or extended if necessary.
            nbytes: the number of bytes. A file that is not shared must have at least as many bytes.

        Raises:
            RuntimeError: if the file cannot be opened or is too short.
        """
        storage = cls.over(mapped_bytes(filename, shared, nbytes))
        storage.filename = os.fspath(filename) if shared else None
        return storage

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, dtype: Any = None
    ) -> Self:
        """Return a copy of `count` elements of a buffer, from byte `offset` on.

        They are converted from `byte_order` to the order of this machine.

        Raises:
            RuntimeError: without a dtype.
            ValueError: if the buffer has too few elements, or the byte order is not "native", "little" or "big".
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        content, item = numpy.frombuffer(buffer, numpy.uint8), dtype.itemsize
        if not 0 <= offset <= content.size:
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({content.size}) , but got {offset}"
            )
        if count < 0:
            if (content.size - offset) % item:
                raise ValueError(f"buffer size ({content.size}) must be a multiple of element size ({item})")
            count = (content.size - offset) // item
        if offset + count * item > content.size:
            raise ValueError(
                f"buffer has only {(content.size - offset) // item} elements after offset {offset}, but specified a size "
                f"of {count}"
            )
        content = content[offset : offset + count * item]
        if byte_order == "big":
            content = _swapped(content, dtype)
        return cls.over(content.copy())

    @property
    def device(self) -> Device:
        """The device of the bytes."""
        return meta if isinstance(self._seen, Meta) else cpu

    def data_ptr(self) -> int:
        """Return the address of the first byte, or 0 on the meta device."""
        return 0 if self.device is meta else address(self._root)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._root.nbytes)

    def size(self) -> int:
        """Return the number of bytes."""
        return int(self._root.nbytes)

    def __len__(self) -> int:
        return self.size()

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return int(self.element_kind.itemsize)

    @property
    def _cdata(self) -> int:
        return id(self._root)

    def bytes(self) -> Array:
        """Return the bytes, as an array of uint8 that shares the memory.

        NotImplementedError: on the meta device.
        """
        if self.device is meta and self._root.nbytes:
            raise NotImplementedError(Meta.refusal)
        return memory(self._root)

    def untyped(self) -> StorageBase:
        """Return the same storage as bytes."""
        return self

    def is_shared(self) -> bool:
        """Return whether the bytes are in memory that processes share, or in a file that is mapped."""
        return is_shared(self._root)

    def share_memory_(self) -> Self:
        """Move the bytes to memory that processes share, unless they already are in shared memory.

        Tensors on the storage move with it.

        Raises:
            RuntimeError: on the device `meta`, which has no memory.

        >>> import adjoint as torch
        >>> x = torch.ones(3)
        >>> storage = x.untyped_storage().share_memory_()
        >>> storage.is_shared(), x.is_shared()
        (True, True)
        """
        self._move_to_shared_memory()
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Return False, because there is no accelerator."""
        return False

    def pin_memory(self, device: Any = "cuda") -> Self:
        """Raise an error, because there is no accelerator for which memory could be pinned.

        Raises:
            RuntimeError: always.
        """
        if self.device is meta:
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def _share_fd_cpu_(self) -> Any:
        """Refuse, because processes share memory by segments, which `share_memory_` moves it to."""
        kind = "only available on CPU" if self.device is meta else "use share_memory_() instead"
        raise RuntimeError(f"_share_fd_: {kind}")

    def _share_filename_cpu_(self) -> Any:
        """Refuse, as `_share_fd_cpu_` does."""
        kind = "only available on CPU" if self.device is meta else "use share_memory_() instead"
        raise RuntimeError(f"_share_filename_: {kind}")

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, after the number of elements if `save_size` is true."""
        content = self.bytes()
        file.write((self.nbytes() // element_size).to_bytes(8, "little") * save_size + content.tobytes())

    def _swap_data_ptr_(self, other: StorageBase) -> None:
        """Exchange the memory of two storages of the same size. One of them may be empty instead.

        RuntimeError: if the devices or the sizes differ.
        """
        if self.device != other.device:
            raise RuntimeError(
                f"_swap_data_ptr_: storages must be on the same device, got {self.device} and {other.device}"
            )
        sizes = self.nbytes(), other.nbytes()
        if sizes[0] != sizes[1] and 0 not in sizes:
            raise RuntimeError(
                f"_swap_data_ptr_: storages must have the same nbytes or one must have 0, got {sizes[0]} and {sizes[1]}"
            )
        mine, theirs = self._root, other._root
        self._move(theirs)
        other._move(mine)

    def resizable(self) -> bool:
        """Return whether `resize_` can change the number of bytes."""
        return self._seen is not None and not is_foreign(self._root)

    def resize_(self, size: int) -> Self:
        """Change the number of bytes. If it is 0, the memory is released, and reading the tensor raises an error.

        This applies to the tensor that owns the storage. The views of this tensor keep the old memory.
        """
        if type(size) is not int:
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise _negative(size)
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        if size != self.nbytes():
            self.reallocate(size)
        return self

    def reallocate(self, size: int) -> None:
        """Move to memory with another number of bytes, together with the tensor if it still uses this storage."""
        self._move(reallocated(self._root, size))

    def _move(self, root: Array) -> None:
        """Replace the memory, and also the tensor's memory if it still uses this storage."""
        self._root = root
        seen = self._seen
        if seen is None or self._replace is None or isinstance(seen, Meta):
            return
        steps, offset = self._steps()
        try:
            array = with_lazy_bits(strided(root, seen.shape, steps, offset, seen.dtype), lazy_bits_of(seen))
        except RuntimeError:  # too few bytes for all elements
            array = without_elements(seen.shape, seen.dtype).view(Released)
        self._seen = array
        self._replace(seen, array)

    def check_kind(self, kind: Any, name: str) -> None:
        """Raise an error if these are elements of another type than `kind`, which is called `name`. Bytes may be of any type."""

    def elements(self, kind: Any) -> Array:
        """Return the bytes as elements of `kind`, as many as fit."""
        return strided(self._root, (self.nbytes() // kind.itemsize,), (1,), 0, kind)

    def elements_of(self, dtype: Any) -> Array:
        """Return `elements` of a dtype, which must be the dtype of a typed storage. None means the default dtype, or int64."""
        own = getattr(self, "dtype", None)
        if dtype is None:
            dtype = int64 if own is None else get_default_dtype()
        if own not in (None, dtype):
            raise RuntimeError(
                f"Expected a Storage of type {dtype.scalar_type} or an UntypedStorage, but got {own.scalar_type}"
            )
        return self.elements(dtype.numpy)

    def extended(
        self, size: tuple[int, ...], stride: tuple[int, ...], offset: int, kind: Any, operation: str = "set_"
    ) -> Array:
        """Return the result of `strided` for this storage, which first moves to larger memory if its memory is too small."""
        needed = checked_bytes(size, stride, offset, kind.itemsize, operation=operation)
        if self.device is meta:
            return remade(size, kind, stride)
        if needed > self.nbytes():
            self.reallocate(needed)
        return strided(self._root, size, stride, offset, kind)

    def _steps(self) -> tuple[tuple[int, ...], int]:
        """Return strides and offset in elements.

        If the memory has been released, return the strides and the offset of a contiguous tensor.
        """
        seen = self._seen
        if seen is None or isinstance(seen, Released):
            return row_major_steps(() if seen is None else seen.shape), 0
        return element_strides(seen), storage_offset(seen)

    # --- elements ---------------------------------------------------------------------------------------------

    def _place(self, index: Any) -> slice:
        """Return the elements of an index, which is one element or a slice without steps."""
        size = self.size()
        if self.device is meta:
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            start, stop, step = index.indices(size)
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            return slice(start, max(start, stop))
        try:
            place = operator.index(index)
        except TypeError:
            raise TypeError(f"can't index a torch.{type(self).__name__} with {type(index).__name__}") from None
        if not -size <= place < size:
            raise IndexError(f"index {place} out of range for storage of size {size}")
        return slice(place % size, place % size + 1)

    def __getitem__(self, index: Any) -> Any:
        place = self._place(index)
        if isinstance(index, slice):
            return UntypedStorage.over(adopt(self.bytes()[place]))
        return to_python(self.elements(self.element_kind)[place])[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._set(self._place(index), value, "can only set storage content with a int types, but got {} instead")

    def fill_(self, value: Any) -> Self:
        """Set all bytes to `value`, modulo 256."""
        self._set(slice(None), value, "fill_ expects int, but got {}")
        return self

    def _set(self, place: slice, value: Any, refusal: str) -> None:
        if type(value) is not int:
            raise RuntimeError(refusal.format(type(value).__name__))
        self.bytes()[place] = value % 256

    def copy_(self, source: StorageBase, non_blocking: bool | None = None) -> Self:
        """Copy the bytes of another storage of the same size.

        Raises:
            RuntimeError: if the sizes differ.
        """
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self.bytes()[...] = source.bytes()
        return self

    def clone(self) -> Self:
        """Return a copy."""
        if self.device is meta:
            return self._alike(self._root, self._seen)
        copy = self.bytes().copy()
        return self._alike(copy, copy)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy, on which the tensors of the same deep copy lie."""
        if id(self) not in memo:
            copy = copy_with_memo(self._root, memo)
            memo[id(self)] = self._alike(copy, copy)
        return memo[id(self)]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def _alike(self, root: Array, seen: Array | None = None) -> Self:
        """Return the storage of other memory, with elements of the same dtype."""
        storage = self.over(root, seen)
        storage.element_kind = self.element_kind
        return storage

    def get_device(self) -> int:
        """Return -1, because the bytes are not on an accelerator."""
        return -1

    def cpu(self) -> Self:
        """Return the storage itself, because it is on the CPU.

        Raises:
            NotImplementedError: on the device `meta`.
        """
        self.bytes()
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> Self:
        """Return the storage itself for its own device.

        Raises:
            RuntimeError: for another device.
        """
        if Device(device).type != self.device.type:
            raise RuntimeError(f"a storage on {self.device} cannot be copied to {device}")
        return self

    def new(self) -> Self:
        """Return an empty storage of the same type."""
        return self._alike(numpy.empty(0, numpy.uint8))

    def type(self) -> str:
        """Return the name of the type."""
        return "torch.storage.UntypedStorage"

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element of `dtype` in place."""
        content = self.bytes()
        content[...] = _swapped(content, dtype)

    def tolist(self) -> list[Any]:
        """Return the elements (bytes if the storage has no dtype) as Python numbers."""
        if self.device is meta and self._root.nbytes:
            raise NotImplementedError("Not available for 'meta' device type")
        return to_python(self.elements(self.element_kind))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        listed = "..." if self.device is meta else "\n ".join(map(str, self.tolist()))
        return f" {listed}\n[torch.storage.{self._described()}device={self.device}) of size {len(self)}]"

    def _described(self) -> str:
        return "UntypedStorage("

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageBase) and other._root is self._root

    def __hash__(self) -> int:
        return id(self._root)


def _new_memory(name: str, size: Any, kind: Any) -> Array:
    """Allocate memory for `size` elements of `kind`, or for the elements of a sequence."""
    if hasattr(size, "__index__") and not hasattr(size, "__len__"):
        count = operator.index(size)
        if count < 0:
            raise _negative(count * kind.itemsize)
        return numpy.empty(count * kind.itemsize, numpy.uint8)
    if not isinstance(size, (Sequence, StorageBase)):
        raise RuntimeError(f"{name}(): Expected a sequence type, but got {type(size).__name__}")
    if kind.itemsize == 1 and kind.kind == "u":
        for value in size:
            if type(value) is not int:
                raise RuntimeError(
                    f"{name}(): tried to construct a storage from a sequence ({type(size).__name__}), but one of the items "
                    f"was of type {type(value).__name__} instead of int"
                )
        return numpy.array([value % 256 for value in size], kind)
    values = numpy.array(size, kind)
    root = numpy.empty(values.nbytes, numpy.uint8)
    root.view(kind)[...] = values.reshape(-1)
    return root


def _negative(length: int) -> RuntimeError:
    """The error for a negative number of bytes."""
    return RuntimeError(f"alloc_cpu() seems to have been called with negative number: {length % 2**64}")


def _swapped(content: Array, dtype: Any) -> Array:
    """Return the bytes, with the bytes of each number of `dtype` in reverse order."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    return content.reshape(-1, size)[:, ::-1].reshape(-1)


class UntypedStorage(StorageBase):
    """The bytes that a tensor and its views share.

    Args:
        size: the number of bytes, or a sequence of their values.
        device: `"cpu"` or `"meta"`.

    Raises:
        RuntimeError: for a negative size, or for values that are not integers.

    >>> import adjoint as torch
    >>> storage = torch.UntypedStorage([1, 2, 3, 4])
    >>> storage[1:3].tolist(), storage.nbytes()
    ([2, 3], 4)
    """


end_methods_at_caller(StorageBase)


def _conversion(name: str) -> Callable[[StorageBase], Any]:
    """Return the method `name`, which converts the elements of a storage to another dtype."""

    def convert(self: StorageBase) -> Any:
        """Return the elements (bytes if the storage has no dtype) as a storage of another dtype."""
        typed = import_late("adjoint.kernels.memory.legacy_storages").TypedStorage
        kind = getattr(dtypes, C_NAMES.get(name, name)).numpy
        return typed.of(memory(self.elements(self.element_kind).astype(kind)), kind)

    convert.__name__ = name
    return convert


C_NAMES = {
    "byte": "uint8", "char": "int8", "short": "int16", "long": "int64", "half": "float16", "double": "float64",
    "int": "int32", "float": "float32", "complex_float": "complex64", "complex_double": "complex128",
}  # fmt: skip
"""The dtypes by the names of conversions that differ from the dtypes' names."""

for _name in (*C_NAMES, *"bool bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz".split()):
    setattr(StorageBase, _name, _conversion(_name))
