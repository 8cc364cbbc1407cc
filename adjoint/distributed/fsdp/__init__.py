"""`torch.distributed.fsdp`: parameters, gradients and optimizer state, sharded over processes."""

from .fully_shard import FSDPModule as FSDPModule
from .fully_shard import UnshardHandle as UnshardHandle
from .fully_shard import fully_shard as fully_shard
from .fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from .parameter_group import CPUOffloadPolicy as CPUOffloadPolicy
from .parameter_group import MixedPrecisionPolicy as MixedPrecisionPolicy
from .parameter_group import OffloadPolicy as OffloadPolicy
