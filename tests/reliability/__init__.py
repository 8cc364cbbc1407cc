"""Experiments that try to break the library: interrupts, races, faults, hostile input. Each counts tries and survivals.

`python -m tests.reliability` lists the experiments; `python -m tests.reliability NAME` runs one in full. The ordinary
tests run a short form of each. A module of this package holds the experiments of one kind; it registers them with
`experiment`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What an experiment has seen.

    `failures`: what went wrong, with the number of times. `known`: by their reasons, differences from PyTorch that are listed;
    they count as tried, and neither as survived nor as failures. `remarks`: what else was measured.
    """

    tried: int = 0
    survived: int = 0
    failures: collections.Counter[str] = field(default_factory=collections.Counter)
    known: collections.Counter[str] = field(default_factory=collections.Counter)
    remarks: list[str] = field(default_factory=list)

    def note(self, failure: str | None) -> None:
        """Count one try: what went wrong, or None."""
        self.tried += 1
        if failure is None:
            self.survived += 1
        else:
            self.failures[failure] += 1


@dataclass
class Experiment:
    """`run(tries)` makes this many tries; `tries` are those of the full form, `short` those of the ordinary tests."""

    name: str
    tries: int
    short: int
    run: Callable[[int], Outcome]

    @property
    def about(self) -> str:
        """The first line of the docstring."""
        return (self.run.__doc__ or "").partition("\n")[0]


EXPERIMENTS: dict[str, Experiment] = {}
"""By name; filled by the modules of this package."""


def experiment(name: str, *, tries: int, short: int) -> Callable[[Callable[[int], Outcome]], Callable[[int], Outcome]]:
    """Register a function as an experiment."""

    def register(run: Callable[[int], Outcome]) -> Callable[[int], Outcome]:
        EXPERIMENTS[name] = Experiment(name, tries, short, run)
        return run

    return register
