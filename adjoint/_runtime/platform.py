"""Modules that some platforms lack, such as `mmap` in WebAssembly.

`from .._runtime.platform import mmap` imports the module if the platform has it. Otherwise it imports a stand-in that
is false. Classes can derive from its contents and annotations can name them, but a call raises `ModuleNotFoundError`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import _signal  # type: ignore[import-not-found]
    import ctypes
    import mmap
    import multiprocessing
    import select
    import signal
    import socket
    import subprocess

    import ml_dtypes

__all__ = [
    "_signal", "ctypes", "missing", "ml_dtypes", "mmap", "multiprocessing", "select", "signal", "socket", "subprocess"
]  # fmt: skip

PARTS = {
    "_signal": "_signal",
    "ctypes": "_ctypes",
    "ml_dtypes": "ml_dtypes",
    "mmap": "_mmap" if sys.platform == "wasi" else "mmap",  # on WASI, `mmap` may exist but only raise errors
    "multiprocessing": "_multiprocessing",
    "select": "select",
    "signal": "_signal",
    "socket": "_socket",
    "subprocess": "_winapi" if sys.platform == "win32" else "_posixsubprocess",
}
"""The compiled module that each module needs. A platform may lack the compiled module and still have the module."""


class _Missing(type):
    """The type of stand-ins, which are classes."""

    needed: str

    def __bool__(cls) -> bool:
        return False

    def __call__(cls, *args: Any, **names: Any) -> NoReturn:
        raise missing(cls.needed, cls.__qualname__)

    __index__ = __call__

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{cls.__qualname__}.{name}", (), {"needed": cls.needed})


def missing(module: str, use: str) -> ModuleNotFoundError:
    """Return the error about the missing module that `use` needs."""
    text = f"{use} needs the module {module!r}, which this Python on {sys.platform} does not have"
    return ModuleNotFoundError(text, name=module)


def __getattr__(name: str) -> Any:
    """Import a module on first use."""
    if name not in PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module(PARTS[name])
        found: Any = import_module(name)
    except ImportError:
        found = _Missing(name, (), {"needed": name})
    return globals().setdefault(name, found)
