"""The modes operators run under: per-thread state, and flags that make the default state cheap to see.

Reading thread-local state costs more than a small multiplication's bookkeeping. `FLAGS` therefore
summarises all threads in plain attributes: while no thread has left the defaults, operators look
no further; when some thread has, they consult `STATE`, their own thread's. What switches the rarer modes is in `mode_switches`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..late_bound import LATE


class _Flags:
    """`grad`: no thread has disabled gradients. `special`: some thread is in a mode that needs the slow path.

    `hooked`: some thread has saved-tensor hooks. `user`: the globals of the module last seen to be the user's own, so that its
    frames are recognised at once.
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
    # How many of the modes below send this thread's operators the slow path; the recorder and saved-tensor hooks do not.
    general = 0
    # Innermost last; each entry is a pair (pack, unpack). `hooks_disabled` says why there may be none.
    saved_tensor_hooks: tuple[Any, ...] = ()
    hooks_disabled: str | None = None
    # Called with each tensor that is about to be changed in place.
    before_change: Callable[[Any], None] | None = None
    # What notes the operators that run, for a profile of this thread; None: nothing.
    recorder: Any = None
    # What stands between operators and their array functions in this thread, to keep results or give kept ones; None: nothing.
    result_cache: Any = None
    multithreading = True
    view_replay = False
    grad_layout = True
    # The backward that is running in this thread.
    task: Any = None
    # Where new tensors are made: by default (None: on the CPU), and within `with` blocks, innermost last.
    default_place: Any = None
    places: tuple[Any, ...] = ()
    # Innermost last: see `interpreters`.
    interpreters: tuple[Any, ...] = ()
    forward_enabled = True
    # Whether classes, and modes, take over calls by `__torch_function__`; these modes, innermost last: see `overrides`.
    asks_classes = True
    asks_modes = True
    function_modes: tuple[Any, ...] = ()
    # The transforms of functions (`vmap`, `grad`, ...) whose function is running, innermost last.
    transforms: tuple[Any, ...] = ()
    # Under anomaly detection, the `id`s of leaves that lead to the custom function whose `forward` is running.
    covered: frozenset[int] = frozenset()


class _Anomaly:
    """Whether anomaly detection is on, in all threads, and whether a nan is an anomaly."""

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
    """Count a thread that leaves (1) or comes back to (-1) the default of one of the flags."""
    with _lock:
        _away_from_default[what] += change
        FLAGS.grad = _away_from_default["grad"] == 0
        FLAGS.special = _away_from_default["special"] > 0
        FLAGS.hooked = _away_from_default["hooked"] > 0


def turn(change: int) -> None:
    """Enter (1) or leave (-1) one of the modes in which this thread's operators take the slow path."""
    STATE.general += change
    count("special", change)


def is_grad_enabled() -> bool:
    """Whether operators record in this thread."""
    return FLAGS.grad or STATE.grad_enabled


def is_recording() -> bool:
    """Whether operators make nodes in this thread: gradients are enabled, and not within inference mode."""
    return (FLAGS.grad or STATE.grad_enabled) and not (FLAGS.special and STATE.inference)


def set_grad(enabled: bool) -> None:
    """Switch recording on or off in this thread."""
    state = STATE.__dict__  # this thread's, so as to look for it once
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
    """Make `interpreters` those of this thread, the innermost last; without any, operators take their fast path again."""
    if bool(interpreters) != bool(STATE.interpreters):
        change = 1 if interpreters else -1
        STATE.general += change
        with _lock:  # as `count`, in fewer steps
            _away_from_default["special"] = away = _away_from_default["special"] + change
            FLAGS.special = away > 0
    STATE.interpreters = interpreters


LATE.is_grad_enabled = is_grad_enabled
LATE.in_inference_mode = lambda: STATE.inference
