"""`torch.distributed.nn`: differentiable collectives. This file contains names only."""

from . import functional
from .functional import *
