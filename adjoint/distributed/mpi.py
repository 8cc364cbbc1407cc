"""The MPI beneath: found through mpi4py when the first group is made, and never before."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

MISSING = "adjoint.distributed needs mpi4py and an MPI: pip install 'adjoint[distributed]'"


def is_available() -> bool:
    """Whether mpi4py is installed, so that processes can work together."""
    return find_spec("mpi4py") is not None


@cache
def load() -> Any:
    """The module `mpi4py.MPI`, whose import starts MPI.

    Raises:
        ModuleNotFoundError: if mpi4py, or the MPI that it needs, is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ModuleNotFoundError(f"{MISSING} ({error})") from None
    except RuntimeError as error:  # mpi4py is there and finds no MPI
        raise ModuleNotFoundError(f"{MISSING} ({str(error).splitlines()[0]})") from None
    return MPI


def version() -> str:
    """The name and version of the MPI, in one line."""
    return str(load().Get_library_version()).splitlines()[0].strip("\0 ")
