"""`torch.profiler.itt`: ranges and marks for Intel's collectors, of which there is none here: nothing hears them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether a collector can be told of ranges: never."""
    return False


def range_push(msg: str) -> None:
    """Begin a range, within those that are open."""


def range_pop() -> None:
    """End the innermost range."""


def mark(msg: str) -> None:
    """Say that something happened at this point."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range named `msg.format(*args, **kwargs)` around a block, or around each call of a function.

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
