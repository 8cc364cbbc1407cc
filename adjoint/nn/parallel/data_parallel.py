"""Data parallelism on a CPU: one replica of the module for each worker thread, each with a part of the batch.

Replicas share the parameters, so gradients accumulate in the original parameters. `replicate` returns copies of a
module that share the parameters. `parallel_apply` runs modules concurrently, each in a separate thread.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ..modules.module import Module
from .scatter_gather import gather, split

__all__ = ["DataParallel", "data_parallel", "parallel_apply", "replicate"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module in a thread, with its inputs (a tuple of arguments or one argument) and its keyword arguments.

    Raises:
        AssertionError: if the numbers of inputs, of keyword arguments and of modules differ.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    if len(modules) != len(named):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs {len(named)}")
    arguments = [each if isinstance(each, (tuple, list)) else (each,) for each in inputs]
    return _in_threads(
        [functools.partial(module, *a, **k) for module, a, k in zip(modules, arguments, named, strict=True)]
    )


def _in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each call in a separate thread, with the current grad mode. Raise the first exception again."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException | None] = [None] * len(calls)
    grad_enabled = torch.is_grad_enabled()

    def run(i: int) -> None:
        try:
            with torch.set_grad_enabled(grad_enabled):
                results[i] = calls[i]()
        except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
            errors[i] = error

    workers = [threading.Thread(target=run, args=(i,)) for i in range(1, len(calls))]
    for worker in workers:
        worker.start()
    run(0)
    for worker in workers:
        worker.join()
    for error in errors:
        if error is not None:
            raise error
    return results


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Return one copy of `network` for each entry of `devices`.

    The copies share parameters and buffers. On a CPU nothing is copied.

    With `detach`, the parameters of the copies are detached from the parameters of `network`.
    """
    replicas = [_replica(network) for _ in devices]
    if detach:
        for module in (each for replica in replicas for each in replica.modules()):
            detached: Any = {name: None if p is None else p.detach() for name, p in module._parameters.items()}
            module._parameters = detached
    return replicas


def _replica(module: Module) -> Module:
    """Return a copy of the module and its descendants that shares parameters and buffers."""
    replicas = {original: original._replicate_for_data_parallel() for original in module.modules()}
    for replica in replicas.values():
        for name, child in replica._modules.items():
            if child is not None:
                replica._modules[name] = replicas[child]
    return replicas[module]


class DataParallel(Module):
    """Splits the batch along `dim`, runs a replica of `module` on each part in its own thread, and joins the outputs.

    Args:
        module: the module, which becomes the attribute `module`. Keys of the state dict therefore begin with `module.`.
        device_ids: a sequence with one entry for each thread; `torch.get_num_threads()` threads if None or empty.
        output_device: stored, but not used.
        dim: the batch dimension.

        With one thread, or an input that cannot be split, the module is called directly.

    >>> import adjoint as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(3, 2), device_ids=[0, 1])
    >>> model(torch.ones(8, 3)).shape
    torch.Size([8, 2])
    """

    dim = 0
    output_device: Any = None

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids = list(device_ids or ())
        if dim != 0:
            self.dim = dim
        if output_device is not None:
            self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Split the inputs, run the replicas and join their outputs."""
        return data_parallel(self.module, inputs, self.device_ids or None, self.output_device, self.dim, kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Evaluate `module(*inputs)` in several threads. For the arguments, see `DataParallel`."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    threads = torch.get_num_threads() if device_ids is None else len(device_ids)
    if threads <= 1:
        return module(*inputs, **(module_kwargs or {}))
    parts = split((inputs, module_kwargs or {}), threads, dim)
    if len(parts) <= 1:
        return module(*inputs, **(module_kwargs or {}))
    replicas = replicate(module, parts)
    return gather(parallel_apply(replicas, *zip(*parts, strict=True)), output_device, dim)
