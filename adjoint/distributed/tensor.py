"""`torch.distributed.tensor`: no tensor is divided among processes."""

from typing import Any

from ..absent import absent, is_of_tools


def __getattr__(name: str) -> Any:
    if is_of_tools(name) or name == "experimental":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(
        f"torch.distributed.tensor.{name}",
        "no tensor is divided among processes; `DistributedDataParallel` divides the batch",
    )
