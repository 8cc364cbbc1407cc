"""Functions that test sizes, which may be symbols in PyTorch. Here all sizes are numbers, so conditions on them are known."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """PyTorch's error for a condition on a symbol that depends on elements. It is never raised here."""


def guard_or_true(condition: Any) -> bool:
    """Return the condition, because its value is always known."""
    return bool(condition)


guard_or_false = guard_size_oblivious = statically_known_true = guard_or_true


def free_symbols(value: Any) -> set[Any]:
    """Return the symbols in the sizes of `value`. The result is empty."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(value: Any) -> bool:
    """Return False, because sizes are numbers."""
    return False
