"""Data parallelism on a CPU: one replica of the module for each worker thread, each with a part of the batch.

Replicas share the parameters, so gradients accumulate in the original parameters.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Splits the batch along `dim`, runs a replica of `module` on each part in its own thread, and joins the outputs.

    Args:
        module: the module; it is `self.module`, so state dict keys begin with `module.`.
        device_ids: its length is the number of threads; `torch.get_num_threads()` if None.
        output_device: stored, without effect.
        dim: the batch dimension.

        With one thread, or an input that cannot be split, the module is called directly.

    >>> import adjoint as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(3, 2), device_ids=[0, 1])
    >>> model(torch.ones(8, 3)).shape
    torch.Size([8, 2])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = list(range(torch.get_num_threads())) if device_ids is None else list(device_ids)
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Split the inputs, run the replicas and join their outputs."""
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Evaluate `module(*inputs)` in several threads; arguments as those of `DataParallel`."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    threads = torch.get_num_threads() if device_ids is None else len(device_ids)
    if threads <= 1:
        return module(*inputs, **(module_kwargs or {}))
    parts = _scatter((inputs, module_kwargs or {}), threads, dim)
    if len(parts) <= 1:
        return module(*inputs, **(module_kwargs or {}))
    replicas = [_replicate(module) for _ in parts]
    calls = [functools.partial(replica, *part[0], **part[1]) for replica, part in zip(replicas, parts, strict=True)]
    return _gather(_in_threads(calls), dim)


def _replicate(module: Module) -> Module:
    """Copies of the module and its descendants that share parameters and buffers."""
    replicas = {original: original._replicate_for_data_parallel() for original in module.modules()}
    for replica in replicas.values():
        for name, child in replica._modules.items():
            if child is not None:
                replica._modules[name] = replicas[child]
    return replicas[module]


def _scatter(value: Any, count: int, dim: int) -> list[Any]:
    """Split every tensor inside `value` along `dim` into at most `count` parts; other objects go to every part."""
    if isinstance(value, torch.Tensor):
        return list(value.chunk(count, dim))
    if isinstance(value, (tuple, list)) and value:
        columns = [_scatter(item, count, dim) for item in value]
        if all(map(_is_everywhere, columns)):
            return [_Everywhere(value)]
        rows = _align(columns)
        if hasattr(value, "_make"):
            return [value._make(row) for row in rows]
        return [type(value)(row) for row in rows]
    if isinstance(value, dict) and value:
        columns = [_scatter(item, count, dim) for item in value.values()]
        if all(map(_is_everywhere, columns)):
            return [_Everywhere(value)]
        return [type(value)(zip(value, row, strict=True)) for row in _align(columns)]
    return [_Everywhere(value)]


class _Everywhere:
    """A value for every part."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _align(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Turn the parts of each item into the items of each part."""
    count = min(len(column) for column in columns if not _is_everywhere(column))
    return [tuple(column[0].value if _is_everywhere(column) else column[i] for column in columns) for i in range(count)]


def _is_everywhere(column: list[Any]) -> bool:
    return len(column) == 1 and isinstance(column[0], _Everywhere)


def _in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each call in a thread of its own in this thread's grad mode; the first exception is raised again."""
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


def _gather(outputs: list[Any], dim: int) -> Any:
    """Join the outputs of the parts along `dim`; zero-dimensional ones are stacked into a vector."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(outputs) if first.dim() == 0 else torch.cat(outputs, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, _gather([output[key] for output in outputs], dim)) for key in first)
    joined = (_gather(list(column), dim) for column in zip(*outputs, strict=True))
    return first._make(joined) if hasattr(first, "_make") else type(first)(joined)
