"""PyTorch's module of the transforms `vmap` and `grad`, and of `chunk_vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint.dispatch.arguments import require
from adjoint.func import grad, grad_and_value, vmap
from adjoint.transforms.vmap import _process_batched_inputs

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """Return `vmap(func)`, which divides the batch into `chunks` parts as `torch.chunk` does, and computes them in turn.

    Raises:
        RuntimeError: at the call, if `chunks` is not positive.

    >>> import adjoint as torch
    >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 4))
    tensor([4., 4., 4.])
    """

    @functools.wraps(func)
    def mapped(*args: Any, **keywords: Any) -> Any:
        require("Int", chunks, "chunk", "chunks", 1)
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        size = _process_batched_inputs(in_dims, args, func)[0]
        part = max(1, -(-size // chunks))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=part)(*args, **keywords)

    return mapped
