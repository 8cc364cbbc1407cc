"""`torch.functional`: the functions of `torch` that PyTorch writes in Python."""

from typing import Any

import adjoint as torch
from adjoint._runtime.tracebacks import ending_at_caller

_NAMES = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique", "unique_consecutive",
    "unravel_index",
]  # fmt: skip


@ending_at_caller
def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch, name)


def __dir__() -> list[str]:
    return _NAMES
