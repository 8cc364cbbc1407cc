"""`save` and `load`: checkpoints in PyTorch's file format. They contain data and never code."""

import io
import os
import pickle
import sys
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy

from .._runtime.tracebacks import ending_at_caller, warn
from ..kernels.memory.storages import UntypedStorage
from .allowed import data_globals, user_globals, weights_globals
from .files import TRUNCATED, FileLike, open_to_read, open_to_write, stem, write_all
from .formats import START, begins_archive, begins_npz, begins_safetensors, writer_of
from .legacy import read_legacy, write_legacy
from .limits import equals, shown
from .options import SETTINGS, SKIPPED
from .pickler import dumps
from .storages import MAP_LOCATION, ErrorOfCaller, Restore, StorageTable, StorageType, as_storage, restorer, swap_bytes
from .unpickler import Unpickler

if TYPE_CHECKING:
    from .._runtime.platform import mmap as memory_map
    from .archive import ArchiveReader

__all__ = ["load", "save"]

_NEWEST_VERSION = 10
_ARCHIVE_START = b"PK\x03\x04"
_REFUSED = """\
Weights only load failed. Loading makes tensors, plain data and what you allow, and never runs code from a file. \
Instead of a whole model save its `state_dict()`, and load that with `load_state_dict`. If the file holds other objects \
of your own, allow their classes. If you trust its source, `weights_only=False` loads it as Python's pickle does, which \
can run any code.
\tWeightsUnpickler error: """
_ONLY_WEIGHTS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_YES = ("1", "y", "yes", "true")
_NOT_ONLY_WEIGHTS = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


# ---------------------------------------------------------------------------------------------------------------------
# Saving


