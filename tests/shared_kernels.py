"""Test processes compile each kernel once between them: what one has compiled, the others load from a folder of the tests.

The folder holds object code as LLVM makes it, by everything that it depends on. `--kernels FOLDER` names one that several runs of
pytest share; the processes of one run with `-n` share one of their own.
"""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adjoint.codegen.llvm.host import Host, Request


def folder_of(config: pytest.Config) -> Path | None:
    """The folder that the processes of this run share, if they do."""
    named = config.getoption("kernels")
    if named is None and hasattr(config, "workerinput"):
        return Path(config.option.basetemp).parent / "kernels"
    return None if named is None else Path(named)


def share(folder: Path) -> None:
    """Load the kernels of this process from the folder, and keep there what it compiles."""
    folder.mkdir(parents=True, exist_ok=True)

    def engine(host: Host, request: Request) -> Any:
        path = folder / key(host, request)
        try:
            code = path.read_bytes()
        except FileNotFoundError:
            engine = compiling(host, request)
            engine.set_object_cache(partial(keep, path))
            return engine
        engine = host.llvm.create_mcjit_compiler(host.llvm.parse_assembly(""), host._new_machine())
        engine.add_object_file(host.llvm.ObjectFileRef.from_data(code))
        return engine

    for function in (engine, key, keep):  # what `torch.compile` sees of them is code of the package
        function.__code__ = function.__code__.replace(co_filename=compiling.__code__.co_filename)
    Host._engine = engine


compiling = Host._engine
"""How an engine is made of what LLVM compiles."""


def key(host: Host, request: Request) -> str:
    """The name of a file of object code."""
    given = (*request, host.cpu, host.features, host.llvm.llvm_version_info)
    return hashlib.sha256(repr(given).encode()).hexdigest()


def keep(path: Path, module: Any, code: bytes) -> None:
    """Write the file in one step: others may look for it now."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(code)
    part.replace(path)
