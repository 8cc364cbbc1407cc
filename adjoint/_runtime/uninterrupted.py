"""Code that interrupts cannot split. A mode is then either entered or not entered, and is left whenever its block ends.

The interpreter raises `KeyboardInterrupt` (and lets another thread run) in three places only: where a Python function
begins, where a loop begins a new iteration, and where a call of non-Python code has returned. No interrupt
arrives between these places. A context is therefore safe under these conditions:

- `__enter__` stores the previous state, and changes the state in its last statements, which contain no such call or
  loop;
- `__exit__` changes the state first. No interrupt arrives at its start, because `uninterrupted` prevents this.

The constructors of some contexts of PyTorch change the state. Such a context is a `SwitchesAtOnce`.

The same holds for functions called by `finally`. A lock is held by `with`, never by `acquire` and `try`, because an
interrupt may arrive between the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from opcode import opmap
from types import FrameType
from typing import Any, Generic, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_Value = TypeVar("_Value")

KNOWN = ("cpython-311", "cpython-312", "cpython-313")
"""The interpreters with known instructions. On other interpreters `uninterrupted` leaves functions unchanged."""

_CHECKED, _UNCHECKED = b"\x00", b"\x02"
"""The operand of the instruction at the start of a function, and the operand for no check for interrupts."""


def uninterrupted(function: _Function) -> _Function:
    """Prevent an interrupt at the start of `function`, and return the function."""
    code = function.__code__
    changed = unchecked(code.co_code) if sys.implementation.cache_tag in KNOWN else None
    if changed is not None:
        function.__code__ = code.replace(co_code=changed)
    return function


def unchecked(instructions: bytes) -> bytes | None:
    """Return the instructions without the interrupt check at their start, or None if they do not start like a function."""
    begin = bytes((opmap.get("RESUME", 0),)) + _CHECKED
    for start in range(0, len(instructions), 2):
        if instructions[start : start + 2] == begin:
            return instructions[: start + 1] + _UNCHECKED + instructions[start + 2 :]
    return None


class SwitchesAtOnce:
    """A context whose constructor has already changed the state, so that it also works without `with`.

    An interrupt may arrive between the constructor and `with`. In this case the context is finalized before `with`
    enters it, and it restores the previous state.
    """

    pending = False
    """Whether the state has been changed, but the context has not been entered. The constructor sets this flag before
    it changes the state."""

    def __enter__(self) -> None:
        self.pending = False

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        if self.pending:
            try:
                raise LookupError  # gets the frame without a call, because an interrupt after a call would be lost
            except LookupError as error:
                if _enters(error.__traceback__.tb_frame.f_back):  # type: ignore[union-attr]
                    self.__exit__()


uninterrupted(SwitchesAtOnce.__enter__)
uninterrupted(SwitchesAtOnce.__del__)


@uninterrupted
def _enters(frame: FrameType | None) -> bool:
    """Return whether the current call of `frame`, or a call that returns its result, belongs to a `with` statement."""
    if frame is None or sys.implementation.cache_tag not in KNOWN:
        return False
    following = _after_caches(frame.f_code.co_code, frame.f_lasti + 2)
    if following == opmap["RETURN_VALUE"]:
        return _enters(frame.f_back)
    return following == opmap["BEFORE_WITH"]


@uninterrupted
def _after_caches(instructions: bytes, place: int) -> int:
    """Return the first instruction at or after `place` that is not a cache of the previous instruction."""
    found = instructions[place]
    return _after_caches(instructions, place + 2) if found == opmap["CACHE"] else found


class PutDuring(ContextDecorator, Generic[_Value]):
    """A context manager that calls `put(value)`, which is `uninterrupted`, and calls `put` with the returned value at the end."""

    def __init__(self, put: Callable[[_Value], _Value], value: _Value) -> None:
        self._put = put
        self._value = value

    def _recreate_cm(self) -> PutDuring[_Value]:
        """Return the context of one call of a decorated function."""
        return type(self)(self._put, self._value)

    def __enter__(self) -> None:
        self._before = self._put(self._value)

    def __exit__(self, *exception: object) -> None:
        self._put(self._before)


uninterrupted(PutDuring.__exit__)
