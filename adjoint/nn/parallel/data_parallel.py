"""Data parallelism on a CPU: one replica of the module for each worker thread, each with a part of the batch.

Replicas share the parameters, so gradients accumulate in the original parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, split

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
    parts = split((inputs, module_kwargs or {}), threads, dim)
    if len(parts) <= 1:
        return module(*inputs, **(module_kwargs or {}))
    replicas = replicate(module, parts)
    return gather(parallel_apply(replicas, *zip(*parts, strict=True)), output_device, dim)
