"""Running a program as the interpreter itself does: `__main__`, `sys.argv`, `sys.path`, exit status and traceback."""

from __future__ import annotations

import os
import sys
import zipfile
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from . import install_as_torch


class ProgramNotFoundError(Exception):
    """The error for a script or module that does not exist."""


def run_script(path: str, *arguments: str) -> None:
    """Run the script at `path`, or a folder or an archive with `__main__.py`, as `python path` does."""
    if not Path(path).exists():
        raise ProgramNotFoundError(f"can't open file {path!r}: no such file or directory")
    there = os.path.join(Path.cwd(), path)  # noqa: PTH118  (as it was given: a path would lose "./")
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        _begin(there, path, arguments)
        return _run_specified(PathFinder.find_spec("__main__", [there]), f"can't find '__main__' module in {path!r}")
    _begin(str(Path(path).resolve().parent), path, arguments)
    code = compile(Path(path).read_bytes(), there, "exec", dont_inherit=True)
    return _run(code, {"__file__": there, "__loader__": SourceFileLoader("__main__", there)})


def run_module(name: str, *arguments: str) -> None:
    """Run a module, or `__main__` of a package, as `python -m name` does."""
    _begin(str(Path.cwd()), "-m", arguments)
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    _run_specified(spec, f"No module named {name}")


def run_code(source: str, *arguments: str) -> None:
    """Run a program in a string, as `python -c source` does."""
    _begin("", "-c", arguments)
    _run(compile(source, "<string>", "exec", dont_inherit=True), {"__loader__": BuiltinImporter})


def _begin(folder: str, program: str, arguments: tuple[str, ...]) -> None:
    """Set `sys.argv`, and the search path, which begins with the folder of the command `adjoint`, for the program."""
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = folder
    install_as_torch()


def _run_specified(spec: ModuleSpec | None, missing: str) -> None:
    loader: Any = spec and spec.loader
    if spec is None or loader is None or not hasattr(loader, "get_code"):
        raise ProgramNotFoundError(missing)
    if spec.name != "__main__":
        sys.argv[0] = spec.origin or sys.argv[0]
    names = {"__file__": spec.origin, "__loader__": loader, "__package__": spec.parent, "__cached__": spec.cached}
    _run(loader.get_code(spec.name), {**names, "__spec__": spec})


def _run(code: CodeType, names: dict[str, Any]) -> None:
    """Run the code as `__main__`. The module stays `__main__` until the interpreter ends."""
    program = ModuleType("__main__")
    vars(program).update(__builtins__=__builtins__, __annotations__={})
    vars(program).update(names)
    sys.modules["__main__"] = program
    try:
        exec(code, vars(program))
    except SystemExit:
        raise
    except BaseException:
        _show_only(vars(program))
        raise


def _show_only(names: dict[str, Any]) -> None:
    """Make the interpreter show an error without the frames above the program, which has these globals."""
    show = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_globals is not names:
            trace = trace.tb_next
        error.__traceback__ = trace or error.__traceback__
        show(kind, error, error.__traceback__)

    sys.excepthook = shown
