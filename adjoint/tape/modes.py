"""The modes of operators: the state of each thread, and flags that make tests for the default state fast.

Reading thread-local state costs more than recording a small multiplication, so operators first read `FLAGS`. No interrupt
may leave a mode half changed: the functions are `uninterrupted`, and call nothing before the change is complete.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

from .._runtime.extra import NOTING
from .._runtime.uninterrupted import uninterrupted


class _Flags:
    """The threads that have left a default. A flag is a dictionary by thread number. An empty flag is false.

    `no_grad`: the thread has disabled gradients. `special`: the thread is in a mode that needs the slow path, or observes
    operators. `hooked`: the thread has saved-tensor hooks. `noting`: a function transform records which tensors it creates. A
    thread changes only its own entry, so no lock is needed.

    `levels`: the levels of forward mode that threads have entered. They apply to all threads. `file`: the file name of the code
    of the latest user frame, which keeps no object of the user alive. Code with the same file name object is recognized fast.
    `engine`: the globals of the engine, which identify its frames, or None before the engine is imported.
    `stepwise`: the handler of modes that steps of plans check (see `interpreters`).
    """

    __slots__ = tuple("engine file hooked levels no_grad noting of_threads special stepwise".split())

    def __init__(self) -> None:
        self.no_grad: dict[int, bool] = {}
        self.special: dict[int, bool] = {}
        self.hooked: dict[int, bool] = {}
        self.noting = NOTING
        self.of_threads = self.no_grad, self.special, self.hooked, self.noting
        self.levels: tuple[Any, ...] = ()
        self.file: str | None = None
        self.engine: dict[str, Any] | None = None
        self.stepwise: Any = None


class _ThreadState(threading.local):
    """The modes of one thread, all in its instance dictionary. Class attributes are the defaults of new threads."""

    grad_enabled = True
    # Inference mode is on; no other mode makes this thread leave straight-line code.
    inference, plain = False, True
    # Pairs (pack, unpack), innermost last; and the error message while hooks are disabled.
    saved_tensor_hooks: tuple[Any, ...] = ()
    hooks_disabled: str | None = None
    # Called with each tensor before an in-place change.
    before_change: Callable[[Any], None] | None = None
    # The recorder of a profile, the result cache of a checkpoint (handlers), and the tracer of a compiled function, or None.
    recorder: Any = None
    result_cache: Any = None
    capture: Any = None
    # Whether compiled functions run without programs (`torch.compiler.set_stance`).
    uncompiled = False
    multithreading = True
    view_replay = False
    grad_layout = True
    # The graph task of the backward that is running in this thread.
    task: Any = None
    # The device of new tensors: the default (None: the CPU), and those of `with` blocks, innermost last.
    default_place: Any = None
    places: tuple[Any, ...] = ()
    # The handlers of this thread, innermost last; see `interpreters`. If None, the handlers of the process apply.
    stack: tuple[Any, ...] | None = None
    forward_enabled = True
    # Whether `__torch_function__` of classes, and of modes, is called; see `overrides`.
    asks_classes = True
    asks_modes = True
    # Whether `__torch_dispatch__` of classes is called.
    asks_dispatching = True
    function_modes: tuple[Any, ...] = ()
    # Whether operators that have no kernel for a sparse layout compute on the dense elements; see `evaluation`.
    dense_if_refused = False
    # The function through which autocast calls public functions, its settings, and its cached casts; see `amp`.
    autocast: Callable[..., Any] | None = None
    precision: Any = None
    casts: dict[Any, Any] | None = None
    # The function transforms (`vmap`, `grad`, ...) that are running, innermost last.
    transforms: tuple[Any, ...] = ()
    # Under anomaly detection, the `id`s of the leaves that lead to the custom function whose `forward` is running.
    covered: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.__dict__.update(_DEFAULTS)
        self.number = next(_numbers)
        self.end = _End(self.number)

    @property
    def interpreters(self) -> tuple[Any, ...]:
        """The interpreters of this thread, with the innermost last; see `interpreters`."""
        stack = self.stack
        return FLAGS.levels if stack is None else stack


_DEFAULTS = {
    name: value
    for name, value in vars(_ThreadState).items()
    if not name.startswith("__") and not isinstance(value, property)
}
_numbers = itertools.count(1)


class _End:
    """An object in the state of a thread. When the thread ends, it removes the entries of the thread from `FLAGS`."""

    __slots__ = ("flags", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.flags = FLAGS.of_threads  # at exit, globals may go before this object

    def __del__(self) -> None:
        for flag in self.flags:
            flag.pop(self.number, None)


class _Anomaly:
    """Whether anomaly detection is on in all threads, whether NaN gradients are errors, and the handler."""

    __slots__ = ("check_nan", "enabled", "handler")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True
        self.handler: Any = None


FLAGS = _Flags()
ANOMALY = _Anomaly()
STATE = _ThreadState()


@uninterrupted
def settle() -> None:
    """Update `FLAGS` for the state of this thread after a change of any mode."""
    here = STATE.__dict__
    number = here["number"]
    transforms = here["transforms"]
    handled = (
        here["view_replay"]
        or here["before_change"] is not None
        or here["capture"] is not None
        or here["stack"] not in (None, ())  # without a call, after which an interrupt may arrive
        or here["result_cache"] is not None
        or here["recorder"] is not None
        or here["default_place"] is not None
        or here["places"] != ()
        or (transforms != () and transforms[-1].is_asked)
    )
    here["plain"] = not handled and transforms == ()
    if here["inference"] or handled:
        FLAGS.special[number] = True
    elif number in FLAGS.special:
        del FLAGS.special[number]
    if transforms != () and transforms[-1].notes_creation:
        FLAGS.noting[number] = True
    elif number in FLAGS.noting:
        del FLAGS.noting[number]
    if here["saved_tensor_hooks"] != ():
        FLAGS.hooked[number] = True
    elif number in FLAGS.hooked:
        del FLAGS.hooked[number]
    if not here["grad_enabled"]:
        FLAGS.no_grad[number] = True
    elif number in FLAGS.no_grad:
        del FLAGS.no_grad[number]


@uninterrupted
def put(values: dict[str, Any]) -> None:
    """Set modes of this thread."""
    here = STATE.__dict__
    here |= values
    settle()


def exchange(values: dict[str, Any]) -> dict[str, Any]:
    """Set modes of this thread, and return their former values."""
    here = STATE.__dict__
    before = {name: here[name] for name in values}
    put(values)
    return before


@uninterrupted
def set_grad(enabled: bool) -> None:
    """Switch recording on or off in this thread."""
    here = STATE.__dict__  # the state of this thread, looked up once
    here["grad_enabled"] = enabled
    number = here["number"]
    if not enabled:
        FLAGS.no_grad[number] = True
    elif number in FLAGS.no_grad:
        del FLAGS.no_grad[number]


class switched:
    """A context manager in which modes of this thread have other values."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def __enter__(self) -> None:
        self.before = exchange(self.values)

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        put(self.before)


def run_outside(level: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`, run outside `level`, an interpreter or a transform, and outside all inner levels."""
    here = STATE.__dict__
    before = stack, transforms = here["stack"], here["transforms"]
    interpreters = FLAGS.levels if stack is None else stack
    try:
        if level in interpreters:
            here["stack"] = interpreters[: interpreters.index(level)]
        if level in transforms:
            here["transforms"] = transforms[: transforms.index(level)]
        settle()
        return function(*args)
    finally:
        here["stack"], here["transforms"] = before
        settle()


def is_grad_enabled() -> bool:
    """Return whether gradients are enabled in this thread."""
    return not FLAGS.no_grad or STATE.grad_enabled


def is_recording() -> bool:
    """Return whether operators create nodes in this thread: gradients are enabled, and inference mode is off."""
    return (not FLAGS.no_grad or STATE.grad_enabled) and not (FLAGS.special and STATE.inference)


def _forget_other_threads() -> None:
    """Remove the other threads in a forked child, which has only one thread."""
    for flag in FLAGS.of_threads:
        for number in [number for number in flag if number > 0]:  # the others are no threads: see `mode_switches`
            del flag[number]
    settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
