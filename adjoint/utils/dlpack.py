"""`torch.utils.dlpack` shares tensors with other libraries. This file contains names only."""

from typing import Any

import adjoint as torch

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

DLDeviceType = type(torch.empty(0).__dlpack_device__()[0])

from_dlpack = torch.from_dlpack


def to_dlpack(tensor: torch.Tensor) -> Any:
    """Return a capsule with the memory of a tensor, for one other library. The tensor may have a history."""
    return tensor.detach().__dlpack__()
