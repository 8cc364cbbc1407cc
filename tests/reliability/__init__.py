"""Experiments that try to break the library: interrupts, races, faults, hostile input.

Each experiment counts tries and survivals. `python -m tests.reliability` lists the experiments. `python -m tests.reliability
NAME` runs one experiment in full. The ordinary tests run a short form of each experiment. Each module of this package contains
experiments of one kind, and registers them with `experiment`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The counts of an experiment.

    `failures`: the descriptions of failures, with their counts. `known`: the counts of listed differences from PyTorch,
    by reason. Tries with listed differences do not count as survivals or failures. `remarks`: other measurements.
    """

    tried: int = 0
    survived: int = 0
    failures: collections.Counter[str] = field(default_factory=collections.Counter)
    known: collections.Counter[str] = field(default_factory=collections.Counter)
    remarks: list[str] = field(default_factory=list)

    def note(self, failure: str | None) -> None:
        """Count one try. `failure` is a description of the failure, or None."""
        self.tried += 1
        if failure is None:
            self.survived += 1
        else:
            self.failures[failure] += 1


@dataclass
class Experiment:
    """One experiment. `run(tries)` makes this number of tries.

    `tries` is the number in the full form, and `short` is the number in the ordinary tests.
    """

    name: str
    tries: int
    short: int
    run: Callable[[int], Outcome]

    @property
    def about(self) -> str:
        """Return the first line of the experiment's docstring."""
        return (self.run.__doc__ or "").partition("\n")[0]


EXPERIMENTS: dict[str, Experiment] = {}
"""The experiments by name, which the modules of this package register."""


def experiment(name: str, *, tries: int, short: int) -> Callable[[Callable[[int], Outcome]], Callable[[int], Outcome]]:
    """Register a function as an experiment."""

    def register(run: Callable[[int], Outcome]) -> Callable[[int], Outcome]:
        EXPERIMENTS[name] = Experiment(name, tries, short, run)
        return run

    return register
