"""The tests compile each kernel once.

Other processes and later runs load the kernel from a folder. The folder holds LLVM's object code. The name of a file
depends on all inputs of the compilation. The folder is in pytest's cache, unless `--kernels FOLDER` sets another
folder. Kernels that no test has loaded for a week are deleted.
"""

import hashlib
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adjoint.codegen.llvm import host as compiler
from adjoint.codegen.llvm.host import Host, Request

WEEK = 7 * 24 * 60 * 60


def folder_of(config: pytest.Config) -> Path | None:
    """Return the folder of kernels for this run, or None if pytest has no cache."""
    if named := config.getoption("kernels"):
        return Path(named)
    return config.cache.mkdir("kernels") if hasattr(config, "cache") else None


def share(folder: Path) -> None:
    """Load the kernels of this process from the folder, and store new kernels in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.stat().st_mtime < time.time() - WEEK:
            path.unlink(missing_ok=True)

    def engine(host: Host, request: Request) -> Any:
        path = folder / key(host, request)
        try:
            code = path.read_bytes()
        except FileNotFoundError:
            engine = compiling(host, request)
            engine.set_object_cache(partial(keep, path))
            return engine
        os.utime(path)
        engine = host.llvm.create_mcjit_compiler(host.llvm.parse_assembly(""), host._new_machine())
        engine.add_object_file(host.llvm.ObjectFileRef.from_data(code))
        return engine

    for function in (engine, key, keep):  # `torch.compile` must treat the functions as code of the package
        function.__code__ = function.__code__.replace(co_filename=compiling.__code__.co_filename)
    Host._engine = engine


SOURCE = Path(compiler.__file__).read_bytes()
"""The module that compiles, because code depends on its passes."""

compiling = Host._engine
"""The function that creates an engine from compiled code."""


def key(host: Host, request: Request) -> str:
    """Return the name of a file with object code."""
    given = (*request, host.cpu, host.features, host.llvm.llvm_version_info, SOURCE)
    return hashlib.sha256(repr(given).encode()).hexdigest()


def keep(path: Path, module: Any, code: bytes) -> None:
    """Write the file in one step, because other processes may read it at the same time."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(code)
    part.replace(path)
