"""`torch.distributed.distributed_c10d`: where programs also look for the names of `torch.distributed`."""

from typing import Any

import adjoint as torch


def __getattr__(name: str) -> Any:
    return getattr(torch.distributed, name)
