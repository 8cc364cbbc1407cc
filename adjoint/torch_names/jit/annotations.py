"""Types that annotate functions for TorchScript, and a test of whether a value matches a type."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Dict, List, Optional, Tuple, Union, get_args, get_origin  # noqa: UP035  (PyTorch has these names here)

__all__ = ["Dict", "List", "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """A type such as `BroadcastingList2[int]`: a list of two numbers, or one number for both."""

    def __getitem__(self, kind: Any) -> Any:
        return List[kind]  # noqa: UP006


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()


def matches(value: Any, kind: Any) -> bool:
    """Return whether `value` is an instance of a class, of an annotation such as `dict[str, int]`, or of one of several types."""
    if isinstance(kind, tuple):
        return any(matches(value, each) for each in kind)
    if kind is Any:
        return True
    if kind is None:
        return value is None
    origin, parts = get_origin(kind), get_args(kind)
    if origin is None:
        return isinstance(value, kind)
    if origin in (Union, UnionType):
        return any(matches(value, each) for each in parts)
    if not isinstance(value, origin):
        return False
    if isinstance(value, Mapping):
        return all(matches(key, parts[0]) and matches(each, parts[1]) for key, each in value.items())
    if isinstance(value, tuple) and Ellipsis not in parts:
        return len(value) == len(parts) and all(map(matches, value, parts))
    return all(matches(each, parts[0]) for each in value)
