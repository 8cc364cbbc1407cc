"""Compiled loops for large arrays: this module knows which kernels have them and whether they are used.

`compiled` (of `plans`) attaches a compiled form, which is a function in a module of `kernels.compiled`, to a NumPy kernel. The
module is imported when an array is large enough for the first time. Without llvmlite (the extra `fast`), the NumPy form
always computes the result.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy

from .._runtime.first_use import can_import, computed_once, import_late
from ..kernels.runtime.addresses import IN_OBJECTS
from ..kernels.runtime.freed_memory import keep_freed_memory
from ..kernels.runtime.layout import row_major


class Shapes(threading.local):
    """What this thread needs instead of results.

    `only`: whether it needs only the shapes of results. Kernels then use no compiled loops, and plans are not run. `recorder`:
    the recorder of the launches of compiled loops (see `recording`), or None. `special`: whether one of them is set.
    """

    only = special = False
    recorder: Any = None


SHAPES = Shapes()


class CompiledLoops:
    """The compiled forms of kernels.

    `enabled` determines whether these forms are used. It is False if llvmlite is missing or broken, and is initially False if the
    environment sets `ADJOINT_LLVM=0`. `every_size` uses them for arrays of any size, for tests
    (`ADJOINT_LLVM_EVERY_SIZE=1`). `failures` lists the forms that failed to compile, with the reasons. `unsupported`
    lists the forms that need an instruction that this processor lacks.
    """

    def __init__(self) -> None:
        self._enabled: bool | None = None
        self._forms: dict[str, Callable[..., Any] | None] = {}
        self.every_size = os.environ.get("ADJOINT_LLVM_EVERY_SIZE", "0") == "1"
        self.failures: dict[str, str] = {}
        self.unsupported: dict[str, str] = {}

    @computed_once
    def installed(self) -> bool:
        """Return whether llvmlite is installed and its machine code can read Python's objects. This imports nothing."""
        return IN_OBJECTS and find_spec("llvmlite") is not None

    @computed_once
    def available(self) -> bool:
        """Return whether llvmlite is installed and can be imported. Otherwise, `failures` gives the reason."""
        return self.installed and can_import("llvmlite.binding", self.failures)

    @property
    def enabled(self) -> bool:
        """Return whether compiled forms are used. The answer is determined when the first large array is computed."""
        if self._enabled is None:
            keep_freed_memory()
            self._enabled = os.environ.get("ADJOINT_LLVM", "1") != "0" and self.available
        return self._enabled and not SHAPES.only

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._enabled = bool(value) and self.available

    def form(self, path: str) -> Callable[..., Any] | None:
        """Return the compiled form with this path below `kernels.compiled`, or None if it failed or there is no compiler."""
        try:
            return self._forms[path] if (self._enabled and not SHAPES.only) or self.enabled else None
        except KeyError:
            pass
        module, _, name = path.rpartition(".")
        return self._forms.setdefault(path, getattr(import_late(f"adjoint.kernels.compiled.{module}"), name))

    def load(self, *modules: str) -> None:
        """Import modules of `codegen.llvm`. Other threads and forks wait until they are complete."""
        for module in modules:
            import_late(f"adjoint.codegen.llvm.{module}")

    def give_up(self, path: str, reason: Exception) -> None:
        """Record that the compiled form with this path has failed."""
        self._forms[path] = None
        self.failures[path] = str(reason)

    def note(self, name: str, error: Exception) -> None:
        """Record that the expression with this name could not be compiled."""
        (self.unsupported if getattr(error, "of_processor", False) else self.failures)[name] = str(error)

    def has_given_up(self, name: str) -> bool:
        """Return whether compilation of the expression with this name has failed."""
        return name in self.failures or name in self.unsupported

    def takes(self, size: int, elements: int) -> bool:
        """Return whether an array of `size` elements is large enough for a form that requires `elements` elements."""
        return (size >= elements or (self.every_size and size > 0)) and self.enabled

    def run(self, path: str, *args: Any, **options: Any) -> Any:
        """Return the result of the compiled form, or NotImplemented if it does not support the arguments or did not compile."""
        form = self._forms.get(path) if self._enabled and not SHAPES.only else None
        if form is None and (form := self.form(path)) is None:
            return NotImplemented
        for argument in args:
            if isinstance(argument, numpy.generic):  # a NumPy scalar has no address
                return NotImplemented
        if SHAPES.recorder is not None and not getattr(form, "recordable", False):
            return NotImplemented
        try:
            return form(*args, **options)
        except Exception as error:
            from .llvm.values import CompilationError

            if not isinstance(error, CompilationError):
                raise
            self.give_up(path, error)
            return NotImplemented


def without_repetition(argument: Any) -> Any:
    """Return a row-major copy of an array that repeats elements in memory, or any other argument itself."""
    repeated = isinstance(argument, numpy.ndarray) and 0 in argument.strides and not argument.flags.c_contiguous
    return row_major(argument) if repeated else argument


def with_copies(args: tuple[Any, ...]) -> list[Any] | None:
    """Return the arguments with copies of arrays that repeat elements in memory, or None if there are no such arrays."""
    copies = [*map(without_repetition, args)]
    return None if all(map(operator.is_, copies, args)) else copies


LOOPS = CompiledLoops()
"""The compiled forms of all kernels."""
