"""`torch.cpu.amp`: `autocast` and `GradScaler` for this type of device."""

from __future__ import annotations

from typing import Any

from adjoint import amp
from adjoint._runtime.tracebacks import warn
from adjoint.dtypes import bfloat16 as _half
from adjoint.dtypes import dtype as _dtype

__all__ = ["GradScaler", "autocast"]


def deprecated(device: str, name: str) -> None:
    """Warn that `torch.amp` has a function of this name for all devices."""
    warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
    )


class autocast(amp.autocast):
    """The context `torch.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype = _half, cache_enabled: bool = True) -> None:
        deprecated("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """The scaler `torch.amp.GradScaler("cpu", ...)`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        deprecated("cpu", "GradScaler")
        super().__init__("cpu", *args, **options)
