"""Modules under PyTorch's names: the import of `torch.x.y`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from linecache import getlines
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from adjoint._runtime.places import OWN, THEIRS, SameModule

TESTS = "torch.testing._internal"
"""The helper modules of PyTorch's tests.

This package does not contain them. It looks for a copy in the folders of `sys.path`.
"""

_MACHINERY = f"{__package__}.machinery"
"""Modules that these helper modules import. They are imported together."""


NAMES = dict(
    line.split(": ", 1) for line in Path(__file__).with_name("names_of_tests.txt").read_text("utf-8").splitlines()[1:]
)
"""Names that PyTorch's tests import, in PyTorch's private modules and of such modules, by what stands in for them."""

MODULES = frozenset(NAMES["modules"].split())
"""Private PyTorch modules that PyTorch's tests import, and that have no counterpart here. All their submodules exist too."""


class Finder(MetaPathFinder):
    """A finder for `torch.x.y`, which is `adjoint.x.y`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module with PyTorch's name. All other modules are left to other finders."""
        first, _, rest = name.partition(".")
        if not rest:
            return None
        if first == OWN and _may_stand_in(rest) and PathFinder.find_spec(name, path, target) is None:
            if _MACHINERY in sys.modules or _is_imported_by_a_test():
                return ModuleSpec(name, import_module(_MACHINERY).StandIn(), is_package=True)
            return None
        if first != THEIRS:
            return None
        found = _spec_of(f"{OWN}.{rest}")
        if found is None and name == TESTS:
            import_module(_MACHINERY).extend()
            return PathFinder.find_spec(name, [str(Path(folder, THEIRS, "testing")) for folder in sys.path], target)
        return None if found is None else ModuleSpec(name, _SameModule(found.name), origin=found.origin)


def _may_stand_in(name: str) -> bool:
    """Return whether a stand-in may replace the module `x.y`."""
    parts = name.split(".")
    return any(".".join(parts[: count + 1]) in MODULES for count in range(len(parts)))


def _is_imported_by_a_test() -> bool:
    """Return whether the importing file contains an import of PyTorch's test helpers."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        "importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__
    ):
        frame = frame.f_back
    return any(TESTS in line for line in getlines(frame.f_code.co_filename))


def _spec_of(name: str) -> ModuleSpec | None:
    """Return the specification of a module, or None if there is no such module."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # the package that would contain it is missing
        return None
    except ValueError:  # a module that was put together, without a specification
        return ModuleSpec(name, None)


class _SameModule(SameModule, Loader):
    """A loader for `torch.x.y`, which is `adjoint.x.y`."""

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the module, to run it as a program, or None if it has no file."""
        spec = _spec_of(self.own)
        loader: Any = spec and spec.loader
        return loader.get_code(self.own) if hasattr(loader, "get_code") else None
