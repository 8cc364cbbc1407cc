"""`torch.distributed.tensor.experimental`: names that libraries import."""

from ..._runtime.absent import absent

__all__ = ["implicit_replication"]

implicit_replication = absent(
    "torch.distributed.tensor.experimental.implicit_replication",
    "make each tensor a `DTensor` with `distribute_tensor`",
)
