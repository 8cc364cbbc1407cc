"""Compiled kernels seen while they run, for the profiler and for inspection.

A compiled kernel is called through attributes of its `CompiledFunction`. While somebody observes, these attributes hold functions
that tell the observers; otherwise they hold what ctypes made, and observation costs nothing.
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
"""What a call of the kernel of this name runs inside of."""


class CompiledKernels:
    """All kernels that have been compiled, in order, and who observes them."""

    def __init__(self) -> None:
        self.functions: list[CompiledFunction] = []
        self._names: dict[int, str] = {}
        self._observers: tuple[Observer, ...] = ()
        self._lock = lock_across_forks()

    def add(self, function: CompiledFunction) -> None:
        """A kernel has been compiled."""
        with self._lock:
            self.functions.append(function)
            self._names[function.code.address] = function.code.name
            self._install(function)

    def observe(self, observer: Observer) -> None:
        """From now on kernels run inside of `observer(name)`."""
        self._change((*self._observers, observer))

    def stop_observing(self, observer: Observer) -> None:
        """The end of `observe`; nothing happens if that never began."""
        self._change(tuple(other for other in self._observers if other != observer))

    @uninterrupted
    def _change(self, observers: tuple[Observer, ...]) -> None:
        with self._lock:
            self._observers = observers
            for function in self.functions:
                self._install(function)

    def _install(self, function: CompiledFunction) -> None:
        function.call = self.called(function, function.call)
        function.split = self.called(function, function.split)

    def called(self, function: CompiledFunction, call: Any) -> Any:
        """What is to be called in place of `call`, one way to run the kernel; None stays None."""
        call = getattr(call, "original", call)
        if not self._observers or call is None:
            return call

        def observed(*arguments: Any) -> Any:
            # A kernel that runs another for ranges is given its address; `split` is given that of such a kernel first.
            given = (self._names.get(each) for each in arguments[1:] if isinstance(each, int))
            name = next(filter(None, given), function.code.name)
            with ExitStack() as around:
                for observer in self._observers:
                    around.enter_context(observer(name))
                return call(*arguments)

        observed.original = call  # type: ignore[attr-defined]
        return observed


KERNELS = CompiledKernels()
"""The compiled kernels of this process."""