@ending_at_caller
def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save an object to a file that `load` and PyTorch's `torch.load` can read.

    Tensors are saved with their strides, and tensors that share a storage share it again after loading. The whole
    storage is saved, even if a tensor is a view of a part of it. PyTorch's "Serialization semantics"
    (https://docs.pytorch.org/docs/stable/notes/serialization.html) describes the format.

    The file at a path is replaced as a whole, after the new content is on the disk. If the process is killed, the disk
    is full or the power is lost, the path names either the old or the new checkpoint. A link is not replaced, and still
    leads to the same path. Other hard links to the old file keep its content. Data written to an open file is visible
    immediately, even if it is incomplete.

    Args:
        obj: tensors, parameters, state dicts, containers of these, and plain data.
        f: a path, or an open binary file (an object with `write`). If the path ends in `.safetensors` or `.npz`, a dict
            of tensors is saved in that format.
        pickle_module: accepted for compatibility. Objects are always pickled by Python's rules.
        pickle_protocol: a number from 1 to 5. Without `weights_only=False`, PyTorch reads only protocol 2.
        _use_new_zipfile_serialization: False selects the format before PyTorch 1.6.

    Raises:
        RuntimeError: if two tensors share memory but differ in dtype, or if the file cannot be written.
        pickle.PicklingError, TypeError: if `obj` contains an object that cannot be pickled.
        In this case the file at a path is unchanged.

    Warns:
        UserWarning: if `obj` contains an object, such as a whole module, that `load` refuses until its class is
            allowed.

    >>> import io
    >>> import adjoint as torch
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_protocol == 0:
        raise ValueError("pickle protocol 0 cannot refer to storages; use 2")
    write = writer_of(f)
    if write is not None:
        with open_to_write(f) as file:
            write(obj, file)
        return
    if not _use_new_zipfile_serialization:
        if SKIPPED.data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        parts = write_legacy(obj, pickle_protocol)
        with open_to_write(f) as file:
            for part in parts:
                write_all(file, part)
        return
    from .archive import ArchiveWriter  # here, because importing `zipfile` is slow

    storages = StorageTable()
    content = dumps(obj, pickle_protocol, storages)
    alignment = SETTINGS["save.storage_alignment"]
    with open_to_write(f) as file, ArchiveWriter(file, stem(f), alignment) as archive:
        archive.write("data.pkl", content)
        archive.write(".format_version", b"1")
        archive.write(".storage_alignment", str(alignment).encode())
        if not _disable_byteorder_record:
            archive.write("byteorder", sys.byteorder.encode())
        for key, data, _ in storages:
            archive.write(f"data/{key}", bytes(data.nbytes) if SKIPPED.data else data)
        archive.write("version", b"3\n")
        archive.write(".data/serialization_id", archive.fingerprint().encode())


# ---------------------------------------------------------------------------------------------------------------------
# Loading


@ending_at_caller
def load(
    f: FileLike,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that `save` or PyTorch's `torch.save` has saved.

    `load` runs no code from the file unless you pass `weights_only=False`. With `weights_only=True`, any file is safe
    to load. The environment variable `TORCH_FORCE_WEIGHTS_ONLY_LOAD=1` forbids `weights_only=False`.
    `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1` makes `weights_only=False` the default.

    A file in the safetensors format, or a `.npz` file of NumPy, is read as a dict of tensors.

    Args:
        f: a path, or an open seekable binary file. The file is read from its current position. Afterwards its position
            is after the object, so several objects can be loaded one after another.
        map_location: the target of storages that were on another device. `'cpu'` moves all of them to the CPU. It may
            also be a device, a dict from saved to new devices, or a function. The function receives a storage and its
            device, and returns a storage or None.
        pickle_module: with `weights_only=False`, the module whose `Unpickler` loads. Otherwise it allows more plain data:
            NumPy arrays and numbers, `frozenset`, `deque`, `argparse.Namespace`, …
        weights_only: whether to load only tensors, parameters, state dicts, Python's containers, and the objects that
            `torch.serialization.add_safe_globals` allows. False loads any object, such as a whole module that PyTorch
            has pickled, as Python's pickle does. Use False only for files from a source that you trust.
        mmap: whether to map the file into memory, and to read each storage on first use. Changes to tensors never reach
            the file.
        **pickle_load_args: `encoding`, the encoding of the byte strings in files that Python 2 wrote.

    Raises:
        pickle.UnpicklingError: if the file contains objects that are not allowed.
        RuntimeError: if the file is damaged, or if a storage was on a device that is not available.
        EOFError: if the file is empty or ends too early.

    >>> import io
    >>> import adjoint as torch
    >>> file = io.BytesIO()
    >>> torch.save([torch.arange(3), "text", 1.5], file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    [tensor([0, 1, 2]), 'text', 1.5]
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    for name in pickle_load_args.keys() - {"encoding", "errors", "fix_imports", "buffers"}:
        raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{name}'")
    mmap = SETTINGS["load.mmap"] if mmap is None else mmap
    if mmap and not isinstance(f, (str, PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    weights_only = _forced(weights_only)
    encoding = pickle_load_args.get("encoding", "utf-8")
    reader = _Reader(weights_only, pickle_module, restorer(map_location), encoding)
    with open_to_read(f) as file:
        start = file.read(START)
        file.seek(-len(start), 1)
        if not start:
            raise EOFError("Ran out of input")
        if len(start) < 4 and _ARCHIVE_START.startswith(start):
            raise EOFError(f"Ran out of input. {TRUNCATED}")
        try:
            if begins_npz(start):
                return reader.npz(file)
            if begins_archive(start):
                return reader.archive(file, mapped=bool(mmap))
            if begins_safetensors(start):
                return reader.safetensors(file, mapped=bool(mmap))
            if mmap:
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({f}, _use_new_zipfile_serialization="
                    "True), please torch.save your checkpoint with this option in order to use mmap."
                )
            return read_legacy(file, reader.pickle, reader.restore, reader.error_for_foreign(start))
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(_REFUSED + str(error)) from None
        except ErrorOfCaller as error:
            raise error.__cause__ or error from None


class _Reader:
    """Reads the parts of one file."""

    def __init__(self, weights_only: bool | None, module: Any, restore: Restore, encoding: str) -> None:
        self._trusted, self._module = weights_only is False, module
        self._allowed = weights_globals() if module is None else {**weights_globals(), **data_globals()}
        self._users = user_globals()
        self._encoding = encoding
        self.restore = restore

    def pickle(self, file: IO[bytes], length: int, persistent_load: Callable[[Any], Any]) -> Any:
        """Read one pickle from `file`. It has at most `length` bytes."""
        if self._trusted:
            from .unpickler import TrustedUnpickler

            kind: Any = TrustedUnpickler
            if self._module not in (None, pickle):
                kind = type(
                    "Unpickler", (TrustedUnpickler, self._module.Unpickler), {"load": self._module.Unpickler.load}
                )
            return kind(file, persistent_load, self._encoding).load()
        return Unpickler(file, self._allowed, self._users, persistent_load, self._encoding, length).load()

    def error_for_foreign(self, start: bytes) -> Exception:
        """Return the error for a pickle that `save` has not written. PyTorch refuses one with frames at its first byte."""
        if start[2:3] == pickle.FRAME and not self._trusted:
            return pickle.UnpicklingError(
                f"Unsupported operand {pickle.FRAME[0]}, of a pickle that `save` has not written"
            )
        return RuntimeError("Invalid magic number; corrupt file?")

    def archive(self, file: IO[bytes], mapped: bool) -> Any:
        """Read the object in a zip archive."""
        from .archive import ArchiveReader

        archive = ArchiveReader(file)
        _check_layout(archive)
        storages = _StorageReader(archive, _mapped(file) if mapped else None, self.restore)
        content = archive.read("data.pkl")
        found = self.pickle(io.BytesIO(content), len(content), storages.load)
        archive.leave()
        return found

    def npz(self, file: IO[bytes]) -> Any:
        """Read the arrays in a NumPy archive."""
        from .npz import read_npz

        return read_npz(file, self.restore)

    def safetensors(self, file: IO[bytes], mapped: bool) -> Any:
        """Read the tensors in a safetensors file."""
        from .safetensors import read_safetensors

        return read_safetensors(file, self.restore, _mapped(file) if mapped else None)


def _mapped(file: IO[bytes]) -> "memory_map.mmap":
    """Return the file mapped into memory. Changes do not reach the file, unless `set_default_mmap_options` requests this."""
    from .._runtime.platform import mmap as memory_map
    from .options import get_default_mmap_options

    if get_default_mmap_options() == memory_map.MAP_SHARED:
        with Path(file.name).open("r+b") as writable:
            return memory_map.mmap(writable.fileno(), 0, access=memory_map.ACCESS_WRITE)
    return memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_COPY)


def _forced(weights_only: bool | None) -> bool | None:
    """Return `weights_only` after applying the environment variables.

    An environment variable overrides a missing argument and a less safe argument.
    """
    only, not_only = (os.environ.get(name, "0").lower() in _YES for name in (_ONLY_WEIGHTS, _NOT_ONLY_WEIGHTS))
    if only and not_only:
        raise RuntimeError(f"Only one of `{_ONLY_WEIGHTS}` or `{_NOT_ONLY_WEIGHTS}` should be set, but both were set.")
    if only:
        return True
    if not_only and weights_only is None:
        warn(
            f"Environment variable {_NOT_ONLY_WEIGHTS} detected, since the`weights_only` argument was not explicitly passed "
            "to `torch.load`, forcing weights_only=False."
        )
        return False
    return weights_only


def _check_layout(archive: "ArchiveReader") -> None:
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. A TorchScript "
            "program is code, which is not loaded; save the `state_dict()` of the model instead."
        )
    version = next((archive.read(name) for name in ("version", ".data/version") if name in archive), None)
    if version is None:
        raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
    number = version[:9].strip().decode("latin1")
    if not number.isdecimal() or int(number) > _NEWEST_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {number}, but the maximum supported version for reading is "
            f"{_NEWEST_VERSION}."
        )


def _order_of_bytes() -> str:
    """Return the byte order of files that do not specify it."""
    from .options import LoadEndianness, get_default_load_endianness

    order = get_default_load_endianness() or LoadEndianness.LITTLE
    return sys.byteorder if order is LoadEndianness.NATIVE else order.name.lower()


class _StorageReader:
    """The storages of an archive, each read on first use."""

    def __init__(self, archive: "ArchiveReader", memory: "memory_map.mmap | None", restore: Restore) -> None:
        self._archive = archive
        self._memory = memory
        self._restore = restore
        self._storages: dict[str, tuple[UntypedStorage, StorageType]] = {}
        order = archive.read("byteorder").decode("latin1") if "byteorder" in archive else _order_of_bytes()
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order[:20])
        self._swap = order != sys.byteorder

    def load(self, identity: Any) -> UntypedStorage:
        """Return the storage with a persistent id."""
        if len(identity) != 5 or not equals(identity[0], "storage"):
            raise RuntimeError(f"Unknown saved id type: {shown(identity[:1])}")
        _, kind, key, location, count = identity
        if [type(each) for each in identity[1:]] != [StorageType, str, str, int]:
            raise RuntimeError(f"invalid storage {shown(identity)}")
        if key not in self._storages:
            content = self._read(f"data/{key}", count * kind.itemsize)
            if self._swap:
                swap_bytes(content, kind)
            self._storages[key] = self._restore(as_storage(content, kind), location), kind
        storage, known = self._storages[key]
        if known is not kind:
            raise RuntimeError(f"storage {key} is named with two types, {known} and {kind}")
        return storage

    def _read(self, name: str, expected: int) -> "numpy.ndarray[Any, Any]":
        size = self._archive.size(name)
        if size != expected:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({shown(expected)} bytes) for {name[:60]}"
            )
        if SKIPPED.data:
            return numpy.empty(size, numpy.uint8)
        if self._memory is not None:
            return self._archive.map_array(name, self._memory)
        return self._archive.read_array(name)
