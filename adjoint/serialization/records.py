"""The records of an archive, under PyTorch's private names, for programs that read or write single records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .archive import ArchiveReader, ArchiveWriter
from .files import FileLike, open_to_read, open_to_write, stem

_SIGNATURE = b"PK\x03\x04"


class PyTorchFileReader:
    """Reads the records of an open archive by name."""

    def __init__(self, name_or_buffer: Any) -> None:
        self._archive = ArchiveReader(name_or_buffer)

    def has_record(self, name: str) -> bool:
        """Return whether there is a record with this name."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record.

        Raises:
            RuntimeError: if the record does not exist.
        """
        return self._archive.read(name)

    def get_record_offset(self, name: str) -> int:
        """Return the position of a record in the archive."""
        return self._archive.position(name)

    def get_all_records(self) -> list[str]:
        """Return the names of the records."""
        return self._archive.names()


class PyTorchFileWriter:
    """Writes records to an open archive."""

    def __init__(self, archive: ArchiveWriter) -> None:
        self._archive = archive

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write a record of `size` bytes."""
        data = data.encode() if isinstance(data, str) else data
        self._archive.write(name, memoryview(data).cast("B")[:size])

    def write_record_metadata(self, name: str, size: int) -> None:
        """Write a record of `size` zeros, whose bytes another program fills in."""
        self._archive.write(name, bytes(size))


@contextmanager
def _open_zipfile_reader(name_or_buffer: FileLike) -> Iterator[PyTorchFileReader]:
    """A context with the reader of an archive. The argument is a path or an open file."""
    with open_to_read(name_or_buffer) as file:
        yield PyTorchFileReader(file)


@contextmanager
def _open_zipfile_writer(name_or_buffer: FileLike) -> Iterator[PyTorchFileWriter]:
    """A context with the writer of an archive. The argument is a path or an open file."""
    with (
        open_to_write(name_or_buffer) as file,
        ArchiveWriter(file, stem(name_or_buffer), 64) as archive,
    ):
        yield PyTorchFileWriter(archive)


def _is_zipfile(f: Any) -> bool:
    """Return whether an open file is at the beginning of an archive. Its position stays."""
    start = f.tell()
    found = f.read(len(_SIGNATURE))
    f.seek(start)
    return bool(found == _SIGNATURE)


def _open_file_like(name_or_buffer: FileLike, mode: str) -> Any:
    """Return a context with an open file. The argument is a path or an open file."""
    return open_to_write(name_or_buffer) if "w" in mode else open_to_read(name_or_buffer)
