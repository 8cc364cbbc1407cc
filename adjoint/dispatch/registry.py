"""Families of operators: each is loaded when something that it declares is first asked for.

`operator_index` lists what each family declares. Until a family is loaded, the namespaces below load it for a name they lack,
and descriptors that do so stand in for methods of `Tensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from ..tensor import Tensor
from .operator_index import FAMILIES

METHODS, OPERATORS = "Tensor", "operators"
"""The parts of the index for methods and properties of `Tensor`, and for what formulas know under no other name."""

_package = "adjoint.operators"


def load(family: str) -> None:
    """Run the module of the family, unless that has been done; wait, if another thread is doing it."""
    import_module(f"{_package}.{family}")


def load_all() -> None:
    """Load every family: for those who look at all there is."""
    for family in FAMILIES:
        load(family)


def declared_in(*parts: str) -> dict[str, str]:
    """The names that the index has in these parts, and the family that declares each."""
    return {
        name: family
        for family, found in FAMILIES.items()
        for places, names in found.items()
        if not set(parts).isdisjoint(places.split())
        for name in names.split()
    }


@cache
def operators() -> dict[str, str]:
    """The family of each operator, and of whatever else formulas may use."""
    return declared_in("torch", METHODS, OPERATORS)


class Declared(dict[str, Any]):
    """What families declare, by name; those asked for are loaded."""

    def __init__(self, families: dict[str, str]) -> None:
        super().__init__()
        self._families = families

    def __missing__(self, name: str) -> Any:
        load(self._families[name])
        value = self.get(name, self)
        if value is self:
            raise KeyError(name)
        return value

    def names(self) -> set[str]:
        """All names, also of families that are not loaded."""
        return {*self, *self._families}

    def as_module(self, module: dict[str, Any], *more: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """`__getattr__` and `__dir__` for the module with these globals: it has these names (and `more` of its own)."""

        def look_up(name: str) -> Any:
            if name == "__all__":
                exported = {name for name, value in module.items() if type(value) is not ModuleType} | self.names()
                return sorted(name for name in exported if name[0] != "_")
            try:
                value = module[name] = self[name]
            except KeyError:
                raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}") from None
            return value

        def listed() -> list[str]:
            return sorted({*module, *self.names(), *more})

        return look_up, listed


class Namespace:
    """The attributes that families declare; those asked for are loaded."""

    def __init__(self, families: dict[str, str]) -> None:
        self._families = families

    def __getattr__(self, name: str) -> Any:
        family = self._families.get(name)
        if family is None:
            raise AttributeError(f"no operator is called {name!r}")
        load(family)
        return vars(self)[name]


class Awaited:
    """Stands in for a method or a property of `Tensor` until the family that declares it is loaded."""

    __slots__ = ("family", "name")

    def __init__(self, family: str, name: str) -> None:
        self.family = family
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        load(self.family)
        return getattr(owner if tensor is None else tensor, self.name)

    def __set__(self, tensor: Any, value: Any) -> None:
        load(self.family)
        setattr(tensor, self.name, value)


def stand_in_for_methods() -> None:
    """Put what stands in for the methods of families that are not loaded on `Tensor`."""
    there = {name for kind in Tensor.__mro__[:-1] for name in vars(kind)}
    for name, family in declared_in(METHODS).items():
        if name not in there:
            setattr(Tensor, name, Awaited(family, name))
