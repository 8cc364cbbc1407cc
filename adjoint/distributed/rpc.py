"""`torch.distributed.rpc`: there is one process."""

from typing import Any

from ..absent import absent, is_of_tools


def is_available() -> bool:
    """Whether other processes can be called; never."""
    return False


def __getattr__(name: str) -> Any:
    if is_of_tools(name) or name == "api":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.distributed.rpc.{name}", "there is one process")
