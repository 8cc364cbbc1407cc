"""Modules under PyTorch's names: the answers to imports of `torch.x.y`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from adjoint._runtime.places import OWN, THEIRS, SameModule

TESTS = "torch.testing._internal"
"""The helper modules of PyTorch's tests.

This package does not contain them, and finds a copy in a folder of `sys.path`.
"""

_MACHINERY = f"{__package__}.machinery"
"""The imports of these modules, which are imported with them."""


class Finder(MetaPathFinder):
    """Finds `torch.x.y`, which is `adjoint.x.y`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module of PyTorch's name. Leave all other modules to other finders."""
        first, _, rest = name.partition(".")
        if not rest:
            return None
        if first == OWN and _MACHINERY in sys.modules and PathFinder.find_spec(name, path, target) is None:
            return sys.modules[_MACHINERY].stand_in(name)
        if first != THEIRS:
            return None
        found = _spec_of(f"{OWN}.{rest}")
        if found is None and name == TESTS:
            import_module(_MACHINERY).extend()
            return PathFinder.find_spec(name, [str(Path(folder, THEIRS, "testing")) for folder in sys.path], target)
        return None if found is None else ModuleSpec(name, _SameModule(found.name), origin=found.origin)


def _spec_of(name: str) -> ModuleSpec | None:
    """Return the specification of a module, or None if there is no such module."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # the package that would contain it is missing
        return None
    except ValueError:  # a module that was put together, without a specification
        return ModuleSpec(name, None)


class _SameModule(SameModule, Loader):
    """Loads `torch.x.y`, which is `adjoint.x.y`."""

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the module, to run it as a program, or None if it has no file."""
        spec = _spec_of(self.own)
        loader: Any = spec and spec.loader
        return loader.get_code(self.own) if hasattr(loader, "get_code") else None
