"""`torch.utils._import_utils`: checks whether modules of other distributions can be imported."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType

__all__ = ["_check_module_exists", "dill_available", "import_dill"]


def _check_module_exists(name: str) -> bool:
    """Return whether a module of this name can be found. It is not imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    """Return whether dill is installed."""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """Return the module `dill`, or None if it is not installed."""
    return importlib.import_module("dill") if dill_available() else None
