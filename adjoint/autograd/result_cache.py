"""`caching_results`: a cache between operators and their array computation, below recording.

An operator asks the cache for its result, so that the cache can store results or return stored ones. Views and in-place
operations do not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..dispatch.overload_names import OpOverload, overload_of
from ..tape import modes
from ..tensor import Tensor
from ..uninterrupted import uninterrupted

__all__ = ["ResultCache", "caching_results"]


class ResultCache(Protocol):
    """The interface of a cache for `caching_results`."""

    def result(self, op: OpOverload, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """The result of `op` on `args`: call `compute()`, or return a stored result."""

    def made(self, outputs: Sequence[Tensor]) -> None:
        """Receive the tensors that were created from the latest result."""


class caching_results:
    """Context manager: set the cache between the operators of this thread and their computation."""

    def __init__(self, result_cache: ResultCache) -> None:
        self.result_cache = result_cache

    def __enter__(self) -> None:
        self.outer = modes.STATE.result_cache
        modes.switch("result_cache", self)

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.switch("result_cache", self.outer)

    def compute(self, op: Any, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Ask this cache; operators that it calls ask the enclosing cache."""

        def further() -> Any:
            return compute() if self.outer is None else self.outer.compute(op, args, compute)

        return self.result_cache.result(overload_of(op), args, further)

    def made(self, outputs: list[Tensor]) -> None:
        """Pass the new tensors to all caches."""
        self.result_cache.made(outputs)
        if self.outer is not None:
            self.outer.made(outputs)
