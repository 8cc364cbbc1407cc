"""Running a user's script and recording the graph of its last backward."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from .. import autograd
from .._runtime.uninterrupted import PutDuring, uninterrupted
from ..autograd.gradient_edge import public_edge
from ..tape.origin import nearest_user_frame
from .drawing import Graph
from .names import variables_of
from .recording import recording, watching
from .snapshot import walked
from .tracing import Trace, Tracer


class Kept:
    """The result of a script: the picture of its last backward, the number of backwards, and the exception that ended it."""

    def __init__(self) -> None:
        self.graph: Graph | None = None
        self.count = 0
        self.error: BaseException | None = None


def run_script(path: str, arguments: Sequence[str] = (), trace: bool = False, values: bool = False) -> Kept:
    """Run the script at `path` as `python path` does, and record the graph of its last backward.

    With `trace`, the steps of the backward are recorded too. With `values`, small intermediate tensors keep their
    values. Every backward is drawn before it runs, because it is not known in advance which backward is the last.
    Drawing takes about as long as a backward.
    """
    kept = Kept()
    before = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        with recording() if values else nullcontext(), _drawn_before(kept, trace):
            runpy.run_path(path, run_name="__main__")
    except BaseException as error:  # noqa: BLE001  (raised again, or shown, by the caller)
        kept.error = error
    finally:
        sys.argv, sys.path[:] = before
    return kept


def _drawn_before(kept: Kept, trace: bool) -> AbstractContextManager[None]:
    """Draw the graph before each outermost backward runs."""
    engine: Any = sys.modules[f"{autograd.__name__}.backward"]
    run = engine.run
    running = False

    def drawing(edges: Any, *args: Any) -> Any:
        nonlocal running
        if running:
            return run(edges, *args)
        running = True
        try:
            walk = walked([public_edge(edge) for edge in edges if edge is not None], None, _variables())
            kept.count += 1
            if trace:
                tracer = Tracer(walk)
                kept.graph = Trace(walk.picture)
                with watching(tracer):
                    return run(edges, *args)
            kept.graph = Graph(walk.picture)
            return run(edges, *args)
        finally:
            running = False

    @uninterrupted
    def put(function: Any) -> Any:
        before, engine.run = engine.run, function
        return before

    return PutDuring(put, drawing)


def _variables() -> dict[str, Any]:
    """Return the variables at the call of backward, and the variables of the script's module."""
    frame: FrameType = nearest_user_frame(sys._getframe(1))
    return variables_of(frame)


def exit_code(error: BaseException | None) -> int:
    """Return the exit code that Python itself would return."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        code = error.code
        return code if isinstance(code, int) else 0 if code is None else 1
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def traceback_of(error: BaseException, path: str) -> str:
    """Return the traceback, starting with the script's first line."""
    import traceback

    script = os.path.realpath(path)
    trace = error.__traceback__
    while trace is not None and os.path.realpath(trace.tb_frame.f_code.co_filename) != script:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
