"""Settings of PyTorch that programs read and set. Most values are stored, but have no effect.

Every operation is deterministic, products of float32 matrices are computed in float32, and there is one thread pool.
"""

from __future__ import annotations

from typing import Any

from adjoint._runtime.determinism import CHOSEN
from adjoint._runtime.tracebacks import ALWAYS, ending_at_caller, warn

_kept: dict[str, Any] = {
    "matmul_precision": "highest",
    "interop_threads": 1,
}

_DEBUG_MODES = ("default", "warn", "error")


@ending_at_caller
def use_deterministic_algorithms(mode: Any, *, warn_only: bool = False) -> None:
    """Request deterministic operations.

    All operations here are deterministic. As in PyTorch, operations whose result depends on the order of writes raise an
    error, or warn with `warn_only`, and new memory is filled (`torch.utils.deterministic.fill_uninitialized_memory`).

    Raises:
        TypeError: if an argument is not a bool.
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument {name} must be bool, not {kind}")
    CHOSEN["level"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` has been requested."""
    return bool(CHOSEN["level"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether deterministic algorithms have been requested with `warn_only`."""
    return bool(CHOSEN["level"] == 1)


def get_deterministic_debug_mode() -> int:
    """Return the setting of `use_deterministic_algorithms` as a number: 0 (off), 1 (with `warn_only`) or 2 (without)."""
    return int(CHOSEN["level"])


@ending_at_caller
def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Call `use_deterministic_algorithms` by number or name: "default" (0), "warn" (1) or "error" (2).

    Raises:
        TypeError: if `debug_mode` is neither an int nor a str.
        RuntimeError: if `debug_mode` is another int or str.
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
    CHOSEN["level"] = debug_mode


def get_float32_matmul_precision() -> str:
    """Return the value of `set_float32_matmul_precision`.

    The default is "highest", which is also the precision that is always used.
    """
    return str(_kept["matmul_precision"])


@ending_at_caller
def set_float32_matmul_precision(precision: str) -> None:
    """Permit less precise products of float32 matrices ("high", "medium"), or forbid them ("highest").

    The setting has no effect, because products stay precise.
    """
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
        )
        return
    _kept["matmul_precision"] = precision


def get_num_interop_threads() -> int:
    """Return the value of `set_num_interop_threads`."""
    return int(_kept["interop_threads"])


@ending_at_caller
def set_num_interop_threads(num: Any) -> None:
    """Set the number of threads that run operations in parallel.

    It has no effect here.

    Raises:
        RuntimeError: if `num` is not a positive int.
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _kept["interop_threads"] = num


@ending_at_caller
def set_flush_denormal(mode: bool) -> bool:
    """Return whether flushing denormal numbers can be set to `mode`. Only False is possible."""
    return not mode


def is_warn_always_enabled() -> bool:
    """Return whether `set_warn_always` has requested repeated warnings."""
    return bool(ALWAYS)


@ending_at_caller
def set_warn_always(b: Any) -> None:
    """Request repeated warnings.

    Python's filters (`warnings.simplefilter`) decide whether warnings are repeated.

    Raises:
        RuntimeError: if `b` is not a bool.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    ALWAYS.clear()
    if b:
        ALWAYS.add("warn")


class check_sparse_tensor_invariants:
    """A context manager and switch that requests checks of the parts of sparse tensors.

    The invariants are checked in any case. The class only stores the state.
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether a program has requested checks."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Request checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Request no checks."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting"
            )
        self._before = self._enabled
        check_sparse_tensor_invariants._enabled = self._wanted

    def __exit__(self, *exception: object) -> None:
        check_sparse_tensor_invariants._enabled = bool(self._before)
        self._before = None

    def __call__(self, function: Any) -> Any:
        """Decorate a function to run it with the requested state."""

        def checked(*args: Any, **names: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **names)

        return checked
