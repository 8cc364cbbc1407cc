"""A dictionary and a set whose entries live as long as their keys. They remove a key without running Python code.

The standard library's weak dictionaries remove a key in a Python function, which the interpreter calls when an object
dies. An interrupt that arrives in that function is lost, because the interpreter prints it and the program continues.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import partial
from operator import delitem
from typing import Any, TypeVar
from weakref import proxy, ref

from .tracebacks import PACKAGES

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Entries(dict[Any, Any]):
    """Values by weak references to their keys."""

    __slots__ = ("__weakref__",)


class WeakKeys(MutableMapping[_Key, _Value]):
    """A dictionary whose entries live as long as their keys. Keys are compared with `==`."""

    __slots__ = ("_entries", "_forget")

    def __init__(self) -> None:
        self._entries = _Entries()
        self._forget = partial(delitem, proxy(self._entries))  # a proxy prevents a reference cycle

    def __getitem__(self, key: _Key) -> _Value:
        found: _Value = self._entries[ref(key)]
        return found

    def __setitem__(self, key: _Key, value: _Value) -> None:
        self._entries[ref(key, self._forget)] = value

    def __delitem__(self, key: _Key) -> None:
        del self._entries[ref(key)]

    def __contains__(self, key: object) -> bool:
        return ref(key) in self._entries

    def __iter__(self) -> Iterator[_Key]:
        return iter([key for each in list(self._entries) if (key := each()) is not None])

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Remove all keys."""
        self._entries.clear()


class _OfClass(ref[type]):
    """A weak reference to a class. It is equal to the class."""

    __slots__ = ()

    __hash__ = ref.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or self() is other


class WeakClasses(set[Any]):
    """A set of classes. User-defined classes leave it when they are deleted; classes of this package are found faster."""

    __slots__ = ()

    def add(self, cls: type) -> None:
        """Put a class into the set."""
        ours = cls.__module__.partition(".")[0] in PACKAGES
        super().add(cls if ours else _OfClass(cls, self.discard))
