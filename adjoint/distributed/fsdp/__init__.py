"""`torch.distributed.fsdp`: parameters, gradients and the state of optimizers shared out among processes."""

from .fully_shard import FSDPModule as FSDPModule
from .fully_shard import fully_shard as fully_shard
