"""Limits for values from a hostile file. They prevent endless messages, endless hashes and stack overflows.

A pickle of a few bytes can nest one tuple many times in another, to any depth. Computing its text or its hash would never end.
Python also computes the hash of nested tuples without a limit on the depth.
"""

import pickle
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from ..dtypes import dtype
from .storages import StorageType

__all__ = ["check_keys", "equals", "shown"]

_SIMPLE = frozenset([str, int, float, bool, bytes, complex, type(None)])
_NESTED = (tuple, slice)
_DEEPEST = 100
_LARGEST = 100_000


def shown(value: object) -> str:
    """Return a short text about a value, for messages."""
    if type(value) is int:
        return str(value) if abs(value) < 2**128 else "a huge int"
    if type(value) is str:
        return value[:60]
    if type(value) is tuple and len(value) <= 6:
        return f"({', '.join(_shown_part(each) for each in value)})"
    known = isinstance(value, (type, FunctionType, StorageType, dtype, bool, float, type(None)))
    return str(value) if known else str(type(value))


def _shown_part(value: object) -> str:
    return repr(value[:60]) if type(value) is str else "a tuple" if type(value) is tuple else shown(value)


def equals(value: object, *expected: object) -> bool:
    """Return whether `value` has the type of an expected value and equals it. `==` is not called for other types."""
    return any(type(value) is type(each) and value == each for each in expected)


def check_keys(keys: Iterable[Any]) -> None:
    """Refuse keys of dicts and members of sets whose hash needs much time or stack.

    Raises:
        pickle.UnpicklingError: if a key is not allowed.
    """
    for key in keys:
        if type(key) in _SIMPLE:
            continue
        level, count = [key], 0
        for _ in range(_DEEPEST):
            level = [part for each in level if isinstance(each, _NESTED) for part in _parts(each)]
            count += len(level)
            if not level or count > _LARGEST:
                break
        if level:
            raise pickle.UnpicklingError("a key of a dict, or a member of a set, is too deeply nested")


def _parts(key: Any) -> tuple[Any, ...]:
    return (key.start, key.stop, key.step) if isinstance(key, slice) else key
