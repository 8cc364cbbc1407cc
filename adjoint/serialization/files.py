"""Paths and open files: opening them for reading and writing, and complete reads and writes."""

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

from .replacement import replacing

__all__ = ["CORRUPT", "TRUNCATED", "FileLike", "open_to_read", "open_to_write", "read_into", "stem", "write_all"]

FileLike = str | PathLike[str] | IO[bytes]

CORRUPT = (
    "If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. This can happen "
    "if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)
TRUNCATED = "The file is truncated: it ends before the checkpoint does."
_SEEK = (
    ". You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO "
    "and try to load from it instead."
)


def stem(f: FileLike) -> str:
    """Return the file's name without folder and extension, or `'archive'` for an open file or a non-ASCII name."""
    name = Path(fspath(f)).stem if isinstance(f, (str, PathLike)) else "archive"
    return name if name.isascii() else "archive"


def open_to_write(f: FileLike) -> AbstractContextManager[IO[bytes]]:
    """Open a file that replaces the file at a path when the block ends without an error.

    An open file is used directly. It is flushed, but not closed.

    Raises:
        RuntimeError: if the folder does not exist, or the system refuses to write.
        TypeError: if `write` of an open file is not a function.
    """
    if not isinstance(f, (str, PathLike)):
        if not callable(f.write):
            raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
        return _flushing(f)
    path = Path(f)
    if not path.parent.exists():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    return replacing(path)


@contextmanager
def _flushing(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file
    flush = getattr(file, "flush", None)
    if flush is not None:
        flush()


def open_to_read(f: FileLike) -> AbstractContextManager[IO[bytes]]:
    """Open the file at a path, and close it at the end of the block. An open file is used directly, and is not closed.

    Raises:
        AttributeError: if `f` is not a file.
        io.UnsupportedOperation: if `f` is not seekable.
    """
    if isinstance(f, (str, PathLike)):
        return Path(f).open("rb")
    for method in ("seek", "tell", "read", "readline"):
        if not hasattr(f, method):
            raise AttributeError(f"{type(f).__name__!r} object has no attribute '{method}'{_SEEK}")
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as error:
        raise io.UnsupportedOperation(f"{error}{_SEEK}") from None
    return nullcontext(f)


def write_all(file: IO[bytes], data: Any) -> None:
    """Write the buffer `data`, in several parts if the file is unbuffered."""
    left = memoryview(data).cast("B")
    while True:
        count: Any = file.write(left)
        if type(count) is not int or count >= len(left):  # a duck-typed file may return anything
            return
        left = left[count:]


def read_into(file: IO[bytes], target: memoryview, name: str) -> None:
    """Fill `target` from `file`, which need not have `readinto`.

    Raises:
        RuntimeError: if the file ends too early. `name` is the name of the part for the error message.
    """
    filled = 0
    readinto = getattr(file, "readinto", None)
    while filled < len(target):
        if readinto is not None:
            count = readinto(target[filled:])
        else:
            data = file.read(len(target) - filled)
            count = len(data)
            target[filled : filled + count] = data
        if not count:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {name}: file read failed. {TRUNCATED} {CORRUPT}"
            )
        filled += count
