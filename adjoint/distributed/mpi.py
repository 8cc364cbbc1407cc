"""The underlying MPI. mpi4py loads it when the first group is created, and never earlier."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._runtime.installed import install

MISSING = f"adjoint.distributed needs mpi4py and an MPI: {install('distributed')}, or {install('mpich')} with an MPI"


def is_available() -> bool:
    """Return whether mpi4py is installed, so that several processes can communicate."""
    return find_spec("mpi4py") is not None


@cache
def load() -> Any:
    """Return the module `mpi4py.MPI`. Its import starts MPI.

    Raises:
        ModuleNotFoundError: if mpi4py, or the MPI that it needs, is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ModuleNotFoundError(f"{MISSING} ({error})") from None
    except RuntimeError as error:  # mpi4py is installed but finds no MPI
        raise ModuleNotFoundError(f"{MISSING} ({str(error).splitlines()[0]})") from None
    return MPI


def forget_names() -> None:
    """Remove the names of the files through which the ranks of a machine share memory. All ranks have mapped these files.

    MPICH removes them when processes end normally. After a kill they would stay in the memory of the machine.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    for line in maps.read_text(encoding="utf-8").splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.parent == Path("/dev/shm") and path.name.startswith("mpich_shm_") and path.exists():
            path.unlink(missing_ok=True)


def version() -> str:
    """Return the name and version of the MPI, in one line."""
    return str(load().Get_library_version()).splitlines()[0].strip("\0 ")
