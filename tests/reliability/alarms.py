"""Signal handlers that raise errors at random moments. Each error reaches the caller, and no in-place change is repeated."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable
from typing import Any

import adjoint as torch

from . import Outcome, experiment

STEPS = 40


class Late(RuntimeError):
    """The error that the handler raises. Kernels also raise errors of the base type of `Late`."""


class _Changes:
    """In-place changes of a vector. Each change adds 1 to all elements."""

    def __init__(self) -> None:
        self.x, self.ones, self.places = torch.zeros(2000), torch.ones(2000), torch.arange(2000)
        self.large, self.large_ones = torch.zeros(200_000), torch.ones(200_000)
        self.mask = self.ones.bool()
        self.parameter = torch.nn.Parameter(torch.zeros(2000))
        self.parameter.grad = -self.ones
        self.optimizer = torch.optim.SGD([self.parameter], lr=1.0)

    def all(self) -> dict[str, tuple[Callable[[], object], Any]]:
        """Return all changes by name, each with its target."""
        x, ones, places = self.x, self.ones, self.places
        return {
            "add_": (lambda: x.add_(ones), x),
            "add_ with alpha": (lambda: x.add_(ones, alpha=1.0), x),
            "add_ of a view": (lambda: x[:].add_(1), x),
            "add_ of many": (lambda: self.large.add_(self.large_ones), self.large),
            "out": (lambda: torch.add(x, ones, out=x), x),
            "setitem": (lambda: x.__setitem__(slice(None), x + 1), x),
            "setitem by a mask": (lambda: x.__setitem__(self.mask, x[self.mask] + 1), x),
            "copy_": (lambda: x.copy_(x + 1), x),
            "index_add_": (lambda: x.index_add_(0, places, ones), x),
            "scatter_add_": (lambda: x.scatter_add_(0, places, ones), x),
            "addcmul_": (lambda: x.addcmul_(ones, ones), x),
            "optimizer": (self.optimizer.step, self.parameter),
        }


def _tried(change: Callable[[], object], target: Any, seconds: float) -> str | None:
    """Repeat the change until the alarm, and return the failure, or None."""
    fired = seen = done = 0

    def ring(*_: Any) -> None:
        nonlocal fired
        fired += 1
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    with torch.no_grad():
        target.zero_()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for _ in range(STEPS):
            change()
            done += 1
        while not fired:
            pass
    except Late:
        seen = 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if fired and not seen:
        return "an error was LOST"
    found = target.detach()
    inside = done <= found.min().item() and found.max().item() <= done + seen
    return None if inside else f"{done} changes made, values are {found.min().item()} to {found.max().item()}"


@experiment("alarms", tries=12_000, short=240)
def alarms(tries: int) -> Outcome:
    """Alarms whose handler raises, at random moments in in-place changes: no error is lost, and no change is repeated."""
    outcome, chance = Outcome(), random.Random(0)
    changes = _Changes().all()
    for change, _ in changes.values():
        change()
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()  # callbacks of a test runner could swallow an alarm
    try:
        for number in range(tries):
            name = list(changes)[number % len(changes)]
            failure = _tried(*changes[name], chance.uniform(3e-5, 9e-4))
            outcome.note(None if failure is None else f"{name}: {failure}")
    finally:
        gc.callbacks[:] = callbacks
    return outcome
