"""NumPy's floating-point warnings, off while we compute: infinities and NaNs are values, not accidents.

`numpy.errstate` costs more than a small multiplication. NumPy keeps the state in a context variable; setting that
directly is ten times cheaper, and `seterr` remains the way where a future NumPy has it no longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

try:
    from numpy._core.umath import _extobj_contextvar as _state
    from numpy._core.umath import _make_extobj

    _QUIET = _make_extobj(all="ignore")

    quiet = functools.partial(_state.set, _QUIET)
    """Turn the warnings off; returns what `restore` takes."""

    restore = _state.reset
    """Turn the warnings back to what they were."""

except ImportError:  # pragma: no cover

    def quiet() -> Any:
        """Turn the warnings off; returns what `restore` takes."""
        return numpy.seterr(all="ignore")

    def restore(token: Any) -> None:
        """Turn the warnings back to what they were."""
        numpy.seterr(**token)


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` with the warnings off."""
    token = quiet()
    try:
        return function(*args)
    finally:
        restore(token)


def silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a kernel that cannot give rise to warnings, so that nobody turns them off for it."""
    function.silent = True
    return function
