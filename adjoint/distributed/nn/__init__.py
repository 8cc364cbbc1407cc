"""`torch.distributed.nn`: differentiable collectives; names, no logic."""

from . import functional
from .functional import *
