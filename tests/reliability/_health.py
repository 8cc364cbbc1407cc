"""Check for changes: the state of the thread, locks, wrappers, the pool, and the gradients of a step."""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import numpy

import adjoint as torch
from adjoint import nn
from adjoint.aten import profiled_functions
from adjoint.autograd import forward_ad
from adjoint.tape.modes import ANOMALY, FLAGS, STATE
from adjoint.tape.torch_dispatch import DISPATCHING

PATIENCE = 10.0
"""The number of seconds in which threads must finish the work that they did when an interrupt arrived."""

LOCKS = (type(threading.Lock()), type(threading.RLock()))


def health() -> Callable[[], str | None]:
    """Return a function that reports the changes of state since this call, or returns None."""
    state, flags, expected = thread_state(), flag_values(), training_step()
    model = shared_model()
    parameters = [id(each) for each in model.parameters()]
    large_sum()  # starts the pool
    threads = threading.active_count()
    stream = torch.random.default_generator

    def ill() -> str | None:
        if not soon(lambda: threading.active_count() <= threads):
            return f"{threading.active_count() - threads} threads go on"
        if (changed := differing(state, thread_state())) is not None:
            return f"thread state: {changed}"
        if (changed := differing(flags, flag_values())) is not None:
            return f"flags: {changed}"
        for lock, name in locks(len(sys.modules)):
            if not lock.acquire(timeout=PATIENCE):
                return f"lock {name} is held"
            owned = getattr(lock, "_is_owned", None)
            lock.release()
            if owned is not None and owned():
                return f"lock {name} is held by this thread"
        if (name := watched_function()) is not None:
            return f"{name} is still watched by the profiler"
        if [id(each) for each in model.parameters()] != parameters:
            return "a module has other parameters"
        try:
            if (different := unequal(training_step(), expected)) is not None:
                return f"WRONG {different}"
            with torch.random.fork_rng():
                torch.rand(3, generator=stream)
            if large_sum() != 2 << 20:
                return "WRONG sum of a large array"
        except Exception as error:
            return f"next step: {type(error).__name__}: {str(error)[:80]}"
        return None

    return ill


def large_sum() -> float:
    """Compute a sum in several threads."""
    return float((torch.ones(1 << 20) * 2).sum())


def soon(true: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within a time limit."""
    end = time.perf_counter() + PATIENCE
    while not (found := true()) and time.perf_counter() < end:
        time.sleep(0.001)
    return found


_SHARED: list[Any] = []


def shared_model() -> Any:
    """Return one module that all tries share, so that the effects of a try on later tries are detected."""
    if not _SHARED:
        _SHARED.append(nn.Linear(3, 3))
    return _SHARED[0]


def thread_state() -> dict[str, Any]:
    """Return the state that a program can query, and the internal state."""
    found: dict[str, Any] = {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "anomaly": (ANOMALY.enabled, ANOMALY.check_nan),
        "device": str(torch.get_default_device()),
        "dtype": torch.get_default_dtype(),
        "level": forward_ad._current_level,
        "threads": torch.get_num_threads(),
        "errstate": numpy.geterr(),
    }
    found.update({name: value for name, value in vars(STATE).items() if value is not None and value != ()})
    found.pop("end", None)
    return {name: value for name, value in found.items() if value != vars(type(STATE)).get(name, found)}


def flag_values() -> dict[str, Any]:
    """Return the flags that summarize the states of all threads."""
    names = [name for name in type(FLAGS).__slots__ if name != "file"]
    return {name: (dict(value) if isinstance(value := getattr(FLAGS, name), dict) else value) for name in names}


def differing(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the differences as text."""
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            return f"{name} is {after.get(name)!r:.60}"
    return None


@functools.lru_cache(maxsize=1)
def locks(modules: int) -> list[tuple[Any, str]]:
    """Return the locks of the package's modules and of objects in these modules.

    `modules`, the key of the cache, are the loaded modules.
    """
    found = []
    for module in [value for name, value in list(sys.modules.items()) if name.startswith("adjoint") and value]:
        for name, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType) or name.startswith("__"):
                continue
            parts = list(value) if isinstance(value, (tuple, list)) else [value]
            if (type(value).__module__ or "").startswith("adjoint") and not isinstance(value, type):
                parts += list(getattr(value, "__dict__", {}).values())
            found += [(part, f"{module.__name__}.{name}") for part in parts if isinstance(part, LOCKS)]
    return found


def watched_function() -> str | None:
    """Return a function whose calls are still reported to a profiler although no profile runs, or None.

    After the definition of a class with `__torch_dispatch__`, functions that create tensors are always reported.
    """
    torch.zeros(1)  # an interrupt may have hidden the end of a mode, which the next call detects
    leaves = () if profiled_functions._takers and not DISPATCHING else profiled_functions.leaves()
    for wrapper in profiled_functions._made.get("all", ()):
        if wrapper in leaves:
            continue
        enter = (wrapper.function.__kwdefaults__ or {}).get("enter")
        if isinstance(getattr(enter, "__self__", None), profiled_functions._Watch):
            return wrapper.name
    return None


def training_step() -> list[Any]:
    """Return the gradients of a small model with known weights, and its parameters after a step."""
    first = torch.linspace(-1, 1, 32).reshape(4, 8).requires_grad_()
    second = torch.linspace(1, -1, 8).reshape(8, 1).requires_grad_()
    x = torch.linspace(0, 1, 12).reshape(3, 4)
    optimizer = torch.optim.SGD([first, second], lr=0.1, momentum=0.9)
    loss = nn.functional.mse_loss(torch.tanh(x @ first) @ second, x[:, :1])
    loss.backward()
    optimizer.step()
    return [each.detach().numpy().copy() for each in (loss, first.grad, second.grad, first, second)]


def unequal(found: list[Any], expected: list[Any]) -> str | None:
    """Return the first array of a step that differs, or None."""
    names = ("loss", "gradient", "gradient", "parameter", "parameter")
    for name, one, other in zip(names, found, expected, strict=True):
        if not numpy.array_equal(one, other):
            return name
    return None
