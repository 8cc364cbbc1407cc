"""Objects that are created on first use by one thread: modules imported late, and attributes computed once.

Only one thread at a time imports late, because threads that import in different orders could wait for each other.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Generic, TypeVar, overload

from .forks import lock_across_forks
from .tracebacks import PACKAGE, ending_at_caller

_T = TypeVar("_T")
_Function = TypeVar("_Function", bound=Callable[..., Any])

_importing = lock_across_forks()


def unwatched(function: _Function) -> _Function:
    """Decorate a function that calls no user function, so that the profile function of a capture does not watch it."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        watch = sys.getprofile()
        if not hasattr(watch, "watches_users"):
            return function(*args, **kwargs)
        sys.setprofile(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(watch)

    return run  # type: ignore[return-value]


@unwatched
def import_late(name: str) -> ModuleType:
    """Import the module of this name, unless it has been imported. If another thread is importing it, wait."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    if _within_import(sys._getframe(1)):
        return import_module(name)
    with _importing:
        return import_module(name)


def can_import(name: str, failures: dict[str, str]) -> bool:
    """Return whether a module of an optional library can be imported. The reason for a failure is added to `failures`."""
    try:
        import_late(name)
    except Exception as error:  # noqa: BLE001 - a library that cannot load its machine code raises errors of any type
        failures[name.partition(".")[0]] = f"{type(error).__name__}: {error}"
        return False
    return True


def _within_import(frame: FrameType | None) -> bool:
    """Return whether this thread is executing a module of the package, whose lock it then holds."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
            return True
        frame = frame.f_back
    return False


def late_names(module: str, places: dict[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `module` that imports names, or modules, on first use.

    `places`: for each name, the module that defines it: a full name, or a name relative to the package of `module`.
    """
    own = sys.modules[module]
    package = str(own.__package__)

    @ending_at_caller
    def __getattr__(name: str) -> Any:
        if name == "__all__":  # a star import of a module without this list
            return sorted(each for each in {*own.__dict__, *places} if each[0] != "_")
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found: Any = import_late(place if place.startswith(f"{PACKAGE}.") else f"{package}.{place}")
        if place.rpartition(".")[2] != name:
            found = getattr(found, name)
        return own.__dict__.setdefault(name, found)

    return __getattr__


def further_names(package: str, modules: dict[str, ModuleType]) -> None:
    """Give modules additional names below `package`, and below `torch` if that means this package."""
    for above in (package, package.replace("adjoint", "torch", 1)):
        if sys.modules.get(above) is sys.modules[package]:
            sys.modules.update({f"{above}.{name}": module for name, module in modules.items()})


class computed_once(Generic[_T]):
    """An attribute that its first use computes, without the lock and the repetitions of `functools.cached_property`."""

    def __init__(self, function: Callable[[Any], _T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[_T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))
