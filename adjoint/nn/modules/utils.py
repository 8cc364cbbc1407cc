"""Convert a single number, such as a kernel size, to a tuple with one number for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that converts an iterable to a tuple, and any other value to a tuple of `count` copies."""

    def spread(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return spread


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return the values in reverse order, each repeated `count` times, as the argument of `pad`."""
    return tuple(value for value in reversed(values) for _ in range(count))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove `prefix` from the names in a state dict, in place."""
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", {})
    for name in list(metadata):
        if name and name.startswith(prefix.rstrip(".")):
            metadata[name.removeprefix(prefix.rstrip(".")).lstrip(".")] = metadata.pop(name)
