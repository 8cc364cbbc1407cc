"""`torch.utils._device`: a device as a context and as a decorator."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from ._contextlib import _DecoratorContextManager

__all__ = ["DeviceContext", "set_device"]


class DeviceContext(_DecoratorContextManager):
    """A context in which new tensors are on a device. It also decorates functions and generators."""

    _given = ("device",)

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)

    def __enter__(self) -> torch.device:
        return self.device.__enter__()

    def __exit__(self, *exception: object) -> None:
        self.device.__exit__(*exception)


set_device = DeviceContext
