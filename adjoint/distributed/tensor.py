"""`torch.distributed.tensor`: there is one process, and no tensor is divided among several."""

from typing import Any

from ..absent import absent, is_of_tools


def __getattr__(name: str) -> Any:
    if is_of_tools(name) or name == "experimental":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.distributed.tensor.{name}", "there is one process")
