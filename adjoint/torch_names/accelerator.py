"""`torch.accelerator`: no accelerator is available, and programs use the CPU."""

from __future__ import annotations

from typing import Any

from adjoint._runtime.first_use import import_late
from adjoint.device import device as _device


class AcceleratorError(RuntimeError):
    """PyTorch's error for a kernel on an accelerator. It is never raised here, but programs may catch it.

    >>> import adjoint as torch
    >>> try:
    ...     result = torch.ones(2).sum()
    ... except torch.AcceleratorError:
    ...     result = None
    >>> result
    tensor(2.)
    """


class OutOfMemoryError(RuntimeError):
    """PyTorch's error for exhausted accelerator memory. It is never raised here, but programs may catch it.

    >>> import adjoint as torch
    >>> try:
    ...     result = torch.ones(2).sum()
    ... except torch.OutOfMemoryError:
    ...     result = None
    >>> result
    tensor(2.)
    """


def is_available() -> bool:
    """Return whether an accelerator is available. The answer is always False."""
    return False


def device_count() -> int:
    """Return the number of accelerators, which is 0."""
    return 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """Return the current accelerator, which is None."""
    return None


def synchronize(device: Any = None) -> None:
    """Do nothing, because all operations have finished."""


def empty_cache() -> None:
    """Do nothing, because there is no cached memory."""


def __getattr__(name: str) -> Any:
    """Return functions that need an accelerator. They raise an error when they are called."""
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
