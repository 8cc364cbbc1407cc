"""The `.metadata` of a checkpoint folder in PyTorch's format: the tensors and values, and the locations of their pieces.

The file is a pickle. It is read without running code: only the types of this module are created, and no function is
called.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, ClassVar

import adjoint as torch

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"


class _Global:
    """A name in a pickle."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __reduce__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any) -> Any:
        """Represent a call when the pickle is written."""
        raise TypeError(f"{self.module}.{self.name} is not called here")


class _Call:
    """A call in a pickle."""

    def __init__(self, function: _Global, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@dataclass
class TensorProperties:
    """The properties of a tensor in a checkpoint."""

    dtype: Any = None
    layout: Any = "torch.strided"
    requires_grad: bool = False
    memory_format: Any = 0
    pin_memory: bool = False

    def __getstate__(self) -> Any:
        dtype = _Global("torch", str(self.dtype).removeprefix("torch."))
        layout = _Call(_Global("torch.serialization", "_get_layout"), "torch.strided")
        memory_format = _Call(_Global(METADATA, "_MEM_FORMAT_ENCODING"), 0)
        return dtype, layout, self.requires_grad, memory_format, self.pin_memory

    def __setstate__(self, state: Any) -> None:
        self.dtype, self.layout, self.requires_grad, self.memory_format, self.pin_memory = state


@dataclass
class ChunkStorageMetadata:
    """A piece of a tensor, given by its offsets and sizes."""

    offsets: Any
    sizes: Any


@dataclass
class TensorStorageMetadata:
    """A tensor in a checkpoint, given by its size and its pieces."""

    properties: TensorProperties
    size: Any
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is not a tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a value and, for a piece of a tensor, the offsets of the piece."""

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)


@dataclass
class StorageInfo:
    """The location of a value or a piece: the file, the first byte, and the number of bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None


@dataclass
class StorageMeta:
    """An identifier of the save operation that wrote a checkpoint."""

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The contents of a checkpoint.

    Attributes:
        state_dict_metadata: the tensors and other values by name. Dots separate the keys of nested dicts.
        planner_data: for each name, the keys that lead to it through nested dicts and lists.
        storage_data: the locations of the pieces.
    """

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


for _kind in (
    TensorProperties,
    ChunkStorageMetadata,
    TensorStorageMetadata,
    BytesStorageMetadata,
    MetadataIndex,
    StorageMeta,
    Metadata,
):
    _kind.__module__ = METADATA
StorageInfo.__module__, StorageInfo.__qualname__ = FILESYSTEM, "_StorageInfo"

_PicklerInPython: Any = pickle._Pickler


class _Pickler(_PicklerInPython):  # type: ignore[misc]
    """A pickler that writes types under PyTorch's names."""

    dispatch: ClassVar[Any] = dict(_PicklerInPython.dispatch)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a type or function."""
        named = isinstance(obj, _Global)
        self.save(obj.module if named else obj.__module__)
        self.save(obj.name if named else obj.__qualname__)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch[type] = save_global

    def reducer_override(self, obj: Any) -> Any:
        """Return the form of sizes and paths in PyTorch's pickles."""
        if isinstance(obj, torch.Size):
            return _Global("torch", "Size"), (tuple(obj),)
        return NotImplemented


def dump(metadata: Metadata) -> bytes:
    """Return the contents of a `.metadata` file."""
    buffer = io.BytesIO()
    _Pickler(buffer, 4).dump(metadata)
    return buffer.getvalue()


def _same(*values: Any) -> Any:
    return values[0] if len(values) == 1 else values


_READ = {
    **{
        (kind.__module__, kind.__qualname__): kind
        for kind in (TensorProperties, ChunkStorageMetadata, TensorStorageMetadata)
    },
    **{
        (kind.__module__, kind.__qualname__): kind
        for kind in (BytesStorageMetadata, MetadataIndex, StorageMeta, Metadata)
    },
    (FILESYSTEM, "_StorageInfo"): StorageInfo,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): _same,
    (METADATA, "_MEM_FORMAT_ENCODING"): _same,
    **{
        ("pathlib", name): PurePath for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path")
    },
    **{("pathlib._local", name): PurePath for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the class of a name.

        Raises:
            UnpicklingError: if the name is not allowed in such a file.
        """
        found: Any = _READ.get((module, name))
        if found is None and module == "torch":
            found = getattr(torch, name, None)
            found = found if isinstance(found, torch.dtype) else None
        if found is None:
            raise pickle.UnpicklingError(
                f"the .metadata of a checkpoint refers to {module}.{name}, which does not belong there"
            )
        return found


def parse(data: bytes) -> Metadata:
    """Undo `dump`. Files that PyTorch has written are supported too.

    Raises:
        UnpicklingError: if the file contains anything except the description of a checkpoint.
    """
    found = _Unpickler(io.BytesIO(data)).load()
    if not isinstance(found, Metadata):
        raise pickle.UnpicklingError(f"the .metadata of a checkpoint holds a {type(found).__name__}")
    return found
