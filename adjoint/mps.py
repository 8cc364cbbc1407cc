"""`adjoint.mps`: Apple's accelerators, of which there is none; programs find out, and use the CPU."""

from typing import Any

from .accelerator import device_count as device_count
from .accelerator import empty_cache as empty_cache
from .accelerator import is_available as is_available
from .accelerator import is_available as is_initialized
from .first_use import import_late

__all__ = ["device_count", "empty_cache", "is_available", "is_initialized"]


def __getattr__(name: str) -> Any:
    """Say what there is not."""
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
