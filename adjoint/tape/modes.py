"""The modes operators run under: per-thread state, and the gate that makes the default state cheap to see.

Reading thread-local state costs more than a small multiplication's bookkeeping. `GATE` therefore
summarises all threads in two plain attributes: while no thread has left the defaults, operators look
no further; when some thread has, they consult `STATE`, their own thread's.
"""

from __future__ import annotations

import threading
from typing import Any


class _Gate:
    """`grad`: no thread has disabled gradients. `special`: some thread is in a mode that needs the general path.

    `user`: the globals of the module last seen to be the user's own, so that its frames are recognised at once.
    """

    __slots__ = ("grad", "special", "user")

    def __init__(self) -> None:
        self.grad = True
        self.special = False
        self.user: dict[str, Any] | None = None


class _ThreadState(threading.local):
    """The modes of one thread. Class attributes are the defaults every new thread starts with."""

    grad_enabled = True
    inference = False
    # Innermost last; each entry is a pair (pack, unpack). `hooks_disabled` says why there may be none.
    saved_tensor_hooks: tuple[Any, ...] = ()
    hooks_disabled: str | None = None
    # Innermost last: see `levels`.
    levels: tuple[Any, ...] = ()
    forward_enabled = True
    # The transforms of functions (`vmap`, `grad`, ...) whose function is running, innermost last.
    transforms: tuple[Any, ...] = ()


GATE = _Gate()
STATE = _ThreadState()

_lock = threading.Lock()
_away_from_default = {"grad": 0, "special": 0}


def _count(what: str, change: int) -> None:
    with _lock:
        _away_from_default[what] += change
        GATE.grad = _away_from_default["grad"] == 0
        GATE.special = _away_from_default["special"] > 0


def is_grad_enabled() -> bool:
    """Whether operators record in this thread."""
    return GATE.grad or STATE.grad_enabled


def set_grad(enabled: bool) -> None:
    """Switch recording on or off in this thread."""
    if enabled != STATE.grad_enabled:
        STATE.grad_enabled = enabled
        _count("grad", -1 if enabled else 1)


def set_inference(enabled: bool) -> None:
    """Enter or leave inference mode in this thread; recording is switched separately."""
    if enabled != STATE.inference:
        STATE.inference = enabled
        _count("special", 1 if enabled else -1)


def push_saved_tensor_hooks(entry: Any) -> None:
    """Make `entry` the innermost saved-tensor hooks of this thread.

    Raises RuntimeError where they are disabled.
    """
    if STATE.hooks_disabled is not None:
        raise RuntimeError(STATE.hooks_disabled)
    STATE.saved_tensor_hooks = (*STATE.saved_tensor_hooks, entry)
    _count("special", 1)


def pop_saved_tensor_hooks() -> None:
    """Leave the innermost saved-tensor hooks of this thread."""
    STATE.saved_tensor_hooks = STATE.saved_tensor_hooks[:-1]
    _count("special", -1)


def push_level(level: Any) -> None:
    """Make `level` the innermost of this thread."""
    STATE.levels = (*STATE.levels, level)
    _count("special", 1)


def pop_level(level: Any) -> None:
    """Leave `level`, and all that were entered after it, in this thread."""
    inside = STATE.levels[STATE.levels.index(level) :]
    STATE.levels = STATE.levels[: -len(inside)]
    _count("special", -len(inside))
