"""The names of types in PyTorch's errors."""

from __future__ import annotations

_IMMUTABLE = 1 << 8
"""The flag of types that compiled code defines."""


def type_name(kind: type) -> str:
    """Return the name of a type: with its module, as in `numpy.ndarray`, if compiled code outside Python's core defines it."""
    if kind.__flags__ & _IMMUTABLE and kind.__module__ != "builtins":
        return f"{kind.__module__}.{kind.__name__}"
    return kind.__name__
