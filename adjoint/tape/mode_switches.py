"""Functions that switch rare modes (saved-tensor hooks, devices), and the conditions for code in another thread or run."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._runtime.forks import lock_across_forks
from .._runtime.uninterrupted import PutDuring, uninterrupted
from ..dtypes import dtype, get_default_dtype, set_default_dtype
from .interpreters import tensors_in
from .modes import ANOMALY, FLAGS, STATE, put, switched


def current_place() -> Any:
    """Return the device on which this thread creates tensors (None: the CPU)."""
    return STATE.places[-1] if STATE.places else STATE.default_place


@uninterrupted
def push_saved_tensor_hooks(entry: Any) -> None:
    """Make `entry` the innermost saved-tensor hooks of this thread. Raise RuntimeError if saved-tensor hooks are disabled."""
    if STATE.hooks_disabled is not None:
        raise RuntimeError(STATE.hooks_disabled)
    put({"saved_tensor_hooks": (*STATE.saved_tensor_hooks, entry)})


@uninterrupted
def pop_saved_tensor_hooks() -> None:
    """Remove the innermost saved-tensor hooks of this thread."""
    put({"saved_tensor_hooks": STATE.saved_tensor_hooks[:-1]})


_LEVELS = -1
"""The key under which levels of forward mode, which apply to all threads, set the flag."""


_changing_levels = lock_across_forks()


@uninterrupted
def set_levels(changed: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
    """Change the interpreters of all threads that have not entered an interpreter."""
    with _changing_levels:
        FLAGS.levels = changed(FLAGS.levels)
        if FLAGS.levels:
            FLAGS.special[_LEVELS] = True
        elif _LEVELS in FLAGS.special:
            del FLAGS.special[_LEVELS]


_ANOMALY = 0
"""The key under which anomaly detection, which applies to all threads, sets the flag."""


@uninterrupted
def set_anomaly(enabled: bool, check_nan: bool) -> None:
    """Switch anomaly detection on or off, in all threads."""
    ANOMALY.enabled, ANOMALY.check_nan = enabled, check_nan
    if enabled:
        FLAGS.special[_ANOMALY] = True
    elif _ANOMALY in FLAGS.special:
        del FLAGS.special[_ANOMALY]


_OF_THREAD = ("task", "number", "end", "casts")
"""The parts of a thread's state that are not modes."""

OF_OBSERVERS = ("recorder", "result_cache", "before_change", "covered", "multithreading", "grad_layout")
"""The modes of observers of a thread, and of backward itself. A recomputation uses their values at the time it runs."""


class Surroundings:
    """The conditions under which code runs: the thread's modes and context variables, and the default dtype."""

    def __init__(self, without: Iterable[str] = ()) -> None:
        left_out = {*_OF_THREAD, *without}
        self.modes = {name: value for name, value in vars(STATE).items() if name not in left_out}
        self.interpreters = STATE.interpreters
        self.variables = contextvars.copy_context()
        self.default_dtype = get_default_dtype()

    def wraps(self, values: Iterable[Any]) -> bool:
        """Return whether a running transform carries data in one of these tensors."""
        return any(level.wraps(value) for level in self.interpreters for value in tensors_in(values))

    def run(self, function: Any, *args: Any) -> Any:
        """Run `function(*args)` under these conditions, and return the result."""
        with PutDuring(_put_default_dtype, self.default_dtype), switched(**self.modes | {"casts": None}):
            return self.variables.copy().run(function, *args)

    def run_again(self, function: Any, *args: Any) -> Any:
        """Run `function(*args)` with recording again, with observers of this thread and the user's modes."""
        interpreters, functions = STATE.interpreters, STATE.function_modes
        added = {
            "casts": None,
            "grad_enabled": True,
            "function_modes": _joined(functions, self.modes["function_modes"]),
        }
        watching = [each for each in interpreters if each.is_mode]
        if watching:
            added["stack"] = _joined(watching, self.interpreters)
        with contextlib.ExitStack() as stack:
            for level in _joined(self.interpreters, interpreters)[: -len(interpreters) or None]:
                stack.enter_context(level.resumed())
            stack.enter_context(PutDuring(_put_default_dtype, self.default_dtype))
            stack.enter_context(switched(**self.modes | added))
            return self.variables.copy().run(function, *args)


def _joined(outer: Sequence[Any], inner: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the entries of `outer` that are not in `inner`, followed by the entries of `inner`."""
    return (*(each for each in outer if not any(each is other for other in inner)), *inner)


@uninterrupted
def _put_default_dtype(kind: dtype) -> dtype:
    """Set the default dtype of the process, and return the former one."""
    before = get_default_dtype()
    if kind is not before:
        set_default_dtype(kind)
    return before


def in_another_thread(function: Any, *args: Any) -> Any:
    """Run `function(*args)` in a new thread under the conditions of this thread, and return the result."""
    surroundings, results, errors = Surroundings(), [], []

    def call() -> None:
        try:
            results.append(surroundings.run(function, *args))
        except BaseException as error:  # noqa: BLE001  (raised again by who waits)
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results.pop()
