"""The request for deterministic operations (`torch.use_deterministic_algorithms`)."""

from __future__ import annotations

from typing import Any

from .tracebacks import warn

CHOSEN: dict[str, int] = {"level": 0, "fill": True}
"""`level`: 0, 1 (warnings) or 2 (errors). `fill`: whether new memory is filled while the level is not 0."""


def alert_not_deterministic(operation: str) -> None:
    """Raise an error, or warn, if deterministic algorithms have been requested, because PyTorch has none for `operation`."""
    if CHOSEN["level"]:
        only = CHOSEN["level"] == 1
        setting = f"torch.use_deterministic_algorithms(True{', warn_only=True' * only})"
        said = f"does not have a deterministic implementation, but you set '{setting}'."
        other = (
            " You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
            "acceptable for your application. You can also file"
        )
        message = (
            f"{operation} {said}{' You can file' if only else other} an issue at https://github.com/pytorch/pytorch/issues to "
            "help us prioritize adding deterministic support for this operation."
        )
        if not only:
            raise RuntimeError(message)
        warn(message)


def fills_uninitialized_memory() -> bool:
    """Return whether new memory is filled while deterministic algorithms are requested."""
    return bool(CHOSEN["fill"])


def set_fill_uninitialized_memory(mode: Any) -> None:
    """Choose whether new memory is filled while deterministic algorithms are requested."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    CHOSEN["fill"] = mode


def must_fill() -> bool:
    """Return whether new memory is filled now."""
    return bool(CHOSEN["level"]) and bool(CHOSEN["fill"])
