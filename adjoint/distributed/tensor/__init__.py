"""`torch.distributed.tensor`: tensors whose parts are distributed over processes."""

from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from . import experimental as experimental
from .dtensor import DTensor as DTensor
from .making import distribute_module as distribute_module
from .making import distribute_tensor as distribute_tensor
from .making import empty as empty
from .making import full as full
from .making import ones as ones
from .making import rand as rand
from .making import randn as randn
from .making import zeros as zeros
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard
