"""`DistributedDataParallel`, which needs several processes."""

from adjoint.absent import absent

__all__ = ["DistributedDataParallel"]

DistributedDataParallel = absent(
    "torch.nn.parallel.DistributedDataParallel", "there is one process; use the module itself, or torch.nn.DataParallel"
)
