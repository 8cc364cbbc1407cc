"""`replicate`: copies of a module that share its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """As many copies of `network` as there are `devices`. They share parameters and buffers; on a CPU nothing is copied.

    With `detach` the copies' parameters are detached from those of `network`.
    """
    replicas = [_replica(network) for _ in devices]
    if detach:
        for module in (each for replica in replicas for each in replica.modules()):
            detached: Any = {name: None if p is None else p.detach() for name, p in module._parameters.items()}
            module._parameters = detached
    return replicas


def _replica(module: Module) -> Module:
    """A copy of the module and its descendants that shares parameters and buffers."""
    replicas = {original: original._replicate_for_data_parallel() for original in module.modules()}
    for replica in replicas.values():
        for name, child in replica._modules.items():
            if child is not None:
                replica._modules[name] = replicas[child]
    return replicas[module]
