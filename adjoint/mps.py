"""`adjoint.mps`: Apple's accelerators, of which there is none; programs find out, and use the CPU."""

from typing import Any

from .cuda import (
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    is_initialized,
    manual_seed,
    manual_seed_all,
    seed,
)
from .first_use import import_late

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "seed",
]


def __getattr__(name: str) -> Any:
    """Say what there is not."""
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
