"""What switches the rarer modes: anomaly detection, recorders, saved-tensor hooks, devices, and the modes of another thread.

Each counts, by `modes.count`, that its thread has left the defaults, or has come back to them.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from ..device import device
from ..late_bound import LATE
from .modes import ANOMALY, STATE, count, turn


def set_anomaly(enabled: bool, check_nan: bool) -> None:
    """Switch anomaly detection on or off, in all threads."""
    if enabled != ANOMALY.enabled:
        count("special", 1 if enabled else -1)
    ANOMALY.enabled, ANOMALY.check_nan = enabled, check_nan


def set_recorder(recorder: Any) -> None:
    """Let `recorder` (None: nothing) note the operators that run in this thread."""
    if (recorder is None) != (STATE.recorder is None):
        count("special", -1 if recorder is None else 1)
    STATE.recorder = recorder


def set_result_cache(result_cache: Any) -> None:
    """Let `result_cache` (None: nothing) stand between the operators of this thread and their array functions."""
    if (result_cache is None) != (STATE.result_cache is None):
        turn(-1 if result_cache is None else 1)
    STATE.result_cache = result_cache


def set_default_place(place: Any) -> None:
    """Let new tensors of this thread be made at `place` (None: on the CPU)."""
    if (place is None) != (STATE.default_place is None):
        count("special", -1 if place is None else 1)
    STATE.default_place = place


def current_place() -> Any:
    """Where new tensors of this thread are made; None: on the CPU."""
    return STATE.places[-1] if STATE.places else STATE.default_place


def enter_place(place: device) -> device:
    """Let new tensors of this thread be made at `place` until it is left."""
    STATE.places = (*STATE.places, place)
    count("special", 1)
    return place


def leave_place(place: device) -> None:
    """The reverse of `enter_place`."""
    STATE.places = STATE.places[:-1]
    count("special", -1)


def set_view_replay(enabled: bool) -> None:
    """Let views of this thread be followed, or not, by the operations that made them."""
    if enabled != STATE.view_replay:
        turn(1 if enabled else -1)
    STATE.view_replay = enabled


def push_saved_tensor_hooks(entry: Any) -> None:
    """Make `entry` the innermost saved-tensor hooks of this thread.

    Raises RuntimeError where they are disabled.
    """
    if STATE.hooks_disabled is not None:
        raise RuntimeError(STATE.hooks_disabled)
    STATE.saved_tensor_hooks = (*STATE.saved_tensor_hooks, entry)
    STATE.grad_enabled = STATE.grad_enabled  # from the default of all threads to this thread's own
    count_hooks(1)


def pop_saved_tensor_hooks() -> None:
    """Leave the innermost saved-tensor hooks of this thread."""
    STATE.saved_tensor_hooks = STATE.saved_tensor_hooks[:-1]
    count_hooks(-1)


def count_hooks(change: int) -> None:
    """Count hooks twice, so that recording may be switched off and on while they run, without counting each time."""
    count("hooked", change)
    count("grad", change)


def set_before_change(watch: Callable[[Any], None] | None) -> None:
    """Let `watch` (None: nobody) be told of each tensor of this thread that is about to be changed in place."""
    if (watch is None) != (STATE.before_change is None):
        turn(-1 if watch is None else 1)
    STATE.before_change = watch


class inherited:
    """The modes of the thread that makes this, for another one to be in while it works for the first."""

    def __init__(self) -> None:
        self.state = {name: value for name, value in vars(STATE).items() if name != "task"}

    def __enter__(self) -> None:
        vars(STATE).update(self.state)
        self._count(1)

    def __exit__(self, *exception: object) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        hooks = len(self.state.get("saved_tensor_hooks", ()))
        asked = int(self.state.get("recorder") is not None)
        asked += sum(not hasattr(transform, "enter") for transform in self.state.get("transforms", ()))
        asked += len(self.state.get("places", ())) + (self.state.get("default_place") is not None)
        count("special", change * (asked + self.state.get("general", 0)))
        count("grad", change * (not self.state.get("grad_enabled", True)))
        count_hooks(change * hooks)


def in_another_thread(function: Any, *args: Any) -> Any:
    """What `function(*args)` returns in a new thread, in the modes of this one."""
    state, context, results, errors = inherited(), contextvars.copy_context(), [], []

    def call() -> None:
        try:
            with state:
                results.append(context.run(function, *args))
        except BaseException as error:  # noqa: BLE001  (raised again by who waits)
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results.pop()


def raise_flag() -> None:
    """Let every operator take the slow path, until the flag is lowered as often as it was raised."""
    count("special", 1)


def lower_flag() -> None:
    """The reverse of `raise_flag`."""
    count("special", -1)


LATE.enter_device = enter_place
LATE.leave_device = leave_place
