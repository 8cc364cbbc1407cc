"""Stubs for `torch.mps`, `torch.mtia` and `torch.xpu`: no support for accelerators of Apple, Meta and Intel.

One file implements the three modules (`places.ONE_FILE`).
"""

from typing import Any

from adjoint._runtime.first_use import import_late

from .accelerator import device_count, empty_cache, is_available

__all__ = ["device_count", "empty_cache", "is_available"]

if not __name__.endswith(".mps"):  # `torch.mps` lacks this name
    is_initialized = is_available
    __all__ += ["is_initialized"]


def __getattr__(name: str) -> Any:
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
