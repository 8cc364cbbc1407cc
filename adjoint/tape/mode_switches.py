"""Functions that switch rare modes: saved-tensor hooks and devices; and the modes of one thread in another."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

from ..device import device
from ..late_bound import LATE
from ..uninterrupted import uninterrupted
from .modes import STATE, settle, switch


def current_place() -> Any:
    """The device on which this thread creates tensors (None: the CPU)."""
    return STATE.places[-1] if STATE.places else STATE.default_place


@uninterrupted
def enter_place(place: device) -> device:
    """Create the tensors of this thread on `place` until `leave_place` is called."""
    switch("places", (*STATE.places, place))
    return place


@uninterrupted
def leave_place(place: device) -> None:
    """Undo `enter_place`."""
    switch("places", STATE.places[:-1])


@uninterrupted
def push_saved_tensor_hooks(entry: Any) -> None:
    """Make `entry` the innermost saved-tensor hooks of this thread.

    Raises RuntimeError if saved-tensor hooks are disabled.
    """
    if STATE.hooks_disabled is not None:
        raise RuntimeError(STATE.hooks_disabled)
    switch("saved_tensor_hooks", (*STATE.saved_tensor_hooks, entry))


@uninterrupted
def pop_saved_tensor_hooks() -> None:
    """Remove the innermost saved-tensor hooks of this thread."""
    switch("saved_tensor_hooks", STATE.saved_tensor_hooks[:-1])


_OF_THREAD = ("task", "number", "end")
"""The parts of a thread's state that are no modes."""


class inherited:
    """Context manager: put another thread into the modes of the thread that created this object."""

    def __init__(self) -> None:
        self.state = {name: value for name, value in vars(STATE).items() if name not in _OF_THREAD}

    def __enter__(self) -> None:
        here = vars(STATE)
        self.before = {name: here[name] for name in self.state}
        here |= self.state
        settle()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        here = STATE.__dict__
        here |= self.before
        settle()


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


LATE.enter_device = enter_place
LATE.leave_device = leave_place
