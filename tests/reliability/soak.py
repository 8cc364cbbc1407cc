"""Training in many threads for a long time, with faults: each thread's steps are those of a thread alone; memory stays flat."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy

import adjoint as torch
from adjoint import nn
from adjoint.utils.checkpoint import checkpoint
from tests.test_lifetime import resident_bytes

from . import Outcome, experiment

THREADS = 8
ROUND = 60
"""Steps of training between two comparisons."""

GROWTH = 16 << 20
"""Bytes that the process may grow by after the first rounds, however long it runs."""


class Fault(Exception):
    """What fails, at random."""


class Trainee:
    """One model in training; `chance(probability)` says whether a part of a step fails now."""

    def __init__(self, seed: int, chance: Callable[[float], bool]) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.chance = chance
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 5))
        with torch.no_grad():
            for parameter in self.layers.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
        self.x = torch.randn(64, 12, generator=generator)
        self.target = torch.randint(0, 5, (64,), generator=generator)
        self.optimizer = torch.optim.AdamW(self.layers.parameters(), lr=1e-3)
        self.layers[1].register_forward_hook(lambda *_: self._fail(0.03))
        self.layers[0].weight.register_hook(lambda grad: self._fail(0.03))

    def _fail(self, probability: float) -> None:
        if self.chance(probability):
            raise Fault

    def step(self) -> float:
        """One step; what fails leaves the parameters as they were."""
        self.optimizer.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(self._packed, lambda packed: packed):
            hidden = self.layers[:3](self.x)
        out = checkpoint(self.layers[3], hidden, use_reentrant=False)
        loss = nn.functional.cross_entropy(out, self.target)
        with torch.no_grad():
            found: float = loss.item()
        loss.backward()
        self._fail(0.03)
        self.optimizer.step()
        return found

    def _packed(self, tensor: Any) -> Any:
        self._fail(0.005)
        return tensor.detach()

    def run(self, steps: int) -> list[float]:
        """The losses of so many steps that have not failed."""
        losses: list[float] = []
        while len(losses) < steps:
            try:
                losses.append(self.step())
            except Fault:
                pass
        return losses


def _beside(seed: int, found: dict[int, list[float]], errors: list[str]) -> None:
    """Train in a thread, with faults."""
    chance = random.Random(seed)
    try:
        found[seed] = Trainee(seed, lambda probability: chance.random() < probability).run(ROUND)
    except BaseException as error:
        errors.append(f"{type(error).__name__}: {str(error)[:80]}")


@experiment("soak", tries=3600, short=2)
def soak(rounds: int) -> Outcome:
    """Eight threads train with random faults; each has the losses of a thread alone, and memory stays flat."""
    outcome = Outcome()
    alone = [Trainee(seed, lambda probability: False).run(ROUND) for seed in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    gc.collect()
    gc.disable()
    resident = 0
    try:
        for number in range(rounds):
            found: dict[int, list[float]] = {}
            errors: list[str] = []
            threads = [threading.Thread(target=_beside, args=(seed, found, errors)) for seed in range(THREADS)]
            begun = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if number == 1:
                resident = resident_bytes()
            for seed in range(THREADS):
                same = seed in found and numpy.array_equal(found[seed], alone[seed])
                outcome.note(None if same else (errors or ["WRONG losses"])[0])
            if number > 1 and resident_bytes() - resident > GROWTH:
                outcome.note(f"memory grew by {(resident_bytes() - resident) >> 20} MB in {number - 1} rounds")
            if time.perf_counter() - begun > 300:
                outcome.note("a round took five minutes")
    finally:
        sys.setswitchinterval(interval)
        gc.enable()
    return outcome
