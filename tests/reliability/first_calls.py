"""First calls: threads that load operators simultaneously, and forks and interrupts while operators are loaded."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import Outcome, experiment
from ._children import in_child, now

THREADS = 8


def calls(torch: Any) -> list[Callable[[], Any]]:
    """Calls of operators of many families."""
    t = torch.linspace(0.1, 0.9, 6).reshape(2, 3)
    image, kernel = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    large = torch.ones(1 << 17)
    w = torch.ones(3, requires_grad=True)
    names = (
        "isinf isnan sin exp erf tanh sigmoid floor sign neg abs log1p rsqrt cumsum cumprod logcumsumexp sum mean var "
    )
    names += "prod amax argmax sort ravel trace diag tril unique nonzero isfinite square frac softmax log_softmax "
    by_dim = "cumsum cumprod logcumsumexp softmax log_softmax".split()
    return [
        *((lambda n=n: getattr(torch, n)(t, *([0] if n in by_dim else []))) for n in names.split()),
        lambda: torch.nn.functional.gelu(t),
        lambda: torch.rand(3),
        lambda: torch.linalg.svd(t),
        lambda: torch.fft.fft(t),
        lambda: torch.special.erfcx(t),
        lambda: (w * w).sum().backward(),
        lambda: torch.cat([t, t]),
        lambda: torch.einsum("ij,kj->ik", t, t),
        lambda: torch.nn.functional.conv2d(image, kernel),
        lambda: torch.nn.Linear(3, 3)(t).sum().backward(),
        lambda: torch.optim.Adam([torch.ones(3, requires_grad=True)]).step(),
        lambda: torch.func.vmap(torch.sin)(t),
        lambda: torch.func.grad(lambda x: x.sin().sum())(t),
        lambda: t.clone().add_(1),
        lambda: torch.where(t > 0, t, t),
        lambda: t.topk(2),
        lambda: torch.bincount(torch.arange(3)),
        lambda: torch.nn.functional.cross_entropy(t, torch.tensor([0, 1])),
        lambda: torch.distributions.Normal(0.0, 1.0).sample(),
        lambda: torch.cdist(t, t),
        lambda: torch.ones(3).index_add_(0, torch.tensor([0]), torch.ones(1)),
        lambda: torch.nn.functional.layer_norm(large.reshape(128, 1024), (1024,)),
        lambda: torch.nn.functional.gelu(large),
        lambda: torch.exp(large),
    ]


def together(torch: Any, seed: int, alike: bool = False) -> str | None:
    """Make these calls in several threads simultaneously, and return the last line of the first error, or None.

    `alike`: all threads make the calls in the same order.

    """
    gate, wrong = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        order = calls(torch)
        random.Random(seed if alike else seed * THREADS + number).shuffle(order)
        gate.wait()
        for call in order:
            try:
                call()
            except BaseException:
                wrong.append(traceback.format_exc().splitlines()[-1])

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong[0][:100] if wrong else None


def races(count: int, seed: int) -> Iterator[tuple[str, str | None]]:
    """Make first calls in threads, in `count` forked children at each switch interval."""
    import adjoint as torch

    for number in range(count):
        for interval in (1e-6, 5e-3):

            def once(interval: float = interval, number: int = number) -> Iterator[str | None]:
                sys.setswitchinterval(interval)
                yield together(torch, seed + number, alike=number % 2 == 1)

            found, end = in_child(once, 90.0)
            yield "race", end or found[0]


def struck(count: int, seed: int) -> Iterator[tuple[str, str | None]]:
    """Interrupt first calls; afterwards all calls must succeed."""
    import adjoint as torch

    for number in range(count):

        def once(number: int = number) -> Iterator[str | None]:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            chance = random.Random(seed + number)
            order = calls(torch)
            chance.shuffle(order)
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-3, 1.0))
                for call in order:
                    call()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            for call in calls(torch):
                try:
                    call()
                except BaseException as error:
                    yield traceback.format_exc().splitlines()[-1][:100] or str(error)
                    return
            yield None

        found, end = in_child(once, 90.0)
        yield "interrupt", end or found[0]


def forked(count: int, seed: int) -> Iterator[tuple[str, str | None]]:
    """Fork while two threads make their first calls. The child makes all calls."""
    import adjoint as torch

    for number in range(count):

        def once(number: int = number) -> Iterator[str | None]:
            chance = random.Random(seed + number)
            for _ in range(2):
                order = calls(torch)
                chance.shuffle(order)
                threading.Thread(target=lambda order=order: [call() for call in order], daemon=True).start()
            end = now() + chance.uniform(0.0, 0.5)
            while now() < end:
                pass

            def child() -> Iterator[str | None]:
                for call in calls(torch):
                    call()
                yield None

            found, end_of_child = in_child(child, 60.0)
            yield end_of_child or found[0]

        found, end = in_child(once, 90.0)
        yield "fork", end or found[0]


KINDS = {"races": races, "struck": struck, "forked": forked}


def in_fresh_process(kind: str, count: int) -> Outcome:
    """Run an experiment in a process that has only imported the library and forks a child for each try."""
    outcome = Outcome()
    root = Path(__file__).parents[2]
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", __name__, kind, str(count)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=root) as process:
            assert process.stdout is not None
            for line in process.stdout:
                outcome.note(line.strip() if line.strip() != "ok" else None)
        if process.returncode:
            errors.seek(0)
            outcome.note(f"the process has failed: {errors.read()[-200:]}")
    return outcome


@experiment("first calls", tries=400, short=2)
def first_calls(count: int) -> Outcome:
    """Eight threads simultaneously call operators for the first time, in new processes, at two switch intervals."""
    return in_fresh_process("races", -(-count // 2))


@experiment("first calls interrupted", tries=200, short=2)
def first_calls_interrupted(count: int) -> Outcome:
    """An interrupt while operators are called for the first time: afterwards all operators can be called."""
    return in_fresh_process("struck", count)


@experiment("forks in first calls", tries=100, short=2)
def forks_in_first_calls(count: int) -> Outcome:
    """A fork while two threads call operators for the first time: the child can call all operators."""
    return in_fresh_process("forked", count)


if __name__ == "__main__":
    for _name, _failure in KINDS[sys.argv[1]](int(sys.argv[2]), 0):
        print(_failure or "ok", flush=True)
