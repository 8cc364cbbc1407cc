"""The file format before zip archives: a sequence of pickles, followed by the storages."""

import pickle
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

import numpy

from ..kernels.memory.storage import adopt
from ..kernels.memory.storages import UntypedStorage
from .files import TRUNCATED, read_into
from .limits import equals, shown
from .pickler import dumps
from .storages import Restore, StorageTable, StorageType, as_storage, swap_bytes

__all__ = ["read_legacy", "write_legacy"]

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_COUNT = struct.Struct("<q")

ReadPickle = Callable[[IO[bytes], int, Callable[[Any], Any]], Any]


def write_legacy(obj: object, protocol: int) -> list[Any]:
    """Yield the parts of the file for `obj`, each as a buffer of bytes."""
    storages = StorageTable(by_address=True)
    content = dumps(obj, protocol, storages, legacy=True)
    system = {
        "protocol_version": _PROTOCOL,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    parts: list[Any] = [pickle.dumps(value, protocol) for value in (_MAGIC, _PROTOCOL, system)]
    ordered = sorted(storages)
    parts += [content, pickle.dumps([key for key, _, _ in ordered], protocol)]
    for _, data, kind in ordered:
        if sys.byteorder == "big":
            data = data.copy()
            swap_bytes(data, kind)
        parts += [_COUNT.pack(data.nbytes // kind.itemsize), data]
    return parts


def read_legacy(file: IO[bytes], read_pickle: ReadPickle, restore: Restore, foreign: Exception) -> Any:
    """Return the object at the current position of `file`. Afterwards, the position is after the object.

    Args:
        file: the open file.
        read_pickle: a function that reads one pickle, given the file, the remaining bytes, and a function for
            persistent ids.
        restore: a function that maps storages to their devices.
        foreign: the error for a file in another format.

    Raises:
        RuntimeError: if the file is damaged.
        EOFError: if it is truncated.
    """
    start = file.tell()
    length = file.seek(0, 2) - start
    file.seek(start)
    table = _StorageReader(length, restore)
    try:
        if not equals(read_pickle(file, length, table.refuse), _MAGIC):
            raise foreign
        version = read_pickle(file, length, table.refuse)
        if not equals(version, _PROTOCOL):
            raise RuntimeError(f"Invalid protocol version: {shown(version)}")
        read_pickle(file, length, table.refuse)
        result = read_pickle(file, length, table.load)
        table.fill(file, read_pickle(file, length, table.refuse))
    except EOFError as error:
        raise EOFError(f"{error}. {TRUNCATED}") from None
    return result


class _StorageReader:
    """The storages of a file. They are created when the pickle names them, and filled when their bytes follow."""

    def __init__(self, length: int, restore: Restore) -> None:
        self._left = length
        self._restore = restore
        self._contents: dict[str, tuple[Any, StorageType]] = {}
        self._storages: dict[str, UntypedStorage] = {}

    def refuse(self, identity: Any) -> Any:
        raise RuntimeError(f"unexpected persistent id {shown(identity)}")

    def load(self, identity: Any) -> UntypedStorage:
        """Return the storage with a persistent id."""
        if len(identity) != 6 or not equals(identity[0], "storage"):
            raise RuntimeError(f"Unknown saved id type: {shown(identity[:1])}")
        _, kind, key, location, count, view = identity
        if [type(each) for each in identity[1:5]] != [StorageType, str, str, int] or count < 0:
            raise RuntimeError(f"invalid storage {shown(identity)}")
        if key not in self._storages:
            self._left -= count * kind.itemsize
            if self._left < 0:
                raise RuntimeError("the named storages are larger than the file")
            content = numpy.empty(count * kind.itemsize, numpy.uint8)
            self._contents[key] = content, kind
            self._storages[key] = self._restore(as_storage(content, kind), location)
        return self._storages[key] if view is None else self._part(key, kind, view)

    def _part(self, key: str, kind: StorageType, view: Any) -> UntypedStorage:
        """A part of a storage. Very old files distinguish it from the whole storage."""
        _, offset, count = view
        if type(offset) is not int or type(count) is not int or offset < 0 or count < 0:
            raise RuntimeError(f"invalid view of a storage {shown(view)}")
        content = self._storages[key].bytes()[offset * kind.itemsize : (offset + count) * kind.itemsize]
        return as_storage(adopt(content), kind)

    def fill(self, file: IO[bytes], keys: Any) -> None:
        """Read the bytes of all storages, in the order of `keys`."""
        if type(keys) is not list or any(type(key) is not str for key in keys) or set(keys) != set(self._contents):
            raise RuntimeError("the list of storages does not match the storages that are used")
        for key in keys:
            content, kind = self._contents[key]
            header = bytearray(_COUNT.size)
            read_into(file, memoryview(header), f"storage {key}")
            if _COUNT.unpack(header)[0] * kind.itemsize != content.nbytes:
                raise RuntimeError(f"storage {key} has wrong byte size: expected {content.nbytes}")
            read_into(file, content.data, f"storage {key}")
            if sys.byteorder == "big":
                swap_bytes(content, kind)
