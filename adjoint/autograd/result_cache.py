"""`caching_results`: something that stands between operators and their computation, below what is recorded of them.

An operator that is about to compute asks it for the result, so that it can keep results, or give the ones it has kept. Views
and in-place operations do not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..dispatch.overload_names import OpOverload, overload_of
from ..tape import mode_switches, modes
from ..tensor import Tensor

__all__ = ["ResultCache", "caching_results"]


class ResultCache(Protocol):
    """What `caching_results` puts there."""

    def result(self, op: OpOverload, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """The result of `op` on `args`: what `compute()` returns now, or returned when it was kept."""

    def made(self, outputs: Sequence[Tensor]) -> None:
        """Take notice of the tensors that the last result has become."""


class caching_results:
    """Context manager: `keeper` stands between the operators of this thread and their computation."""

    def __init__(self, result_cache: ResultCache) -> None:
        self.result_cache = result_cache

    def __enter__(self) -> None:
        self.outer = modes.STATE.result_cache
        mode_switches.set_result_cache(self)

    def __exit__(self, *exception: object) -> None:
        mode_switches.set_result_cache(self.outer)

    def compute(self, op: Any, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Ask the keeper; what in turn it computes, it computes as the keeper outside of this one says."""

        def further() -> Any:
            return compute() if self.outer is None else self.outer.compute(op, args, compute)

        return self.result_cache.result(overload_of(op), args, further)

    def made(self, outputs: list[Tensor]) -> None:
        """Tell the keepers."""
        self.result_cache.made(outputs)
        if self.outer is not None:
            self.outer.made(outputs)
