"""Where in the user's code an operation was made: recorded cheaply, formatted only when an error is raised."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType

from .modes import GATE

getframe = sys._getframe

_PACKAGE = __name__.partition(".")[0]
_INSIDE = _PACKAGE + "."


def nearest_user_frame(frame: FrameType) -> FrameType:
    """The nearest frame outside adjoint, from `frame` outwards; its module is remembered in `GATE.user`."""
    while is_internal(frame.f_globals.get("__package__")) and frame.f_back is not None:
        frame = frame.f_back
    GATE.user = frame.f_globals
    return frame


def is_internal(package: str | None) -> bool:
    """Whether `package`, the `__package__` of a module, is one of ours."""
    return package is not None and (package == _PACKAGE or package.startswith(_INSIDE))


def user_frame(depth: int) -> FrameType:
    """The nearest frame outside adjoint, starting `depth` frames above the caller."""
    return nearest_user_frame(getframe(depth + 1))


def line_of(code: CodeType, lasti: int) -> int | None:
    """The source line of the instruction at byte offset `lasti`."""
    for start, end, line in code.co_lines():
        if start <= lasti < end:
            return line
    return None


def describe(code: CodeType | None, lasti: int) -> str:
    """`File "train.py", line 12, in step` followed by the line itself, as tracebacks print it."""
    if code is None:
        return "an unknown line"
    line = line_of(code, lasti)
    text = f'File "{code.co_filename}", line {line}, in {code.co_name}'
    source = linecache.getline(code.co_filename, line or 0).strip()
    return f"{text}\n    {source}" if source else text
