"""`torch.accelerator`: there is none; programs use the CPU."""

from __future__ import annotations

from typing import Any

from adjoint._runtime.first_use import import_late
from adjoint._runtime.tracebacks import end_at_caller
from adjoint.device import device as _device


class AcceleratorError(RuntimeError):
    """PyTorch's error of a kernel on an accelerator; it is never raised here, and programs may catch it.

    >>> import adjoint as torch
    >>> try:
    ...     result = torch.ones(2).sum()
    ... except torch.AcceleratorError:
    ...     result = None
    >>> result
    tensor(2.)
    """


class OutOfMemoryError(RuntimeError):
    """PyTorch's error of an accelerator whose memory is spent; it is never raised here, and programs may catch it.

    >>> import adjoint as torch
    >>> try:
    ...     result = torch.ones(2).sum()
    ... except torch.OutOfMemoryError:
    ...     result = None
    >>> result
    tensor(2.)
    """


def is_available() -> bool:
    """Whether there is an accelerator; never."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """The accelerator; None."""
    return None


def synchronize(device: Any = None) -> None:
    """Do nothing: operations have run."""


def empty_cache() -> None:
    """Do nothing: there is no cached memory."""


def __getattr__(name: str) -> Any:
    """What needs an accelerator: functions that say so when they are called."""
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)


end_at_caller(globals(), "__getattr__")
