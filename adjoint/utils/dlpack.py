"""`torch.utils.dlpack` shares tensors with other libraries; names, no logic."""

from typing import Any

import adjoint as torch

from .._runtime.tracebacks import end_public_at_caller

__all__ = ["from_dlpack", "to_dlpack"]

from_dlpack = torch.from_dlpack


def to_dlpack(tensor: torch.Tensor) -> Any:
    """A capsule with the memory of the tensor, also of one with a history, which one other library may take."""
    return tensor.detach().__dlpack__()


end_public_at_caller(globals())
