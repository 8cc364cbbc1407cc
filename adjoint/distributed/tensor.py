"""`torch.distributed.tensor`: there is one process, and no tensor is divided among several."""

from typing import Any

from ..absent import absent


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name == "experimental":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.distributed.tensor.{name}", "there is one process")
