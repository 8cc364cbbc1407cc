"""`torch.distributed.rpc`: remote calls do not exist here. Processes use collectives instead."""

from typing import Any

from .._runtime.absent import absent, is_of_tools


def is_available() -> bool:
    """Return whether remote calls are available. The answer is always False."""
    return False


def __getattr__(name: str) -> Any:
    if is_of_tools(name) or name == "api":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.distributed.rpc.{name}", "processes work together by collectives and messages")
