"""What can be done to tensors: one declaration for each operator, one module for each family.

A family is loaded when something of it is first asked for (see `families`).
"""

from typing import Any

from ..dispatch.declaration import OPERATORS
from ..dispatch.decorators import PUBLIC
from ..dispatch.decorators import tensors as _by_name
from ..dispatch.lazy_stubs import begun
from ..dispatch.registry import load_all, stand_in_for_methods
from ..dispatch.source import SOURCES
from ..late_bound import LATE, on_first_use
from .memory import storage_views  # what the tape asks for
from .shape import parts, view  # what the tape asks for

stand_in_for_methods()
LATE.legacy_array = on_first_use(f"{__name__}.create.legacy", "legacy_array")

__all__ = ["OPERATORS", "PUBLIC", "SOURCES", "begun", "load_all"]


def __getattr__(name: str) -> Any:
    """An operator by its name."""
    return getattr(_by_name, name)
