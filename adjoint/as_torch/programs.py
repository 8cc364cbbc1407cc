"""Running a program as the interpreter itself runs it: `__main__`, `sys.argv`, `sys.path`, exit status and traceback."""

from __future__ import annotations

import os
import sys
import zipfile
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from . import install_as_torch


class ProgramNotFoundError(Exception):
    """There is no such script or module."""


def run_script(path: str, *arguments: str) -> None:
    """Run the script at `path`, or a folder or an archive with `__main__.py`, as `python path` does."""
    if not Path(path).exists():
        raise ProgramNotFoundError(f"can't open file {path!r}: no such file or directory")
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        _begin(path, path, arguments)
        return _run_specified(find_spec("__main__"), f"{path!r} has no __main__.py")
    _begin(str(Path(path).resolve().parent), path, arguments)
    loader = SourceFileLoader("__main__", path)
    return _run(compile(Path(path).read_bytes(), path, "exec"), {"__file__": path, "__loader__": loader})


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


def _begin(folder: str, program: str, arguments: tuple[str, ...]) -> None:
    """Make `sys.argv` and the search path those of the program; `sys.path[0]` is where the command `adjoint` lies."""
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
    """Run the code as `__main__`, which it stays until the interpreter ends."""
    program = ModuleType("__main__")
    vars(program).update(__builtins__=__builtins__, __annotations__={})
    vars(program).update(names)
    sys.modules["__main__"] = program
    try:
        exec(code, vars(program))
    except SystemExit:
        raise
    except BaseException:
        _show_only_the_program()
        raise


def _show_only_the_program() -> None:
    """Let the interpreter, which is about to show an error, leave out what the command called before the program."""
    show = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
            trace = trace.tb_next
        while trace is not None and trace.tb_frame.f_code.co_filename in _COMMANDS:
            trace = trace.tb_next
        error.__traceback__ = trace or error.__traceback__
        show(kind, error, error.__traceback__)

    sys.excepthook = shown


_PACKAGE = Path(__file__).parents[1]
_COMMANDS = {__file__, os.fspath(_PACKAGE / "__main__.py"), os.fspath(_PACKAGE / "distributed" / "runner.py")}
