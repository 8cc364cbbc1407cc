"""A dictionary and a set whose entries live as long as their keys, and that forget a key without running Python.

The standard library's weak dictionaries forget a key in a function of Python, which the interpreter calls where an object
dies. An interrupt that strikes in that function is lost: the interpreter prints it, and the program goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import partial
from operator import delitem
from typing import Any, TypeVar
from weakref import proxy, ref

from .tracebacks import PACKAGE

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Entries(dict[Any, Any]):
    """By weak reference to its key, each value."""

    __slots__ = ("__weakref__",)


class WeakKeys(MutableMapping[_Key, _Value]):
    """By object, a value that lives as long as the object. Keys are compared with `==`."""

    __slots__ = ("_entries", "_forget")

    def __init__(self) -> None:
        self._entries = _Entries()
        self._forget = partial(delitem, proxy(self._entries))  # through a proxy, so that there is no cycle

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
        """Forget all keys."""
        self._entries.clear()


class _OfClass(ref[type]):
    """A weak reference to a class that equals the class."""

    __slots__ = ()

    __hash__ = ref.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or self() is other


class WeakClasses(set[Any]):
    """A set of classes. Those of users leave it when they die; those of this package, which never do, are found sooner."""

    __slots__ = ()

    def add(self, cls: type) -> None:
        """Put a class into the set."""
        ours = cls.__module__.partition(".")[0] == PACKAGE
        super().add(cls if ours else _OfClass(cls, self.discard))
