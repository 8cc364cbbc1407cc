"""Converting all parameters of a model to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import adjoint as torch
from adjoint import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the parameters flattened and joined into one vector."""
    return torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the data of the parameters to parts of the vector, which share memory with the vector.

    Raises:
        TypeError: if `vec` is not a tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
