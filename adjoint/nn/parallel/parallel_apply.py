"""`parallel_apply`: modules that run at once, each in a thread of its own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ..modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its inputs (a tuple of arguments, or one argument) and named arguments, in threads.

    Raises:
        AssertionError: unless there are as many inputs, and named arguments, as modules.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    if len(modules) != len(named):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs {len(named)}")
    arguments = [each if isinstance(each, (tuple, list)) else (each,) for each in inputs]
    return _in_threads(
        [functools.partial(module, *a, **k) for module, a, k in zip(modules, arguments, named, strict=True)]
    )


def _in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each call in a thread of its own in this thread's grad mode; the first exception is raised again."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException | None] = [None] * len(calls)
    grad_enabled = torch.is_grad_enabled()

    def run(i: int) -> None:
        try:
            with torch.set_grad_enabled(grad_enabled):
                results[i] = calls[i]()
        except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
            errors[i] = error

    workers = [threading.Thread(target=run, args=(i,)) for i in range(1, len(calls))]
    for worker in workers:
        worker.start()
    run(0)
    for worker in workers:
        worker.join()
    for error in errors:
        if error is not None:
            raise error
    return results
