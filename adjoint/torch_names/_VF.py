"""`torch._VF`: the functions of `torch`, under the name that modules use."""

from typing import Any

import adjoint as torch


def unique_dim(
    input: torch.Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the distinct slices along `dim`, the positions of all slices among them, and their counts."""
    values, inverse, counts = torch.unique(input, sorted, True, True, dim)
    nothing = torch.empty(0, dtype=torch.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def __getattr__(name: str) -> Any:
    return getattr(torch, name)
