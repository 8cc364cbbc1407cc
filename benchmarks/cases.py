"""A case is a function of `torch` or `adjoint` that prepares data and returns the function to time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

Timed = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One line of the table. `prepare(module)` returns the function that is timed."""

    name: str
    prepare: Callable[[ModuleType], Timed]


@dataclass
class Group:
    """A group of cases that are timed with the same number of threads. The report contains the geometric mean of the group."""

    name: str
    cases: list[Case] = field(default_factory=list)
    threads: int = 2

    def case(self, name: str) -> Callable[[Callable[[ModuleType], Timed]], Callable[[ModuleType], Timed]]:
        """Register the decorated function under `name`."""

        def register(prepare: Callable[[ModuleType], Timed]) -> Callable[[ModuleType], Timed]:
            self.cases.append(Case(name, prepare))
            return prepare

        return register
