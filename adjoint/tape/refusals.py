"""Distinguishes refusals, which are errors of kernels about their arguments, from errors of signal handlers.

After a refusal, the slow path finds the user's error. Errors of handlers reach the caller, and the change is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

from .._runtime.platform import _signal  # `signal` converts each result to an enumeration member
from ..tensor import Tensor
from .versions import bump

REFUSALS = (
    ArithmeticError,
    AttributeError,
    BufferError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    Warning,
)
"""The errors of kernels: NumPy's errors, errors of this package, and warnings that are errors."""


def is_refusal(error: BaseException) -> bool:
    """Return whether a kernel raised this exception. Return False if a signal handler raised it."""
    if not isinstance(error, REFUSALS):
        return False
    if threading.current_thread() is not threading.main_thread():
        return True  # handlers run in the main thread
    numbers = range(1, _signal.NSIG) if _signal else ()
    handlers = {_code_of(handler) for number in numbers if callable(handler := _signal.getsignal(number))}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return False
        trace = trace.tb_next
    return True


def _code_of(handler: Any) -> CodeType | None:
    """Return the code that runs when an object, such as a handler, is called. Return None if it is not Python code."""
    while isinstance(handler, partial):
        handler = handler.func
    function = handler if hasattr(handler, "__code__") or hasattr(handler, "__func__") else type(handler).__call__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def count_change(tensor: Tensor, name: str, change: Callable[..., object], *arguments: Any, depth: int = 1) -> None:
    """Call `change(*arguments)`, which changes `tensor` in place for the operation `name`, and count the change.

    A refusal is not counted, but an interrupt is. The user's call is at least `depth` frames above the caller.
    """
    try:
        change(*arguments)
    except BaseException as error:
        if not is_refusal(error):
            bump(tensor, name, depth + 1)
        raise
    bump(tensor, name, depth + 1)
