"""Options of `load` and `save` for the whole program, and the globals that a checkpoint needs."""

from __future__ import annotations

import io
import pickletools
import threading
from enum import Enum
from typing import Any

from .._runtime.platform import mmap
from .._runtime.tracebacks import ending_at_caller, warn
from .allowed import qualified, user_globals, weights_globals
from .files import FileLike, open_to_read
from .formats import START, begins_archive

SETTINGS: dict[str, Any] = {
    "load.mmap": False,
    "load.endianness": None,
    "load.mmap_flags": getattr(mmap, "MAP_PRIVATE", None) if mmap else None,
    "load.calculate_storage_offsets": False,
    "save.compute_crc32": True,
    "save.use_pinned_memory_for_d2h": False,
    "save.storage_alignment": 64,
}
"""The settings of `torch.utils.serialization.config`."""


class SourceChangeWarning(Warning):
    """PyTorch's warning about a saved class whose source has changed. `load` runs no such source, and does not warn.

    >>> import adjoint as torch
    >>> issubclass(torch.serialization.SourceChangeWarning, Warning)
    True
    """


class LoadEndianness(Enum):
    """The byte order of a file that does not specify it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not specify it. None is the byte order of the machine."""
    kept: LoadEndianness | None = SETTINGS["load.endianness"]
    return kept


@ending_at_caller
def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not specify it.

    Raises:
        TypeError: if it is not a `LoadEndianness`.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    SETTINGS["load.endianness"] = endianness


def get_crc32_options() -> bool:
    """Return the option that requests checksums. `save` always writes them."""
    return bool(SETTINGS["save.compute_crc32"])


def set_crc32_options(compute_crc32: bool) -> None:
    """Set the option that requests checksums.

    `save` writes them in any case, because they cost less than a hundredth of the time of writing.
    """
    SETTINGS["save.compute_crc32"] = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """Return how `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    if not mmap:
        mmap.mmap(-1, 0)  # raises the error that names the missing module
    flags: int = SETTINGS["load.mmap_flags"]
    return flags


class set_default_mmap_options:
    """Set the options of `load(mmap=True)`, for the rest of the program or within a `with` block.

    Args:
        flags: `mmap.MAP_PRIVATE` (changes of tensors do not reach the file) or `mmap.MAP_SHARED` (changes reach the
            file).

    Raises:
        ValueError: if it is neither.
    """

    @ending_at_caller
    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but "
                f"got {flags}"
            )
        self.prev = get_default_mmap_options()
        SETTINGS["load.mmap_flags"] = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        SETTINGS["load.mmap_flags"] = self.prev


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Return the classes and functions that a file names and that `load` refuses, because `add_safe_globals` does not allow them.

    No code in the file is run.

    Raises:
        ValueError: if the file is not a checkpoint in PyTorch's format.

    >>> import adjoint as torch, io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
    []
    """
    from .archive import ArchiveReader

    with open_to_read(f) as file:
        begins = file.read(START)
        file.seek(0)
        if not begins_archive(begins):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        named = _globals_of(ArchiveReader(file).read("data.pkl"))
    safe = weights_globals().keys() | user_globals().keys()
    return [name for name in named if name not in safe]


def _globals_of(pickled: bytes) -> dict[str, None]:
    """Return the names of classes and functions in a pickle, in order, without running it."""
    found: dict[str, None] = {}
    strings: list[str] = []
    memo: dict[int, str] = {}
    for opcode, argument, _ in pickletools.genops(io.BytesIO(pickled)):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            found[qualified(module, name)] = None
        elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
            found[qualified(strings[-2], strings[-1])] = None
        elif opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT") and strings:
            memo[len(memo) if argument is None else argument] = strings[-1]
        elif opcode.name in ("BINGET", "LONG_BINGET", "GET"):
            strings += [memo[argument]] if argument in memo else []
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Return whether the version of a module is at least the given version.

    Raises:
        RuntimeError: if the version cannot be compared and `error_if_malformed` is true. Otherwise, warn and return
            True.
    """
    parts = str(module.__version__).split(".")
    try:
        version = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False))
        return bool(version >= req_version_tuple)
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warn(message + ", but continuing assuming that requirement is met")
        return True


class _Skipped(threading.local):
    data = False

    @property
    def skip_data(self) -> bool:
        """PyTorch's name of the setting."""
        return self.data


SKIPPED = _Skipped()
"""Whether this thread skips elements when it saves and loads."""

_serialization_tls = SKIPPED


class skip_data:
    """A context in which `save` leaves the space of elements empty, and `load` creates tensors without reading their elements.

    Args:
        materialize_fake_tensors: accepted for compatibility.

    >>> import adjoint as torch, io
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before = SKIPPED.data
        SKIPPED.data = True

    def __exit__(self, *exception: object) -> None:
        SKIPPED.data = self.before
