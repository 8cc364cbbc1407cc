"""Observe compiled kernels while they run, for the profiler and for inspection.

A compiled kernel is called through attributes of its `CompiledFunction`. While an observer is active, these attributes
hold functions that report to it. Otherwise the attributes hold the ctypes functions, so observation costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from .._runtime.forks import lock_across_forks
from .._runtime.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from .llvm.compilation import CompiledFunction

Observer = Callable[[str], AbstractContextManager[Any]]
"""A context around each call of a kernel with a given name."""


class CompiledKernels:
    """All compiled kernels in order, and their observers."""

    def __init__(self) -> None:
        self.functions: list[CompiledFunction] = []
        self._names: dict[int, str] = {}
        self.observers: tuple[Observer, ...] = ()
        self._lock = lock_across_forks()

    def add(self, function: CompiledFunction) -> None:
        """Add a kernel that has been compiled."""
        with self._lock:
            self.functions.append(function)
            self._names[function.code.address] = function.code.name
            self._install(function)

    def observe(self, observer: Observer) -> None:
        """Run kernels inside `observer(name)` from now on."""
        self._change(lambda observers: (*observers, observer))

    def stop_observing(self, observer: Observer) -> None:
        """End `observe`. If the observation never began, this method does nothing."""
        self._change(lambda observers: tuple([other for other in observers if other != observer]))

    @uninterrupted
    def _change(self, changed: Callable[[tuple[Observer, ...]], tuple[Observer, ...]]) -> None:
        with self._lock:
            self.observers = changed(self.observers)
            for function in self.functions:
                self._install(function)

    def _install(self, function: CompiledFunction) -> None:
        function.call = self.called(function, function.call)
        function.quick = self.called(function, function.quick)
        function.split = self.called(function, function.split)

    def around(self, name: str) -> ExitStack:
        """Enter the contexts of the observers for a call of a kernel, and return them as one context."""
        with ExitStack() as contexts:
            for observer in self.observers:
                contexts.enter_context(observer(name))
            return contexts.pop_all()

    def called(self, function: CompiledFunction, call: Any) -> Any:
        """Return the replacement of `call`, which is one of the functions that run the kernel. None is returned unchanged."""
        call = getattr(call, "original", call)
        if not self.observers or call is None:
            return call

        def observed(*arguments: Any) -> Any:
            # A kernel that runs another one for ranges receives its address, which is also the first argument of `split`.
            given = (self._names.get(each) for each in arguments[1:] if isinstance(each, int))
            name = next(filter(None, given), function.code.name)
            with self.around(name):
                return call(*arguments)

        observed.original = call  # type: ignore[attr-defined]
        return observed


KERNELS = CompiledKernels()
"""The compiled kernels of this process."""
