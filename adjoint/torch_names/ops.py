"""`torch.ops`: operators under the names of PyTorch's dispatcher, and operators that programs define with `torch.library`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from adjoint._runtime.first_use import import_late
from adjoint.aten.overloads import OpOverload, OpOverloadPacket, aten

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "load_library", "loaded_libraries"]

loaded_libraries: set[str] = set()
"""The libraries of compiled operators. The set is empty."""


class _OpNamespace:
    """`torch.ops.name`: the operators that programs have defined under `name::`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, operator: str) -> Any:
        if operator.startswith("__"):
            raise AttributeError(operator)
        found = import_late("adjoint._library.custom_ops").REGISTERED.get(f"{self.name}::{operator}")
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{operator}'")
        return found

    def __dir__(self) -> list[str]:
        start = f"{self.name}::"
        registered = import_late("adjoint._library.custom_ops").REGISTERED
        return [name.removeprefix(start) for name in registered if name.startswith(start)]

    def __repr__(self) -> str:
        return f"<torch.ops.{self.name}>"


refused_libraries: set[str] = set()
"""The arguments of refused calls of `load_library`. Programs may continue to describe the operators of these libraries."""


def load_library(path: str) -> None:
    """Refuse to load compiled operators, because they require PyTorch's own tensors.

    Raises:
        OSError: always.
    """
    refused_libraries.add(path)
    raise OSError(
        f"adjoint cannot load compiled operators of PyTorch's ({Path(path).name}). Define them with torch.library."
    )


def __getattr__(name: str) -> Any:
    if name.startswith(("__", "pytest")):  # names that Python and its tools look for in every module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "profiler":
        from adjoint.profiler.recording import _record_function_enter as enter
        from adjoint.profiler.recording import _record_function_exit as leave

        return SimpleNamespace(
            _record_function_enter=enter, _record_function_enter_new=enter, _record_function_exit=leave
        )
    namespace = globals()[name] = _OpNamespace(name)
    return namespace
