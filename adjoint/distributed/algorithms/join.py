"""`Join` trains with different numbers of batches on the ranks.

A rank without more batches shadows the collectives of the other ranks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import adjoint as torch

from ..collectives import all_reduce
from ..groups import get_rank
from ..process_group import ProcessGroup
from ..reductions import ReduceOp

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """The actions of a rank that has no more inputs."""

    def main_hook(self) -> None:
        """Participate in the collectives of one step of the other ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run once after all ranks have used up their inputs."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return the configuration outside of `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """The base class of objects for `Join`. A subclass defines how ranks shadow the collectives of its steps."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that shadows this object. `kwargs` are the arguments of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the object's collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """The group of the object's collectives."""


class Join:
    """A context in which each rank trains until its inputs are used up, and then shadows the other ranks until all have finished.

    Args:
        joinables: the objects to shadow, in the order in which a step uses them.
        enable: whether to shadow. Shadowing is not needed if all ranks have the same number of inputs.
        throw_on_early_termination: whether all ranks raise RuntimeError when the first rank has no more inputs.
        kwargs: arguments of the hooks, such as `divide_by_initial_world_size` of `DistributedDataParallel`.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        groups = {id(joinable.join_process_group): joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        (self._group,) = groups.values()
        for joinable in joinables:
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, joinable is joinables[0])

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shadow the other ranks until all have used up their inputs."""
        if not self._enable or kind is not None:
            return
        last = True
        while _count_active(self._group, active=False):
            if self._throw:
                _sum(self._group, 1)
                raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")
            last = False
            for hook in self._join_hooks:
                hook.main_hook()
        for hook in self._join_hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tell the finished ranks that this rank begins a step. A `Joinable` calls this method before its collectives.

        Returns:
            If `joinable` is the first of the context, return a handle for the number of ranks in this step. Otherwise
                return None.
        """
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        count = torch.ones(1)
        work = all_reduce(count, group=joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination and _sum(joinable.join_process_group, 0):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _count_active(group: ProcessGroup, active: bool) -> int:
    return _sum(group, int(active))


def _sum(group: ProcessGroup, value: int) -> int:
    total = torch.full((1,), float(value))
    all_reduce(total, ReduceOp.SUM, group)
    return int(total.item())


Joinable.register(torch.nn.parallel.DistributedDataParallel)
