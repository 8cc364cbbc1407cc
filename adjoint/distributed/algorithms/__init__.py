"""`torch.distributed.algorithms`: communication hooks, and training with uneven inputs."""

from . import ddp_comm_hooks, join
from .join import Join, Joinable, JoinHook
