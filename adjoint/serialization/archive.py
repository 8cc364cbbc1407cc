"""The zip archives of checkpoints: uncompressed records with names, each starting at a multiple of 64 bytes.

Records are in one folder of the archive. The module does not depend on their contents. A reader rejects sizes that
exceed the file, so a small file cannot create large records.
"""

import struct
import zipfile
import zlib
from types import TracebackType
from typing import IO, Any

import numpy

from .._runtime.platform import mmap
from .files import CORRUPT, TRUNCATED, read_into, write_all

__all__ = ["ArchiveReader", "ArchiveWriter"]

Array = numpy.ndarray[Any, Any]

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<12xIIH")
"""The fields of the record at the end of an archive: size and offset of the directory, and length of the comment."""
_END_LENGTH = 22
_LONG_SIGNATURE = b"PK\x06\x06"
_LONG_END = struct.Struct("<40xQQ")
"""The fields that are read from the preceding record in large archives: the same size and offset."""
_LONGEST_END = 56 + 20 + _END_LENGTH
"""The length of both records, and of the record between them, which gives the position of the first record."""
_CHUNK = 1 << 20
_ENCRYPTED = 0x1


class _Stream:
    """The interface that `zipfile` needs for a write-only file. Position 0 is the position of the file at the start."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0

    def write(self, data: Any) -> int:
        write_all(self._file, data)
        self._position += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Do nothing. `zipfile` calls this for each record. The file is closed or returned soon afterwards."""


class _ZipFile(zipfile.ZipFile):
    """A zip file that its user must close. The finalizer does not close it, because an interrupt would be lost."""

    __del__ = object.__hash__  # type: ignore[assignment]  # runs no Python code


class ArchiveWriter:
    """Writes records to an open file.

    Use it as a context manager.

    Args:
        file: an object with a method `write`.
        folder: the folder in the archive for the records.
        alignment: the number of bytes of which the position of each record is a multiple.
    """

    def __init__(self, file: IO[bytes], folder: str, alignment: int) -> None:
        self._alignment = alignment
        self._stream = _Stream(file)
        self._zip = _ZipFile(self._stream, "w", zipfile.ZIP_STORED)  # type: ignore[call-overload]
        self._folder = folder
        self._checksums = 0, 0

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._zip.close()

    def write(self, name: str, data: Any) -> None:
        """Add a record with the bytes in the buffer `data`."""
        info = zipfile.ZipInfo(f"{self._folder}/{name}")
        info.file_size = memoryview(data).nbytes
        info.CRC = 0
        info.extra = _padding(0)
        header = len(info.FileHeader(info.file_size * 1.05 > zipfile.ZIP64_LIMIT))
        info.extra = _padding(-(self._stream.tell() + header) % self._alignment)
        self._zip.writestr(info, data)
        info.extra = b""  # the directory needs no padding
        names, contents = self._checksums
        self._checksums = zlib.crc32(name.encode(), names), zlib.crc32(info.CRC.to_bytes(4, "little"), contents)

    def fingerprint(self) -> str:
        """Return forty decimal digits, computed from the names and the contents of the records so far."""
        return "{:020d}{:020d}".format(*self._checksums)


def _padding(length: int) -> bytes:
    """Return an extra field of a zip header with `length` bytes of padding."""
    return b"FB" + struct.pack("<H", length) + b"Z" * length


class _Part:
    """A part of a file that `zipfile` can read like a whole file.

    Args:
        file: the whole file.
        start: the position of the first byte of the part.
        stop: the position after its last byte.
    """

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file, self._start, self._stop = file, start, stop

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek((self._start, self._file.tell(), self._stop)[whence] + offset) - self._start

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell() - self._start

    def read(self, count: int = -1) -> bytes:
        left = max(self._stop - self._file.tell(), 0)
        return self._file.read(left if count < 0 else min(count, left))


def _end_of_archive(file: IO[bytes], start: int, length: int) -> tuple[int, bool]:
    """Return the end of the archive that begins at `start`, and whether any archive ends at the end of the file.

    Other archives or other contents may follow. The record at the end of an archive gives the distance from the
    beginning of the archive. If no record belongs to this archive, the archive ends with the file.
    """
    end, ends = _searched(file, max(start, length - (1 << 16) - _LONGEST_END), start)
    if end is None:
        end, _ = _searched(file, start, start)
    return length if end is None else end, ends


