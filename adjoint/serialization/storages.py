"""The storages of a file: the names of their types, their records, and their target devices."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from .. import dtypes
from ..device import device
from ..dtypes import dtype
from ..kernels.memory.legacy_storages import TypedStorage
from ..kernels.memory.storage import memory
from ..kernels.memory.storages import UntypedStorage
from ..kernels.runtime.addresses import address
from .locations import default_restore_location, location_tag

__all__ = [
    "MAP_LOCATION",
    "STORAGE_TYPES",
    "UNTYPED",
    "ErrorOfCaller",
    "StorageTable",
    "StorageType",
    "as_storage",
    "restorer",
    "storage_type",
    "swap_bytes",
]

Array = numpy.ndarray[Any, Any]


class StorageType:
    """The name of a storage type in files, such as `torch.FloatStorage`.

    Attributes:
        name: the name, with its module.
        dtype: the type of the elements, or None for `torch.storage.UntypedStorage`, which counts bytes.
    """

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: dtype | None) -> None:
        self.name = name
        self.dtype = dtype

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return 1 if self.dtype is None else self.dtype.itemsize

    def __repr__(self) -> str:
        return self.name


UNTYPED = StorageType("torch.storage.UntypedStorage", None)

STORAGE_TYPES = {
    kind: StorageType(f"torch.{kind.scalar_type}Storage", kind)
    for kind in (
        dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.bool, dtypes.float16,
        dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
    )
}  # fmt: skip
"""The types with their own storage type; the others (`uint16`, …) use untyped storages."""


def storage_type(kind: dtype) -> StorageType:
    """Return the type of storage that holds elements of `kind`."""
    return STORAGE_TYPES.get(kind, UNTYPED)


def as_storage(content: Array, kind: StorageType) -> UntypedStorage:
    """Return the bytes `content` as a storage with elements of type `kind`."""
    return UntypedStorage.over(content) if kind.dtype is None else TypedStorage.of(content, kind.dtype.numpy)


def swap_bytes(content: Array, kind: StorageType) -> None:
    """Reverse the bytes of each number in place, to convert them from the byte order of another machine."""
    part = 1 if kind.dtype is None else kind.dtype.to_real().itemsize
    content.view(f"u{part}").byteswap(inplace=True)


class StorageTable:
    """A table that numbers the storages of an object during pickling. Each storage has one number.

    Args:
        by_address: whether to name storages by their addresses, as the legacy format does, instead of by consecutive
        numbers.
    """

    def __init__(self, by_address: bool = False) -> None:
        self._by_address = by_address
        self._keys: dict[tuple[int, int], str] = {}
        self._types: dict[tuple[int, int], StorageType] = {}
        self._roots: dict[str, Array] = {}  # also keeps the arrays alive, so that no address is used twice

    def key(self, root: Array, kind: StorageType) -> str:
        """Return the name of the storage that `root` owns.

        Raises:
            RuntimeError: if elements of another type use the same storage.
        """
        identity = (address(root), root.nbytes) if root.size else (-id(root), id(kind))
        if self._types.setdefault(identity, kind) is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = str(identity[0] if self._by_address else len(self._keys))
            self._roots[key] = root
        return key

    def persistent_id(self, storage: UntypedStorage) -> tuple[str, StorageType, str, str, int]:
        """Return the persistent id of `storage` in the pickle: a tag, its type, name, device and number of elements."""
        kind = storage_type(dtypes.from_numpy(storage.element_kind)) if isinstance(storage, TypedStorage) else UNTYPED
        root = storage._root
        return "storage", kind, self.key(root, kind), location_tag(storage), root.nbytes // kind.itemsize

    def __iter__(self) -> Iterator[tuple[str, Array, StorageType]]:
        """Yield the name, bytes and type of each storage, in the order of their first use."""
        for key, kind in zip(self._keys.values(), self._types.values(), strict=True):
            yield key, memory(self._roots[key]), kind


MAP_LOCATION = Callable[[UntypedStorage, str], UntypedStorage | None] | device | str | dict[str, str] | None
Restore = Callable[[UntypedStorage, str], UntypedStorage]


class ErrorOfCaller(Exception):
    """An exception that carries an error of the caller's `map_location` through code that would report a damaged file.

    Its cause is the original error.
    """


def restorer(map_location: MAP_LOCATION) -> Restore:
    """Return a function that maps a storage and its saved device to the storage to use.

    Raises (when it is called):
        RuntimeError: if the target is not the CPU.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        mapping = map_location
        return lambda storage, location: default_restore_location(storage, str(mapping.get(location, location)))
    if isinstance(map_location, (str, device)):
        target = str(map_location)
        return lambda storage, location: default_restore_location(storage, target)
    choose = map_location
    return lambda storage, location: _chosen(choose, storage, location)


def _chosen(choose: Callable[..., Any], storage: UntypedStorage, location: str) -> UntypedStorage:
    try:
        result = choose(storage, location)
        if result is not None and not isinstance(result, UntypedStorage):
            raise TypeError(f"map_location must return a storage or None, but returned {type(result).__name__}")
    except Exception as error:
        raise ErrorOfCaller from error
    return default_restore_location(storage, location) if result is None else result
