"""`torch.distributed.nn`: collectives that differentiate; names, no logic."""

from . import functional
from .functional import *
