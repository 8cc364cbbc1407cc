"""What can be done to tensors: one declaration for each operator, one module for each family.

A family is loaded when something of it is first asked for (see `families`).
"""

from importlib import import_module
from typing import Any

from . import memory, parts, view  # what the tape asks for
from .beginning import begun
from .build import PUBLIC
from .build import tensors as _by_name
from .declaration import OPERATORS
from .families import load_all, stand_in_for_methods
from .generate import SOURCES
from .index import FAMILIES

stand_in_for_methods()

__all__ = ["OPERATORS", "PUBLIC", "SOURCES", "begun", "load_all"]


def __getattr__(name: str) -> Any:
    """A family's module, or an operator by its name."""
    if name in FAMILIES:
        return import_module(f"{__name__}.{name}")
    return getattr(_by_name, name)
