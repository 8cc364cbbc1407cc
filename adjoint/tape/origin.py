"""Where in the user's code an operation was made: recorded cheaply, formatted only when an error is raised."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType

getframe = sys._getframe

INTERNAL = {"adjoint"}
"""Packages whose frames are not the user's; `adjoint` registers its own while it is imported."""


def register_internal_packages() -> None:
    """Note every package of adjoint that has been imported, so that its frames are skipped."""
    INTERNAL.update(name for name in sys.modules if name.split(".")[0] == "adjoint")


def user_frame(depth: int) -> FrameType:
    """The nearest frame outside adjoint, starting `depth` frames above the caller."""
    frame: FrameType = getframe(depth + 1)
    while frame.f_globals.get("__package__") in INTERNAL and frame.f_back is not None:
        frame = frame.f_back
    return frame


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
