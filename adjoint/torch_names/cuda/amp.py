"""`torch.cuda.amp`: `autocast` and `GradScaler` for this type of device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from adjoint import amp
from adjoint.dtypes import dtype as _dtype
from adjoint.dtypes import float16 as _half

from ..cpu.amp import deprecated

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """The context `torch.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype = _half, cache_enabled: bool = True) -> None:
        deprecated("cuda", "autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """The scaler `torch.amp.GradScaler("cuda", ...)`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        deprecated("cuda", "GradScaler")
        super().__init__("cuda", *args, **options)


custom_fwd: Callable[..., Any] = partial(amp.custom_fwd, device_type="cuda")
custom_bwd: Callable[..., Any] = partial(amp.custom_bwd, device_type="cuda")
custom_fwd.__doc__ = """`torch.amp.custom_fwd` with `device_type="cuda"`."""
custom_bwd.__doc__ = """`torch.amp.custom_bwd` with `device_type="cuda"`."""
