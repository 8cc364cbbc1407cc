"""Support for programs with `import torch`. In a process in which this module is installed, `torch` means this package.

`torch.x.y` is the same object as the module `adjoint.x.y`. Every module exists once. An installed PyTorch is not
imported, and other processes still use it. Only this process, and processes that it starts, find this package under the
name `torch`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FunctionType

import adjoint
from adjoint._runtime.places import OWN, THEIRS, become_torch, theirs
from adjoint.dispatch.registry import PUBLIC
from adjoint.dispatch.return_types import BY_NAME

from ..version import __version__
from .modules import Finder

__all__ = ["install_as_torch"]

PYTORCH = "2.13.0"
"""The version of PyTorch whose behaviour this package follows."""

SEARCH_PATH = str(Path(__file__).parent / "search_path")
"""A folder with a package `torch` for child processes, and metadata for `importlib.metadata`."""

CONSTRAINTS = (Path(__file__).parent / "constraints.txt").as_uri()
"""A constraint file for pip. Without it, pip replaces the `torch` in `SEARCH_PATH` if a library requires another version."""


def install_as_torch() -> None:
    """Make `import torch` import this package, in this process and in child processes that are started later.

    Call it before a program or library imports `torch`. In tests, call it at the top of `conftest.py`. The command
    `adjoint run SCRIPT` calls it before it runs a script. `torch.__version__` is then a version of PyTorch, because
    libraries compare it.

    Raises:
        RuntimeError: if PyTorch has been imported.

    >>> import adjoint
    >>> adjoint.install_as_torch()   # doctest: +SKIP
    >>> import torch.nn              # doctest: +SKIP
    >>> torch.nn is adjoint.nn       # doctest: +SKIP
    True
    """
    before = sys.modules.get(THEIRS)
    if before is adjoint:
        return
    if before is not None:
        raise RuntimeError(
            "PyTorch has been imported in this process, so `torch` cannot mean adjoint any more. "
            "Call adjoint.install_as_torch() before `import torch`."
        )
    from ..torch_version import TorchVersion

    sys.meta_path.insert(0, Finder())
    become_torch()
    for made in (BY_NAME, *PUBLIC.values()):
        for each in made.values():
            if isinstance(each, (type, FunctionType)) and each.__module__.partition(".")[0] == OWN:
                each.__module__ = theirs(each.__module__)
    vars(adjoint)[THEIRS] = adjoint  # `torch.torch` is a name that programs use, too
    adjoint.__version__ = adjoint.version.__version__ = TorchVersion(f"{PYTORCH}+{OWN}.{__version__.replace('+', '.')}")
    sys.path.insert(1, SEARCH_PATH)
    _add_to_environment("PYTHONPATH", SEARCH_PATH, os.pathsep)
    _add_to_environment("PIP_CONSTRAINT", CONSTRAINTS, " ")


def _add_to_environment(name: str, first: str, separator: str) -> None:
    """Put an entry before the entries of an environment variable, for child processes."""
    parts = os.environ.get(name, "").split(separator)
    if first not in parts:
        os.environ[name] = separator.join([first, *filter(None, parts)])
