"""Programs that run instruction by instruction, and their native runs kernel by kernel, for `inspect` and the profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from time import perf_counter
from typing import Any

from ..codegen.observed_kernels import KERNELS
from ..dispatch.source import compile_source
from .expectations import MISSED
from .objects import at_once


def in_steps(variant: Any, moment: Callable[[], None]) -> Any:
    """Return `run` of a variant, in the same lines, with calls of `moment` before the first and after each instruction.

    Observers of kernels see each block of native runs.
    """
    source, steps, *_ = variant.body
    lines = source.splitlines()
    for position, number in enumerate(sorted(steps)):
        first = "" if position else "moment(); "
        lines[number - 1] = f"    {first}{lines[number - 1].strip()}; moment()"
    names = {**variant.namespace, "moment": moment}
    apart = {id(each.function): each.run for each in variant.program.natives}
    names |= {name: apart[id(value)] for name, each in names.items() if id(value := at_once(each)) in apart}
    compile_source("\n".join(lines) + "\n", "<adjoint program in steps>", names)
    variant.code_in_steps = names["run"].__code__
    return names["run"]


class Times:
    """The instructions of one call of a program, each followed by its kernels, as texts with seconds in `found`."""

    def __init__(self, instructions: Any) -> None:
        self.instructions = iter(instructions)
        self.thread = get_ident()
        self.found: list[tuple[str, float]] = []
        self.kernels: list[tuple[str, float]] = []
        self.began: float | None = None

    def moment(self) -> None:
        """End the instruction that has run since the last moment, and begin the next instruction."""
        now = perf_counter()
        if self.began is not None:
            instruction, seconds = next(self.instructions), now - self.began
            if instruction.name == "native" and self.kernels:  # between its blocks, only the observation takes time
                seconds = sum(each for _, each in self.kernels)
            self.found += [(str(instruction), seconds), *self.kernels]
            self.kernels = []
        self.began = perf_counter()

    @contextmanager
    def kernel(self, name: str) -> Iterator[None]:
        """Record the time of a kernel."""
        began = perf_counter()
        yield
        if get_ident() == self.thread:
            self.kernels.append((f"  {name}", perf_counter() - began))


def timed(variant: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, float]] | None:
    """Run a variant, and return the times of its instructions and kernels, or None if it does not fit this call."""
    times = Times(variant.body.steps.values())
    run = in_steps(variant, times.moment)
    KERNELS.observe(times.kernel)
    try:
        return None if run(args, kwargs) is MISSED else [*times.found, *times.kernels]
    finally:
        KERNELS.stop_observing(times.kernel)


class Events:
    """The events of a program's instructions in a profile."""

    def __init__(self, instructions: Any, recorder: Any) -> None:
        self.instructions, self.recorder = iter(instructions), recorder
        self.event: Any = None

    def moment(self) -> None:
        """End the event of an instruction, and begin the event of the next instruction."""
        if self.event is not None:
            self.recorder.finish(self.event)
        instruction = next(self.instructions, None)
        self.event = None if instruction is None else self.recorder.begin(f"program::{instruction.name}")


def profiled(variant: Any, args: tuple[Any, ...], kwargs: dict[str, Any], recorder: Any) -> Any:
    """Run a variant with one event for each instruction in a profile. Programs for any size return MISSED."""
    if not variant.body.steps:
        return MISSED
    events = Events(variant.body.steps.values(), recorder)
    run = in_steps(variant, events.moment)
    with recorder.program():
        try:
            return run(args, kwargs)
        finally:
            if events.event is not None:
                recorder.finish(events.event)
