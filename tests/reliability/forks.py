"""Forks while other threads draw random numbers, run kernels in threads, and compile: the child works."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import adjoint as torch
from adjoint import nn

from . import Outcome, experiment
from ._children import in_child


def _draw(generator: Any) -> None:
    torch.rand(20000)
    torch.rand(20000, generator=generator)
    nn.functional.dropout(torch.ones(3000))


def _compute(generator: Any) -> None:
    torch.ones(1 << 19).softmax(0)
    nn.functional.gelu(torch.ones(1 << 19))
    torch.ones(1 << 20) * 2


def _train(generator: Any) -> None:
    x = torch.ones(64, requires_grad=True)
    with torch.no_grad():
        x * 2
    (x * x).sum().backward()


BUSY: dict[str, Callable[[Any], None]] = {"draws": _draw, "kernels": _compute, "training": _train}
"""The work of two threads while the process forks, by name."""


def child(generator: Any) -> Iterator[str | None]:
    """Do the work of a forked child."""
    torch.rand(3)
    torch.rand(3, generator=generator)
    nn.functional.dropout(torch.ones(100))
    x = torch.ones(1 << 20, requires_grad=True)
    (nn.functional.gelu(x) * 2).sum().backward()
    wrong = None if x.grad is not None and bool((x.grad == x.grad[0]).all()) else "WRONG gradient"
    if not torch.is_grad_enabled():
        wrong = "gradients are off"
    yield wrong


def forks(name: str, count: int) -> Outcome:
    """Fork repeatedly while two threads do the work of this name."""

    def parent() -> Iterator[str | None]:
        generator, stop, chance = torch.Generator(), [], random.Random(0)
        for _ in child(generator):
            pass

        def busy() -> None:
            while not stop:
                BUSY[name](generator)

        threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(count):
            time.sleep(chance.uniform(0, 0.02))
            found, end = in_child(lambda: child(generator), 30.0)
            yield end or found[0]
        stop.append(True)

    outcome = Outcome()
    found, end = in_child(parent, 60.0)
    for failure in [*found, *([end] if end else [])]:
        outcome.note(failure and f"{name}: {failure}")
    return outcome


@experiment("forks", tries=300, short=6)
def forks_of_all_kinds(count: int) -> Outcome:
    """Forks while two threads draw random numbers, run kernels, or train: the child draws, computes and trains."""
    outcome = Outcome()
    for name in BUSY:
        found = forks(name, -(-count // len(BUSY)))
        outcome.tried, outcome.survived = outcome.tried + found.tried, outcome.survived + found.survived
        outcome.failures.update(found.failures)
    return outcome
