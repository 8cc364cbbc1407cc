"""`torch.cpu`: the processor as a device."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from types import MappingProxyType
from typing import Any

from .. import backends
from . import amp as amp

__all__ = [
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A stream of operations. Only one exists, and its operations run immediately."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: Any) -> None:
        """Do nothing, because all operations have finished."""


_only = Stream()


@cache
def get_capabilities() -> Mapping[str, Any]:
    """Return the known properties of the processor: its architecture and, with llvmlite, its vector instructions.

    >>> import adjoint as torch
    >>> "architecture" in torch.cpu.get_capabilities()
    True
    """
    found: dict[str, Any] = {"architecture": platform.machine()}
    if backends.llvm.is_available():
        names = backends.llvm.instruction_set
        found.update(avx2=names in ("AVX2", "AVX-512"), avx512_f=names == "AVX-512", avx512_vl=names == "AVX-512")
    return MappingProxyType(found)


def _is_avx2_supported() -> bool:
    return bool(get_capabilities().get("avx2", False))


def _is_avx512_supported() -> bool:
    return bool(get_capabilities().get("avx512_f", False))


def is_available() -> bool:
    """Return whether a processor is available. The answer is always True."""
    return True


def is_initialized() -> bool:
    """Return whether the processor is in use. The answer is always True."""
    return True


def device_count() -> int:
    """Return the number of processors that are devices, which is 1."""
    return 1


def current_device() -> str:
    """Return the current device, "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing, because only one device exists."""


def synchronize(device: Any = None) -> None:
    """Do nothing, because all operations have finished."""


def current_stream(device: Any = None) -> Stream:
    """Return the only stream."""
    return _only


def stream(stream: Any) -> nullcontext[None]:
    """A context without effect."""
    return nullcontext()
