"""Conditions on elements. A run of a program that does not meet one is left, before it has had an effect."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from ..random import Generator, default_generator
from .known import is_of_host
from .program import Constant, Instruction

EXPECT = "expect"
"""The name of instructions that leave the program if a condition on elements has another result than at the capture."""

CONDITIONS = {
    bool: "bool({0})", operator.eq: "{0} == {1}", operator.ne: "{0} != {1}", operator.lt: "{0} < {1}",
    operator.le: "{0} <= {1}", operator.gt: "{0} > {1}", operator.ge: "{0} >= {1}",
}  # fmt: skip
"""The source of the conditions."""

MISSED: Any = object()
"""The value that a variant returns if it does not fit the call."""


def missed(*given: Any) -> Any:
    """Report that the program does not fit the call."""
    return MISSED


class Expectation(str):
    """The source that leaves the program if `condition` of the operands has another result than `result`."""

    __slots__ = ("condition", "result")
    condition: Any
    result: bool

    @classmethod
    def of(cls, condition: Any, result: bool, draws: bool) -> Expectation:
        """Return the expectation. `draws`: whether the program has drawn random numbers before."""
        left = "states.restored(before)" if draws else "MISSED"
        self = cls(f"if ({CONDITIONS[condition]}) is not {result}: return {left}")
        self.condition, self.result = condition, result
        return self


class Left(Exception):
    """The error in a run on copies if it does not meet a condition."""


class States:
    """The states of all generators from which instructions draw."""

    def __init__(self, instructions: list[Instruction]) -> None:
        given = {id(each): each for instruction in instructions for each in generators_in(instruction)}
        self.generators = [default_generator, *given.values()]

    def __call__(self) -> list[Any]:
        """Return the states."""
        return [each.get_state() for each in self.generators]

    def restored(self, states: list[Any]) -> Any:
        """Restore the states, and report that the program does not fit the call."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)
        return MISSED


def generators_in(instruction: Instruction) -> Iterator[Generator]:
    """Yield the generators among the operands and the options of an instruction."""
    given = [each.value for each in instruction.operands if isinstance(each, Constant)]
    for each in (*given, *getattr(instruction.function, "kwargs", {}).values()):
        if isinstance(each, Generator):
            yield each


def has_effect(given: Instruction) -> bool:
    """Return whether an instruction changes outside objects in a way that the next program would not repeat."""
    return is_of_host(given) and given.name != "zero_grad"


def draws(given: Instruction) -> bool:
    """Return whether an instruction may draw random numbers."""
    if given.kernel is not None:
        return bool(given.kernel.random)
    return given.keeps and not given.changes and given.name not in (EXPECT, "move") and not is_of_host(given)


def with_effects(
    forward: list[Instruction], lines: list[str], effects: list[str], namespace: dict[str, Any]
) -> tuple[list[str], list[int]]:
    """Return the lines of instructions with `effects` after the last condition, and the position of each instruction."""
    last = max([position for position, each in enumerate(forward, 1) if each.name == EXPECT], default=0)
    namespace["states"] = States(forward)
    conditions = [each.function for each in forward if each.name == EXPECT]
    first = ["before = states()"] if any("before" in each for each in [*conditions, *effects]) else []
    positions = [len(first) + position + (position >= last) * len(effects) for position in range(len(forward))]
    return [*first, *lines[:last], *effects, *lines[last:]], positions
