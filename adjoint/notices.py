"""Warnings that are reported at the line of the user's code that caused them."""

import sys
import warnings
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside this package, however deep the call stack is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_internal(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_internal(names: dict[str, Any]) -> bool:
    package = names.get("__package__") or ""
    return package == _PACKAGE or package.startswith(f"{_PACKAGE}.")
