"""The format of a file, determined by its first bytes for reading and by the end of its name for writing."""

import struct
from collections.abc import Callable
from os import PathLike
from pathlib import PurePath
from typing import IO

from .files import FileLike

__all__ = ["START", "begins_archive", "begins_npz", "begins_safetensors", "writer_of"]

START = 300
"""The number of bytes that identify the format."""

_ARCHIVE = b"PK\x03\x04"
_NAME_LENGTH = struct.Struct("<26xH2x")
"""The header of a file in a zip archive: fields that are not read, and the length of the name that follows."""
_HEADER_LENGTH = struct.Struct("<Q")
_LONGEST_HEADER = 100_000_000


def begins_archive(start: bytes) -> bool:
    """Return whether these bytes begin a zip archive."""
    return start.startswith(_ARCHIVE)


def begins_npz(start: bytes) -> bool:
    """Return whether these bytes begin a NumPy archive, in which the first file is an array."""
    if not begins_archive(start) or len(start) < _NAME_LENGTH.size:
        return False
    length = _NAME_LENGTH.unpack_from(start)[0]
    return start[_NAME_LENGTH.size :][:length].endswith(b".npy")


def begins_safetensors(start: bytes) -> bool:
    """Return whether these bytes begin a safetensors file: the length of a header, and the header in JSON."""
    return start[8:9] == b"{" and 2 <= _HEADER_LENGTH.unpack_from(start)[0] <= _LONGEST_HEADER


def writer_of(f: FileLike) -> Callable[[object, IO[bytes]], None] | None:
    """Return the writer for a file of this name, or None for a checkpoint in PyTorch's format."""
    suffix = PurePath(f).suffix if isinstance(f, (str, PathLike)) else ""
    if suffix == ".safetensors":
        from .safetensors import write_safetensors

        return write_safetensors
    if suffix == ".npz":
        from .npz import write_npz

        return write_npz
    return None
