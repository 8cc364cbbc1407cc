"""Settings of PyTorch's that programs make and ask for. They are kept; what they choose between does not exist here.

Every operation is deterministic, products of float32 matrices are computed in float32, and there is one pool of threads.
"""

from __future__ import annotations

import warnings
from typing import Any

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
    "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip

_kept: dict[str, Any] = {
    "deterministic": 0,
    "matmul_precision": "highest",
    "interop_threads": 1,
    "warn_always": False,
}

_DEBUG_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: Any, *, warn_only: bool = False) -> None:
    """Ask for operations that always give the same result, as all do here.

    Raises:
        TypeError: if `mode` is not a bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _kept["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` has been asked for."""
    return bool(_kept["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it has been asked for with `warn_only`."""
    return bool(_kept["deterministic"] == 1)


def get_deterministic_debug_mode() -> int:
    """0, or what `use_deterministic_algorithms` has asked for: 1 with `warn_only`, 2 without."""
    return int(_kept["deterministic"])


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """`use_deterministic_algorithms` by number, or by name: "default" (0), "warn" (1) or "error" (2).

    Raises:
        TypeError: if `debug_mode` is neither an int nor a str.
        RuntimeError: if it is another one.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _kept["deterministic"] = debug_mode


def get_float32_matmul_precision() -> str:
    """The precision asked for by `set_float32_matmul_precision`; "highest" at first, and what there is."""
    return str(_kept["matmul_precision"])


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 matrices to be less precise ("high", "medium") or not ("highest"). They are not."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    _kept["matmul_precision"] = precision


def get_num_interop_threads() -> int:
    """The number asked for by `set_num_interop_threads`."""
    return int(_kept["interop_threads"])


def set_num_interop_threads(num: Any) -> None:
    """Ask for threads that run operations beside each other, of which there are none here.

    Raises:
        RuntimeError: if `num` is not a positive int.
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _kept["interop_threads"] = num


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers too small for a full mantissa can be flushed to zero as asked: only left as they are."""
    return not mode


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` has asked for warnings to be repeated."""
    return bool(_kept["warn_always"])


def set_warn_always(b: Any) -> None:
    """Ask for warnings to be repeated; whether they are is up to Python's filters (`warnings.simplefilter`).

    Raises:
        RuntimeError: if `b` is not a bool.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _kept["warn_always"] = b
