"""`torch.distributed`: there is one process. Programs that ask whether it is available find that it is not."""

from __future__ import annotations

from typing import Any

from ..first_use import import_late


def is_available() -> bool:
    """Whether processes can work together; never."""
    return False


def is_initialized() -> bool:
    """Whether processes work together; never."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether this process was started by torchelastic; never."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_available


def __getattr__(name: str) -> Any:
    """What needs several processes: classes that say so when they are used."""
    if name in ("rpc", "tensor"):
        return import_late(f"{__name__}.rpc")
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)


class group:
    """The groups of processes: there is none."""

    WORLD = None


GroupMember = group
