"""Long training in many threads, with faults. Each thread takes the same steps as a single thread, and memory does not grow."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import adjoint as torch
from adjoint import func, nn
from adjoint.utils.checkpoint import checkpoint
from adjoint.utils.data import DataLoader, TensorDataset
from tests.autograd.test_lifetime import resident_bytes

from . import Outcome, experiment

THREADS = 8
STEPS = 40
"""The number of training steps between two comparisons."""

WARM = 60
"""The number of rounds after which everything is loaded and compiled."""

GROWTH = 1 << 20
"""The number of bytes by which memory use may grow after these rounds, for a run of any length."""

Chance = Callable[[float], bool]


class Fault(Exception):
    """A random failure."""


class Cube(torch.autograd.Function):
    """A custom function whose backward may fail."""

    @staticmethod
    def forward(ctx: Any, x: Any, fail: Callable[[], None]) -> Any:
        ctx.save_for_backward(x)
        ctx.fail = fail
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        ctx.fail()
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x, None


class Trainee:
    """One model in training. `chance(probability)` decides whether a part of a step fails.

    The models are of different kinds: a perceptron, convolutions, a recurrent layer, attention, products that workers share, and
    gradients of a transformed function.
    """

    def __init__(self, seed: int, chance: Chance) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.chance = chance
        self.forward = [self._layers, self._convolutions, self._recurrence, self._attention, self._large][seed % 5]
        self.layers, shape = self._parts()
        with torch.no_grad():
            for parameter in self.layers.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
        x, target = torch.randn(shape, generator=generator), torch.randint(0, 5, shape[:1], generator=generator)
        batches = DataLoader(TensorDataset(x, target), batch_size=shape[0] // 2)
        self.batches = [*batches, *batches]
        self.optimizer = torch.optim.AdamW(self.layers.parameters(), lr=1e-3)
        first = next(iter(self.layers.children()))
        first.register_forward_hook(lambda *_: self._fail(0.03))
        next(self.layers.parameters()).register_hook(lambda grad: self._fail(0.03))

    def _parts(self) -> tuple[Any, tuple[int, ...]]:
        """Return the model, and the shape of its input."""
        match self.forward.__name__:
            case "_convolutions":
                body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
                return nn.Sequential(body, nn.Linear(54, 5)), (32, 1, 8, 8)
            case "_recurrence":
                return nn.Sequential(nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 5)), (16, 6, 8)
            case "_attention":
                return nn.Sequential(nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 5)), (16, 6, 8)
            case "_large":
                return nn.Sequential(nn.Linear(256, 512), nn.Linear(512, 5)), (512, 256)
            case _:
                body = [nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 5)]
                return nn.Sequential(*body), (128, 12)

    def _layers(self, x: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(self._packed, lambda packed: packed):
            hidden = self.layers[:3](x)
        return checkpoint(self.layers[3], hidden, use_reentrant=False)

    def _convolutions(self, x: Any) -> Any:
        return self.layers(x)

    def _recurrence(self, x: Any) -> Any:
        return self.layers[1](self.layers[0](x)[0][:, -1])

    def _attention(self, x: Any) -> Any:
        mixed = Cube.apply(self.layers[0](x, x, x)[0], lambda: self._fail(0.03))
        return self.layers[1](mixed.mean(1))

    def _large(self, x: Any) -> Any:
        return self.layers[1](nn.functional.gelu(self.layers[0](x)).softmax(-1))

    def _fail(self, probability: float) -> None:
        if self.chance(probability):
            raise Fault

    def _packed(self, tensor: Any) -> Any:
        self._fail(0.005)
        return tensor.detach()

    def _penalty(self) -> Any:
        """Apply transforms to a function that may fail, and return a number."""

        def function(x: Any) -> Any:
            self._fail(0.01)
            return (x.sin() * x).sum()

        return func.vmap(func.grad(function))(torch.ones(3, 4)).sum()

    def step(self, x: Any, target: Any) -> float:
        """Take one step. A failure leaves the parameters unchanged."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.forward(x), target)
        with torch.no_grad():
            found: float = loss.item() + self._penalty().item()
        loss.backward()
        self._fail(0.03)
        self.optimizer.step()
        return found

    def run(self, steps: int) -> list[float]:
        """Return the losses of `steps` successful steps."""
        losses: list[float] = []
        while len(losses) < steps:
            try:
                losses.append(self.step(*self.batches[len(losses) % len(self.batches)]))
            except Fault:
                pass
        return losses


