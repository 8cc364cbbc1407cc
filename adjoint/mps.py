"""`adjoint.mps`: Apple's accelerators, of which there is none."""

from typing import Any

from ._runtime.first_use import import_late
from .accelerator import device_count, empty_cache, is_available

__all__ = ["device_count", "empty_cache", "is_available"]


def __getattr__(name: str) -> Any:
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
