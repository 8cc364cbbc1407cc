"""The line of the user's code that created a node. It is recorded cheaply, and formatted only for error messages."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType
from typing import Any

from .modes import FLAGS, STATE

getframe = sys._getframe

_INSIDE = __name__.partition(".")[0] + "."
_OURS: set[str | None] = {_INSIDE[:-1]}
"""The packages inside adjoint that have been seen as callers."""


def nearest_user_frame(frame: FrameType) -> FrameType:
    """Return the nearest frame outside adjoint, from `frame` outwards. `FLAGS.file` stores the file of that frame's code."""
    nearest: Any = frame.f_back
    if nearest is not None and nearest.f_code.co_filename is FLAGS.file and frame.f_globals.get("__package__") in _OURS:
        return nearest  # as after most walks: a function of adjoint has been called from the same file
    engine = FLAGS.engine
    nearest = frame
    try:
        while (package := (names := nearest.f_globals)["__package__"]) in _OURS or (package and is_internal(package)):
            if names is engine:
                task = STATE.task  # all nodes that one backward records share a frame, which is searched for once
                if task.frame is None:
                    task.frame = nearest_user_frame(nearest.f_back)
                return task.frame
            nearest = nearest.f_back
    except KeyError:  # code that was executed with globals of its own
        pass
    except AttributeError:  # no frame outside this package
        return frame
    FLAGS.file = nearest.f_code.co_filename
    return nearest


def is_internal(package: str | None) -> bool:
    """Return whether `package`, the `__package__` of a module, belongs to adjoint."""
    if package is None or not package.startswith(_INSIDE):
        return False
    _OURS.add(package)
    return True


def user_frame(depth: int) -> FrameType:
    """Return the nearest frame outside adjoint, starting `depth` frames above the caller."""
    frame = getframe(depth + 1)
    return frame if frame.f_code.co_filename is FLAGS.file else nearest_user_frame(frame)


def user_stack(depth: int) -> list[str]:
    """Return the frames outside adjoint from `depth` frames above the caller, innermost first, as `train.py(12): step`."""
    found = []
    frame: FrameType | None = getframe(depth + 1)
    while frame is not None:
        package = frame.f_globals.get("__package__")
        if package not in _OURS and not is_internal(package):
            code = frame.f_code
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


def line_of(code: CodeType, lasti: int) -> int | None:
    """Return the source line of the instruction at byte offset `lasti`."""
    for start, end, line in code.co_lines():
        if start <= lasti < end:
            return line
    return None


def describe(code: CodeType | None, lasti: int) -> str:
    """Format a position as in tracebacks: `File "train.py", line 12, in step`, and the line itself."""
    if code is None:
        return "an unknown line"
    line = line_of(code, lasti)
    text = f'File "{code.co_filename}", line {line}, in {code.co_name}'
    source = linecache.getline(code.co_filename, line or 0).strip()
    return f"{text}\n    {source}" if source else text
