"""`torch.distributed.distributed_c10d`: names of `torch.distributed` for programs that use this module."""

from typing import Any

import adjoint as torch

from .groups import _get_default_group as _get_default_group


def __getattr__(name: str) -> Any:
    return getattr(torch.distributed, name)
