"""Replacing whole files. At each moment, a path names either the complete old content or the complete new content.

The new content is written to a file without a name in the same folder, flushed to the disk, and then given the path of
the old file. If a system cannot create files without names, the new file has a temporary name.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["replacing"]

_UNNAMED: int | None = getattr(os, "O_TMPFILE", None)
_BINARY: int = getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A context that yields an open file. If the block ends without an error, this file replaces the file at `path`.

    A link stays a link, and its target is replaced. Devices and pipes are written to directly. If the folder accepts no
    new files and the existing file can be written, the file is rewritten in place.

    Raises:
        RuntimeError: if the system refuses to open or write a file. In this case nothing is changed, and no file is
            left behind.
    """
    try:
        target, old = _place_of(path)
        new = None if old is not None and not stat.S_ISREG(old.st_mode) else _begin(target, old)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"PytorchStreamWriter failed opening file {path}: {error}") from error
    if new is None:
        with _refusals_of(path, ""), target.open("wb") as device:
            yield device
        return
    with _refusals_of(path, f" {path} has not been changed."):
        file, name = new
        entered = False
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if name is None:
                    name = _name_for(target)
                    _enter(file, name, target)
                    entered = True
            if not entered:
                name.replace(target)
        except BaseException:
            if name is not None:
                name.unlink(missing_ok=True)
            raise
        _flush_folder(target.parent)


@contextmanager
def _refusals_of(path: Path, state: str) -> Iterator[None]:
    """Convert the system's errors to the type that PyTorch raises."""
    try:
        yield
    except OSError as error:
        raise RuntimeError(f"PytorchStreamWriter failed writing file {path}: {error}.{state}") from error


def _place_of(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the target of `path` through links, and its status, or None if it does not exist."""
    target = Path(os.path.realpath(path))
    try:
        old = path.stat()
    except FileNotFoundError:
        return target, None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError("Is a directory")
    if not os.access(path, os.W_OK):
        raise PermissionError("Permission denied")
    return (target, old) if target.exists() and target.samefile(path) else (path, old)


def _name_for(target: Path) -> Path:
    return target.with_name(f".{os.urandom(8).hex()}.partial")


def _begin(target: Path, old: os.stat_result | None) -> tuple[IO[bytes], Path | None] | None:
    """Return a new file in the folder of `target` with the permissions of the old file, and its name if it has one.

    Return None if the folder accepts no new files and an old file exists.
    """
    name = None
    try:
        try:
            if _UNNAMED is None:
                raise NotImplementedError
            descriptor = os.open(target.parent, os.O_WRONLY | _UNNAMED, 0o666)
        except (OSError, NotImplementedError):  # not every file system supports this
            name = _name_for(target)
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    except PermissionError:
        if old is None:
            raise
        return None
    if old is not None and hasattr(os, "fchmod"):
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        with suppress(OSError):
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    return os.fdopen(descriptor, "wb"), name


def _enter(file: IO[bytes], name: Path, target: Path) -> None:
    """Give a nameless file a name in its folder, and let it replace the target. The system cannot do both at once.

    If the process is killed between the two steps, the complete file stays under `name`.
    """
    folder = os.open(name.parent, os.O_RDONLY)
    source, first, last = f"/proc/self/fd/{file.fileno()}", name.name, target.name
    try:  # with descriptors of folders, or Python would not follow the link in /proc
        os.link(source, first, src_dir_fd=folder, dst_dir_fd=folder)
        os.replace(first, last, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _flush_folder(folder: Path) -> None:
    """Flush the folder too, if the system supports this. The new name is then on the disk."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