def _searched(file: IO[bytes], position: int, start: int) -> tuple[int | None, bool]:
    """Find the end of the archive at `start`, searching from `position`. Also return whether any archive ends there."""
    held, any_end = b"", False
    file.seek(position)
    while data := file.read(_CHUNK):
        held += data
        place = held.find(_END_SIGNATURE)
        while place >= 0:
            any_end = True
            end = _checked_end(held, place, position, start)
            if end is not None:
                return end, True
            place = held.find(_END_SIGNATURE, place + 1)
        kept = max(len(held) - _LONGEST_END, 0)
        position, held = position + kept, held[kept:]
    return None, any_end


def _checked_end(held: bytes, place: int, position: int, start: int) -> int | None:
    """Return the end of an archive from the record at `place` in `held`, the bytes from `position` in the file.

    Return None if the record belongs to another archive.
    """
    if place + _END_LENGTH > len(held):
        return None
    size, offset, comment = _END.unpack_from(held, place)
    directory = place
    if place >= _LONGEST_END - _END_LENGTH and held.startswith(_LONG_SIGNATURE, place - (_LONGEST_END - _END_LENGTH)):
        directory = place - (_LONGEST_END - _END_LENGTH)
        size, offset = _LONG_END.unpack_from(held, directory)
    return position + place + _END_LENGTH + comment if position + directory - size - offset == start else None


class ArchiveReader:
    """Reads records from an open seekable file.

    Args:
        file: the file, positioned at the beginning of the archive. Other contents may precede and follow the archive.

    Raises:
        RuntimeError: if the file is damaged, or its structure differs from PyTorch's archives.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._start = file.tell()
        length = file.seek(0, 2)
        self._stop, ends = _end_of_archive(file, self._start, length)
        try:
            self._zip = _ZipFile(_Part(file, self._start, self._stop))
        except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, ValueError):
            why = CORRUPT if ends else f"{TRUNCATED} {CORRUPT}"
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory. {why}"
            ) from None
        self._length = self._stop - self._start
        self._entries = {info.filename: info for info in self._zip.infolist()}
        self._folder = self._find_folder()
        if sum(info.file_size for info in self._entries.values()) > self._length:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: records overlap. {CORRUPT}")

    def leave(self) -> None:
        """Position the file after the archive, where another archive may begin."""
        self._file.seek(self._stop)

    def _find_folder(self) -> str:
        first = next(iter(self._entries), None)
        if first is None:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: it is empty. {CORRUPT}")
        folder, slash, _ = first.partition("/")
        if not slash:
            raise RuntimeError(f"file in archive is not in a subdirectory: {first}")
        return folder

    def __contains__(self, name: str) -> bool:
        return f"{self._folder}/{name}" in self._entries

    def names(self) -> list[str]:
        """Return the names of the records."""
        return [name.removeprefix(f"{self._folder}/") for name in self._entries]

    def size(self, name: str) -> int:
        """Return the number of bytes of a record.

        Raises:
            RuntimeError: if the record does not exist.
        """
        return self._entry(name).file_size

    def read(self, name: str) -> bytes:
        """Return the bytes of a record."""
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> Array:
        """Return the bytes of a record, as an array of uint8."""
        self._file.seek(self._start + self.position(name))
        content = numpy.empty(self.size(name), numpy.uint8)
        read_into(self._file, content.data, name)
        return content

    def map_array(self, name: str, mapped: mmap.mmap) -> Array:
        """Return the bytes of a record as an array of uint8 that shares the memory of the mapped file `mapped`."""
        return numpy.frombuffer(mapped, numpy.uint8, self.size(name), self._start + self.position(name))

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(f"{self._folder}/{name}")
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found. {CORRUPT}")
        if entry.flag_bits & _ENCRYPTED:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is encrypted")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {name}: it is compressed. A compressed checkpoint, which "
                "could unpack to any size, is not read; pack the archive again without compression"
            )
        return entry

    def position(self, name: str) -> int:
        """Return the position of a record in the archive.

        The record follows its own header. The length of the header is not in the directory.
        """
        entry = self._entry(name)
        self._file.seek(self._start + max(entry.header_offset, 0))
        header = self._file.read(_LOCAL_HEADER.size)
        if entry.header_offset < 0 or len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_SIGNATURE):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: no header found. {CORRUPT}")
        _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        position: int = entry.header_offset + len(header) + name_length + extra_length
        if position + entry.file_size > self._length:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed. {CORRUPT}")
        return position