def _beside(seed: int, chance: random.Random, found: dict[int, list[float]], errors: list[str]) -> None:
    """Train in a thread, with faults."""
    trainee = Trainee(seed, lambda probability: chance.random() < probability)
    try:
        found[seed] = trainee.run(STEPS)
    except BaseException as error:
        errors.append(f"{type(error).__name__}: {str(error)[:80]}")
    vars(trainee).clear()  # the hooks of the model refer to the model


def _round(number: int, alone: list[list[float]], outcome: Outcome) -> None:
    """Train in eight threads simultaneously, and compare the losses of each thread with the losses of a single thread."""
    found: dict[int, list[float]] = {}
    errors: list[str] = []
    chances = [random.Random(f"{number} {seed}") for seed in range(THREADS)]
    threads = [threading.Thread(target=_beside, args=(seed, chances[seed], found, errors)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(THREADS):
        same = seed in found and numpy.array_equal(found[seed], alone[seed])
        outcome.note(None if same else (errors or [f"WRONG losses of {seed}"])[0])


@contextlib.contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Return an event that SIGINT and SIGTERM set. After one of these signals, the round finishes and reports its counts."""
    asked = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = [signal.signal(number, lambda *_: asked.set()) for number in signals]
    try:
        yield asked
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


class _Allocated(ctypes.Structure):
    """The result of `mallinfo2` of the C library.

    `uordblks` is the number of used bytes in arenas, and `hblkhd` the number of bytes in separate mappings.
    """

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


@functools.cache
def _mallinfo() -> Any:
    """Return the function of the C library, or None.

    The function is loaded once, because a library that ctypes loads is part of a reference cycle.
    """
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is not None:
        ask.restype = _Allocated
    return ask


def bytes_in_use() -> int:
    """Return the size of allocated memory, including arrays, in bytes.

    Return 0 if the C library does not report this size. The process occupies more memory, because eight threads allocate and free
    simultaneously, which leaves gaps in the arenas of the C library.
    """
    ask = _mallinfo()
    if ask is None:
        return 0
    found = ask()
    return int(found.uordblks + found.hblkhd)


def _told(outcome: Outcome, memory: list[int], seconds: float) -> str:
    """Return a report on the progress of the soak."""
    return (
        f"{seconds / 60:6.1f} min  tried {outcome.tried:>6}  survived {outcome.survived:>6}  rounds {len(memory):>5}"
        f"  memory {memory[-1] / 1e6:.0f} MB  processor {time.process_time() / 60:.1f} min"
    )


def _quarters(values: list[int]) -> str:
    """Return the first value and the values after each quarter, in MB."""
    return ", ".join(f"{values[(len(values) - 1) * part // 4] / 1e6:.1f}" for part in range(5))


@experiment("soak", tries=3600, short=1)
def soak(seconds: int) -> Outcome:
    """Eight threads train with random faults: each thread has the losses of a single thread, and memory does not grow.

    Progress is reported each minute. After SIGINT or SIGTERM, the experiment ends with the current round.
    """
    outcome = Outcome()
    alone = [Trainee(seed, lambda probability: False).run(STEPS) for seed in range(THREADS)]
    interval, begun, told = sys.getswitchinterval(), time.perf_counter(), 0.0
    sys.setswitchinterval(1e-5)
    gc.collect()
    gc.disable()
    memory: list[int] = []
    used: list[int] = []
    with _asked_to_end() as asked:
        try:
            while not memory or (time.perf_counter() - begun < seconds and not asked.is_set()):
                _round(len(memory), alone, outcome)
                memory.append(resident_bytes())
                used.append(bytes_in_use())
                if len(used) > WARM and used[-1] - used[WARM - 1] > GROWTH:
                    grown, rounds = (used[-1] - used[WARM - 1]) >> 10, len(used) - WARM
                    outcome.note(f"memory in use grew by {grown} KiB in {rounds} rounds")
                passed = time.perf_counter() - begun
                if passed - told >= 60:
                    told = passed
                    print(_told(outcome, memory, passed), flush=True)
        finally:
            sys.setswitchinterval(interval)
            gc.enable()
    ended = ", ended by a signal" if asked.is_set() else ""
    outcome.remarks.append(
        f"{len(memory) * THREADS * STEPS} steps in {len(memory)} rounds{ended}; at the quarters {_quarters(used)} MB in use,"
        f" {_quarters(memory)} MB occupied; {time.process_time():.0f} s of processor time"
    )
    return outcome
