"""Code that no interrupt divides, so that a mode is either entered or not, and left whenever its block ends.

The interpreter raises `KeyboardInterrupt` (and lets another thread run) at three places only: where a function of Python
begins, where a loop begins anew, and where a call of a function that is not written in Python has returned. Statements
between these places are never divided. So a context keeps its promise if

- `__enter__` remembers what was before, and changes the state in its last statements, without such a call or loop;
- `__exit__` does not begin with such a place either, which `uninterrupted` sees to, and changes the state first.

The same holds for functions called by `finally`. A lock is held by `with`, never by `acquire` and `try`: an interrupt
may strike between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from opcode import opmap
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_BEGIN = bytes((opmap["RESUME"], 0))
_BEGIN_UNCHECKED = bytes((opmap["RESUME"], 2))
"""The instruction as it stands after an `await`, where the interpreter does not look for interrupts either."""


def uninterrupted(function: _Function) -> _Function:
    """Let no interrupt strike where `function` begins, and return it."""
    code = function.__code__
    start = code.co_code.find(_BEGIN)
    while start % 2:  # the bytes were found across two instructions
        start = code.co_code.find(_BEGIN, start + 1)
    instructions = code.co_code[:start] + _BEGIN_UNCHECKED + code.co_code[start + 2 :]
    function.__code__ = code.replace(co_code=instructions)
    return function
