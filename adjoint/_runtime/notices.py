"""Warnings that are reported at the line of the user's code that caused them."""

import sys
import warnings

from .tracebacks import is_ours


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside this package, however deep the call stack is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_ours(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
