"""The modes operators run under: per-thread state, and flags that make the default state cheap to see.

Reading thread-local state costs more than recording a small multiplication. `FLAGS` therefore summarises all threads in
plain attributes. While no thread has left the defaults, operators read only `FLAGS`; otherwise they read `STATE`, the
state of their own thread. The functions that switch rare modes are in `mode_switches`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..late_bound import LATE


class _Flags:
    """`grad`: no thread has disabled gradients. `special`: some thread is in a mode that needs the slow path.

    `hooked`: some thread has saved-tensor hooks. `user`: the globals of the module of the latest user frame, so that
    frames of the same module are recognised at once.
    """

    __slots__ = ("grad", "hooked", "special", "user")

    def __init__(self) -> None:
        self.grad = True
        self.hooked = False
        self.special = False
        self.user: dict[str, Any] | None = None


class _ThreadState(threading.local):
    """The modes of one thread. Class attributes are the defaults every new thread starts with."""

    grad_enabled = True
    inference = False
    # How many modes of this thread need the slow path. The recorder and saved-tensor hooks do not count.
    general = 0
    # Innermost last; each entry is a pair (pack, unpack). `hooks_disabled` is the error message while hooks are
    # disabled.
    saved_tensor_hooks: tuple[Any, ...] = ()
    hooks_disabled: str | None = None
    # Called with each tensor before an in-place change.
    before_change: Callable[[Any], None] | None = None
    # The recorder of the operators that run, for a profile of this thread, or None.
    recorder: Any = None
    # The result cache that the operators of this thread ask before they compute, or None.
    result_cache: Any = None
    multithreading = True
    view_replay = False
    grad_layout = True
    # The graph task of the backward that is running in this thread.
    task: Any = None
    # The device of new tensors: the default (None: the CPU), and those of `with` blocks, innermost last.
    default_place: Any = None
    places: tuple[Any, ...] = ()
    # Innermost last; see `interpreters`.
    interpreters: tuple[Any, ...] = ()
    forward_enabled = True
    # Whether `__torch_function__` of classes, and of modes, is called; the modes, innermost last. See `overrides`.
    asks_classes = True
    asks_modes = True
    function_modes: tuple[Any, ...] = ()
    # The function transforms (`vmap`, `grad`, ...) that are running, innermost last.
    transforms: tuple[Any, ...] = ()
    # Under anomaly detection, the `id`s of the leaves that lead to the custom function whose `forward` is running.
    covered: frozenset[int] = frozenset()


class _Anomaly:
    """Whether anomaly detection is on in all threads, and whether nan gradients are errors."""

    __slots__ = ("check_nan", "enabled")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


FLAGS = _Flags()
ANOMALY = _Anomaly()
STATE = _ThreadState()

_lock = threading.Lock()
_away_from_default = {"grad": 0, "hooked": 0, "special": 0}


def count(what: str, change: int) -> None:
    """Count a thread that leaves (1) or returns to (-1) the default of one of the flags."""
    with _lock:
        _away_from_default[what] += change
        FLAGS.grad = _away_from_default["grad"] == 0
        FLAGS.special = _away_from_default["special"] > 0
        FLAGS.hooked = _away_from_default["hooked"] > 0


def turn(change: int) -> None:
    """Enter (1) or leave (-1) a mode that sends the operators of this thread through the slow path."""
    STATE.general += change
    count("special", change)


def is_grad_enabled() -> bool:
    """Whether gradients are enabled in this thread."""
    return FLAGS.grad or STATE.grad_enabled


def is_recording() -> bool:
    """Whether operators create nodes in this thread: gradients are enabled and inference mode is off."""
    return (FLAGS.grad or STATE.grad_enabled) and not (FLAGS.special and STATE.inference)


def set_grad(enabled: bool) -> None:
    """Switch recording on or off in this thread."""
    state = STATE.__dict__  # the state of this thread, looked up once
    if enabled != state.get("grad_enabled", True):
        state["grad_enabled"] = enabled
        _lock.acquire()  # as `count`, in fewer steps: `with` costs as much as all the rest
        try:
            _away_from_default["grad"] = away = _away_from_default["grad"] + (-1 if enabled else 1)
            FLAGS.grad = away == 0
        finally:
            _lock.release()


def set_inference(enabled: bool) -> None:
    """Enter or leave inference mode in this thread; recording is switched separately."""
    if enabled != STATE.inference:
        STATE.inference = enabled
        turn(1 if enabled else -1)


def set_interpreters(interpreters: tuple[Any, ...]) -> None:
    """Set the interpreter stack of this thread, innermost last. With an empty stack, operators take their fast path."""
    if bool(interpreters) != bool(STATE.interpreters):
        change = 1 if interpreters else -1
        STATE.general += change
        with _lock:  # does what `count` does, in fewer steps
            _away_from_default["special"] = away = _away_from_default["special"] + change
            FLAGS.special = away > 0
    STATE.interpreters = interpreters


LATE.is_grad_enabled = is_grad_enabled
LATE.in_inference_mode = lambda: STATE.inference
