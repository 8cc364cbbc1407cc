"""Switches of libraries that are not used: modules whose attributes programs read, set, and set for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def flags_of(module: str, **defaults: Any) -> Callable[..., AbstractContextManager[None]]:
    """The function `flags` of a module: a context in which the module's switches have other values."""

    @contextmanager
    def flags(*args: Any, **names: Any) -> Iterator[None]:
        """Set switches, which have no effect, for a while."""
        wanted = {**defaults, **dict(zip(defaults, args, strict=False)), **names}
        switches = vars(sys.modules[module])
        before = {name: switches.get(name) for name in wanted}
        switches.update(wanted)
        try:
            yield
        finally:
            switches.update(before)

    return flags


def set_flags_of(module: str, *names: str) -> Callable[..., tuple[Any, ...]]:
    """The function `set_flags` of a module: sets switches, those that are given, and returns the values before."""

    def set_flags(*args: Any, **given: Any) -> tuple[Any, ...]:
        """Set switches, which have no effect; return the values before."""
        switches = vars(sys.modules[module])
        before = tuple(switches.get(name) for name in names)
        wanted = {**dict(zip(names, args, strict=False)), **{name.removeprefix("_"): v for name, v in given.items()}}
        switches.update({name: value for name, value in wanted.items() if value is not None})
        return before

    return set_flags


def never() -> bool:
    """Whether the library is used; never."""
    return False
