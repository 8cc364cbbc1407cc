"""Operators on tensors, with one declaration for each operator and one module for each family, in folders by kind.

Code that computes on arrays is in `adjoint.kernels`. Code for all operators is in `adjoint.dispatch`. A family is
imported when one of its names is first used (see `adjoint.dispatch.registry`).
"""

from typing import Any

from ..dispatch.declaration import OPERATORS
from ..dispatch.decorators import PUBLIC
from ..dispatch.decorators import tensors as _by_name
from ..dispatch.lazy_stubs import lazily_wrapped as lazily_wrapped
from ..dispatch.registry import load_all
from ..dispatch.source import SOURCES

__all__ = ["OPERATORS", "PUBLIC", "SOURCES", "load_all"]


def __getattr__(name: str) -> Any:
    """Return an operator by its name, and store it as an attribute."""
    found = globals()[name] = getattr(_by_name, name)
    return found
