"""Test processes compile each kernel once between them: what one has compiled, the others load from a folder of the tests.

The folder holds object code as LLVM makes it, by everything that it depends on. `--kernels FOLDER` names one that several runs of
pytest share; the processes of one run with `-n` share one of their own.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from adjoint.codegen.llvm.host import Host, Request


def share(config: pytest.Config) -> None:
    """Let kernels be loaded from the folder of these processes, if they have one."""
    folder = config.getoption("kernels")
    if folder is None and hasattr(config, "workerinput"):
        folder = Path(config.option.basetemp).parent / "kernels"
    if folder is not None:
        shared = Shared(Path(folder))
        Host._engine = lambda host, request: shared.engine(host, request)


class Shared:
    """A folder of object code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def engine(self, host: Host, request: Request) -> Any:
        """An engine with machine code that is there, or one whose machine code others will find."""
        path = self.folder / self.key(host, request)
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            engine = compiling(host, request)
            engine.set_object_cache(lambda module, code: self.keep(path, code))
            return engine
        engine = host.llvm.create_mcjit_compiler(host.llvm.parse_assembly(""), host._new_machine())
        engine.add_object_file(host.llvm.ObjectFileRef.from_data(found))
        return engine

    @staticmethod
    def key(host: Host, request: Request) -> str:
        given = (*request, host.cpu, host._features, host.llvm.llvm_version_info)
        return hashlib.sha256(repr(given).encode()).hexdigest()

    @staticmethod
    def keep(path: Path, code: bytes) -> None:
        """Write the file in one step: others may look for it now."""
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(code)
        part.replace(path)


compiling = Host._engine
"""How an engine is made without the folder."""
