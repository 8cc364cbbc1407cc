"""`torch.profiler.itt`: ranges and marks for Intel's collectors. No collector exists, so these functions have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Return whether a collector is available. The answer is always False."""
    return False


def range_push(msg: str) -> None:
    """Begin a range inside the open ranges."""


def range_pop() -> None:
    """End the innermost range."""


def mark(msg: str) -> None:
    """Mark a point in time."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Put a range named `msg.format(*args, **kwargs)` around a block, or around each call of a function.

    >>> import adjoint as torch
    >>> with torch.profiler.itt.range("step {}", 3):
    ...     print(torch.profiler.itt.is_available())
    False
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
