"""The modes operators run under: per-thread state, and flags that make the default state cheap to see.

Reading thread-local state costs more than a small multiplication's bookkeeping. `FLAGS` therefore
summarises all threads in two plain attributes: while no thread has left the defaults, operators look
no further; when some thread has, they consult `STATE`, their own thread's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..device import device
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
    # Innermost last: see `levels`.
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


def _count(what: str, change: int) -> None:
    with _lock:
        _away_from_default[what] += change
        FLAGS.grad = _away_from_default["grad"] == 0
        FLAGS.special = _away_from_default["special"] > 0


def _turn(change: int) -> None:
    """Enter (1) or leave (-1) one of the modes in which this thread's operators take the slow path."""
    STATE.general += change
    _count("special", change)


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
        _lock.acquire()  # as `_count`, in fewer steps: `with` costs as much as all the rest
        _away_from_default["grad"] = away = _away_from_default["grad"] + (-1 if enabled else 1)
        FLAGS.grad = away == 0
        _lock.release()


def set_inference(enabled: bool) -> None:
    """Enter or leave inference mode in this thread; recording is switched separately."""
    if enabled != STATE.inference:
        STATE.inference = enabled
        _turn(1 if enabled else -1)


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
        _count("special", change * (asked + self.state.get("general", 0)))
        _count("grad", change * (not self.state.get("grad_enabled", True)))
        _count_hooks(change * hooks)


def set_anomaly(enabled: bool, check_nan: bool) -> None:
    """Switch anomaly detection on or off, in all threads."""
    if enabled != ANOMALY.enabled:
        _count("special", 1 if enabled else -1)
    ANOMALY.enabled, ANOMALY.check_nan = enabled, check_nan


def set_recorder(recorder: Any) -> None:
    """Let `recorder` (None: nothing) note the operators that run in this thread."""
    if (recorder is None) != (STATE.recorder is None):
        _count("special", -1 if recorder is None else 1)
    STATE.recorder = recorder


def set_result_cache(result_cache: Any) -> None:
    """Let `keeper` (None: nothing) stand between the operators of this thread and their array functions."""
    if (result_cache is None) != (STATE.result_cache is None):
        _turn(-1 if result_cache is None else 1)
    STATE.result_cache = result_cache


def set_default_place(place: Any) -> None:
    """Let new tensors of this thread be made at `place` (None: on the CPU)."""
    if (place is None) != (STATE.default_place is None):
        _count("special", -1 if place is None else 1)
    STATE.default_place = place


def current_place() -> Any:
    """Where new tensors of this thread are made; None: on the CPU."""
    return STATE.places[-1] if STATE.places else STATE.default_place


def _enter_place(place: device) -> device:
    STATE.places = (*STATE.places, place)
    _count("special", 1)
    return place


def _leave_place(place: device) -> None:
    STATE.places = STATE.places[:-1]
    _count("special", -1)


def set_view_replay(enabled: bool) -> None:
    """Let views of this thread be followed, or not, by the operations that made them."""
    if enabled != STATE.view_replay:
        _turn(1 if enabled else -1)
    STATE.view_replay = enabled


def push_saved_tensor_hooks(entry: Any) -> None:
    """Make `entry` the innermost saved-tensor hooks of this thread.

    Raises RuntimeError where they are disabled.
    """
    if STATE.hooks_disabled is not None:
        raise RuntimeError(STATE.hooks_disabled)
    STATE.saved_tensor_hooks = (*STATE.saved_tensor_hooks, entry)
    STATE.grad_enabled = STATE.grad_enabled  # from the default of all threads to this thread's own
    _count_hooks(1)


def pop_saved_tensor_hooks() -> None:
    """Leave the innermost saved-tensor hooks of this thread."""
    STATE.saved_tensor_hooks = STATE.saved_tensor_hooks[:-1]
    _count_hooks(-1)


def _count_hooks(change: int) -> None:
    """Count hooks twice, so that recording may be switched off and on while they run, without counting each time."""
    with _lock:
        _away_from_default["hooked"] = hooked = _away_from_default["hooked"] + change
        _away_from_default["grad"] = away = _away_from_default["grad"] + change
        FLAGS.hooked = hooked > 0
        FLAGS.grad = away == 0


def set_before_change(watch: Callable[[Any], None] | None) -> None:
    """Let `watch` (None: nobody) be told of each tensor of this thread that is about to be changed in place."""
    if (watch is None) != (STATE.before_change is None):
        _turn(-1 if watch is None else 1)
    STATE.before_change = watch


def set_interpreters(interpreters: tuple[Any, ...]) -> None:
    """Make `levels` those of this thread, the innermost last; without any, operators take their fast path again."""
    if bool(interpreters) != bool(STATE.interpreters):
        change = 1 if interpreters else -1
        STATE.general += change
        with _lock:  # as `_count`, in fewer steps
            _away_from_default["special"] = away = _away_from_default["special"] + change
            FLAGS.special = away > 0
    STATE.interpreters = interpreters


def raise_flag() -> None:
    """Let every operator take the slow path, until the flag is lowered as often as it was raised."""
    _count("special", 1)


def lower_flag() -> None:
    """The reverse of `raise_flag`."""
    _count("special", -1)


LATE.is_grad_enabled = is_grad_enabled
LATE.in_inference_mode = lambda: STATE.inference
LATE.enter_device = _enter_place
LATE.leave_device = _leave_place
