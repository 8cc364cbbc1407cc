"""PyTorch's name for forward mode."""

from typing import Any

from ..transforms.forward_mode import (
    UnpackedDualTensor,
    current_level,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from ..transforms.forward_mode import _is_fwd_grad_enabled as _is_fwd_grad_enabled
from ..transforms.forward_mode import _set_fwd_grad_enabled as _set_fwd_grad_enabled

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def __getattr__(name: str) -> Any:
    """Return `_current_level`: the number of the current dual level, or -1."""
    if name == "_current_level":
        return -1 if current_level() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
