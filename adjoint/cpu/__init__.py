"""`torch.cpu`: the processor as a device."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from . import amp as amp

__all__ = [
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A stream of operations; there is one, and operations run at once."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: operations have run."""


_only = Stream()


def is_available() -> bool:
    """Whether there is a processor; always."""
    return True


def is_initialized() -> bool:
    """Whether it is in use; always."""
    return True


def device_count() -> int:
    """The number of processors that are devices: 1."""
    return 1


def current_device() -> str:
    """The device: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Do nothing: operations have run."""


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return _only


def stream(stream: Any) -> nullcontext[None]:
    """A context that changes nothing."""
    return nullcontext()
